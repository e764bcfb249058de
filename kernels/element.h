#pragma once

#include <cstdint>

namespace troupe::simd {

/// A bfloat16 as it lies in memory.
struct Bf16 {
  std::uint16_t bits;
};

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

}  // namespace troupe::simd
