#pragma once

// The activations of a dense layer on vectors of dense_lanes.h.
#include "kernels/dense_lanes.h"
#include "kernels/dense_layer.h"

namespace troupe::kernels {
namespace {

/// tanh|x| = u / (u + 2) with u = e^(2|x|) - 1 = 2^z - 1 and z = 2|x| log2(e), so that small x keep their digits and
/// no result is above 1. With z = n + f, n whole and |f| <= 1/2, both exact:
///     u = 2^n p + (2^n - 1),  p = 2^f - 1 = f g(f)
/// g is the polynomial of degree 5 that meets (2^f - 1) / f at the six Chebyshev points cos((2 i + 1) pi / 12) / 2, its
/// coefficients rounded to f32. Interpolation is off by at most max|g^(6)| / 6! * 2 / 4^6 = (ln 2)^7 / 7! / 2048, which
/// is 8e-9. From |x| = 9.1 on, u + 2 rounds to u, and the result is 1.
TROUPE_INLINE Floats tanh_of(Floats x) {
  constexpr std::uint32_t kSign = 0x80000000U;
  // 1.5 * 2^23, so that a sum's last mantissa bit is 1, and the bias of an exponent
  constexpr float kToInteger = 12582912.0F + 127.0F, kTwoLog2E = 2.88539008F;
  const Bits sign = reinterpret_cast<Bits>(x) & kSign;
  // NaN passes
  const Floats size = smaller(all(9.1F), reinterpret_cast<Floats>(reinterpret_cast<Bits>(x) & ~kSign));
  const Floats shifted = fused(size, all(kTwoLog2E), all(kToInteger));
  const Floats f = fused(size, all(kTwoLog2E), kToInteger - shifted);
  const Floats power = reinterpret_cast<Floats>(reinterpret_cast<Bits>(shifted) << 23);
  Floats g = all(0.000154531634F);
  g = fused(g, f, all(0.00133908633F));
  g = fused(g, f, all(0.00961808302F));
  g = fused(g, f, all(0.0555035695F));
  g = fused(g, f, all(0.240226507F));
  g = fused(g, f, all(0.693147182F));
  const Floats u = fused(power, g * f, power - 1.0F);
  const Floats t = u / (u + 2.0F);
  return reinterpret_cast<Floats>(reinterpret_cast<Bits>(t) | sign);
}

/// Reads and writes whole vectors, or the first lanes of one.
struct WholeVector {
  TROUPE_INLINE Floats read(const float* p) const { return load(p); }
  TROUPE_INLINE void write(float* p, Floats v) const { store(p, v); }
};
struct PartOfVector {
  Mask lanes;
  TROUPE_INLINE Floats read(const float* p) const { return load(p, lanes); }
  TROUPE_INLINE void write(float* p, Floats v) const { store(p, v, lanes); }
};

/// f(offset, access) for every vector of `count` numbers. AVX2's masked stores are slow on some processors, so only the
/// last vector has a mask.
template <class F>
TROUPE_INLINE void each_vector(std::int64_t count, const F& f) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) f(i, WholeVector{});
  if (i < count) f(i, PartOfVector{first_lanes(count - i)});
}

void activate(DenseActivation f, std::int64_t count, const float* x, float* y) {
  if (f == DenseActivation::tanh) {
    each_vector(count, [&](std::int64_t i, auto at) TROUPE_LAMBDA { at.write(y + i, tanh_of(at.read(x + i))); });
  } else if (f == DenseActivation::relu) {
    each_vector(count, [&](std::int64_t i, auto at) TROUPE_LAMBDA {
      const Floats v = at.read(x + i);
      at.write(y + i, where_positive(v, v));
    });
  }
}

void multiply_slope(DenseActivation f, std::int64_t count, const float* h, float* d) {
  if (f == DenseActivation::tanh) {
    each_vector(count, [&](std::int64_t i, auto at) TROUPE_LAMBDA {
      const Floats v = at.read(h + i);
      at.write(d + i, fused(-v, v, all(1.0F)) * at.read(d + i));
    });
  } else if (f == DenseActivation::relu) {
    each_vector(count, [&](std::int64_t i, auto at)
                           TROUPE_LAMBDA { at.write(d + i, where_positive(at.read(h + i), at.read(d + i))); });
  }
}

}  // namespace
}  // namespace troupe::kernels
