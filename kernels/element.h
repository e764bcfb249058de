#pragma once

#include <cstdint>

#include "base/namespaces.h"

namespace troupe::kernels::simd {

/// A bfloat16 as it lies in memory.
/// The upper half of an f32: 1 sign bit, 8 of exponent, 7 of mantissa. Widening is exact.
struct Bf16 {
  std::uint16_t bits;
};

/// f32 for f32 and bf16, f64 for f64.
template <class T>
struct AccumulateOf {
  using type = float;
};
template <>
struct AccumulateOf<double> {
  using type = double;
};
/// What values of type T are computed in.
template <class T>
using Accumulate = typename AccumulateOf<T>::type;

}  // namespace troupe::kernels::simd
