// The weighted squared error of a prediction: a row's target and coefficients are read once.
#include "kernels/row_kernels.h"
#include "kernels/simd.h"
#include "kernels/threads.h"

namespace troupe::kernels::cpu {
namespace {

using simd::each_vector;
using simd::load;
using simd::store;
using simd::Vec;

/// body(offset in the matrix, count, coefficients) for every vector of a row.
template <class A, class F>
TROUPE_INLINE void each_weighted(std::int64_t row, std::int64_t channels, const A* c, bool of_elements, const F& body) {
  const std::int64_t at = row * channels;
  each_vector<A>(channels, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA {
    const Vec<A> weight = of_elements ? load(c + at + i, count) : Vec<A>{} + c[row];
    body(at + i, count, weight);
  });
}

}  // namespace

template <class T>
void squared_error_forward(std::int64_t rows, std::int64_t channels, const T* x, const Acc<T>* target, const Acc<T>* c,
                           bool of_elements, Acc<T>* row_sums, int threads) {
  using A = Acc<T>;
  parallel(rows, threads, [&](std::int64_t begin, std::int64_t end) {
    with_best_isa([&]() TROUPE_LAMBDA {
      for (auto row = begin; row < end; ++row) {
        Vec<A> sum = {};
        each_weighted<A>(row, channels, c, of_elements,
                         [&](std::int64_t at, std::int64_t count, Vec<A> weight) TROUPE_LAMBDA {
                           const Vec<A> d = load(x + at, count) - load(target + at, count);
                           sum += weight * d * d;
                         });
        row_sums[row] = simd::lane_sum<A>(sum);
      }
    });
  });
}

template <class T>
void squared_error_backward(std::int64_t rows, std::int64_t channels, const T* x, const Acc<T>* target, const Acc<T>* c,
                            bool of_elements, Acc<T> scale, T* dx, int threads) {
  using A = Acc<T>;
  parallel(rows, threads, [&](std::int64_t begin, std::int64_t end) {
    with_best_isa([&]() TROUPE_LAMBDA {
      for (auto row = begin; row < end; ++row) {
        each_weighted<A>(row, channels, c, of_elements,
                         [&](std::int64_t at, std::int64_t count, Vec<A> weight) TROUPE_LAMBDA {
                           const Vec<A> d = load(x + at, count) - load(target + at, count);
                           store(dx + at, Vec<A>(weight * d * (2 * scale)), count);
                         });
      }
    });
  });
}

#define TROUPE_SQUARED_ERROR_KERNELS(T)                                                                             \
  template void squared_error_forward<T>(std::int64_t, std::int64_t, const T*, const Acc<T>*, const Acc<T>*, bool,  \
                                         Acc<T>*, int);                                                             \
  template void squared_error_backward<T>(std::int64_t, std::int64_t, const T*, const Acc<T>*, const Acc<T>*, bool, \
                                          Acc<T>, T*, int);
TROUPE_SQUARED_ERROR_KERNELS(float)
TROUPE_SQUARED_ERROR_KERNELS(double)
TROUPE_SQUARED_ERROR_KERNELS(simd::Bf16)

}  // namespace troupe::kernels::cpu
