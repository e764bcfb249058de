#include "comm/collective/rank_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

namespace troupe::comm {

std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::f64:
      return 8;
    case DType::u8:
      return 1;
    case DType::i64:
      return 8;
  }
  return 0;
}

std::uint16_t to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

float from_bf16(std::uint16_t bits) noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

namespace {

/// Elements combined at a time: the partial sums stay in the first-level cache, and because they are local the compiler
/// vectorises the loops although `out` may be one of the inputs.
constexpr std::int64_t kChunk = 2048;

struct Bf16 {
  std::uint16_t bits;
};

/// Stored type -> type that sums are formed in.
template <class T>
struct Wide {
  using type = T;
};
template <>
struct Wide<Bf16> {
  using type = float;
};
template <>
struct Wide<std::int64_t> {
  using type = std::uint64_t;
};  // unsigned: overflow wraps instead of being undefined

template <class W, class T>
W widen(T value) {
  if constexpr (std::is_same_v<T, Bf16>)
    return from_bf16(value.bits);
  else
    return static_cast<W>(value);
}
template <class T, class W>
T narrow(W value) {
  if constexpr (std::is_same_v<T, Bf16>)
    return Bf16{to_bf16(value)};
  else
    return static_cast<T>(value);
}

template <class T, class W, class Combine>
void combine_chunks(void* out, std::span<const void* const> inputs, std::int64_t count, Combine combine) {
  W partial[kChunk];
  T* const result = static_cast<T*>(out);
  for (std::int64_t begin = 0; begin < count; begin += kChunk) {
    const std::int64_t n = std::min(kChunk, count - begin);
    const T* first = static_cast<const T*>(inputs[0]) + begin;
    for (std::int64_t i = 0; i < n; ++i) partial[i] = widen<W>(first[i]);
    for (std::size_t r = 1; r < inputs.size(); ++r) {
      const T* next = static_cast<const T*>(inputs[r]) + begin;
      for (std::int64_t i = 0; i < n; ++i) partial[i] = combine(partial[i], widen<W>(next[i]));
    }
    for (std::int64_t i = 0; i < n; ++i) result[begin + i] = narrow<T>(partial[i]);
  }
}

template <class T>
void sum_typed(void* out, std::span<const void* const> inputs, std::int64_t count) {
  using W = typename Wide<T>::type;
  combine_chunks<T, W>(out, inputs, count, [](W a, W b) { return static_cast<W>(a + b); });
}

template <class T, class W>
void max_typed(void* out, std::span<const void* const> inputs, std::int64_t count) {
  combine_chunks<T, W>(out, inputs, count, [](W a, W b) {
    if constexpr (std::is_floating_point_v<W>) {
      if (a != a) return a;
      if (b != b) return b;
    }
    return b > a ? b : a;
  });
}

}  // namespace

void sum_in_rank_order(DType dtype, void* out, std::span<const void* const> inputs, std::int64_t count) {
  TROUPE_CHECK(!inputs.empty(), "a sum over ranks has at least one rank");
  switch (dtype) {
    case DType::f32:
      return sum_typed<float>(out, inputs, count);
    case DType::bf16:
      return sum_typed<Bf16>(out, inputs, count);
    case DType::f64:
      return sum_typed<double>(out, inputs, count);
    case DType::u8:
      return sum_typed<std::uint8_t>(out, inputs, count);
    case DType::i64:
      return sum_typed<std::int64_t>(out, inputs, count);
  }
}

void max_in_rank_order(DType dtype, void* out, std::span<const void* const> inputs, std::int64_t count) {
  TROUPE_CHECK(!inputs.empty(), "a maximum over ranks has at least one rank");
  switch (dtype) {
    case DType::f32:
      return max_typed<float, float>(out, inputs, count);
    case DType::bf16:
      return max_typed<Bf16, float>(out, inputs, count);
    case DType::f64:
      return max_typed<double, double>(out, inputs, count);
    case DType::u8:
      return max_typed<std::uint8_t, std::uint8_t>(out, inputs, count);
    case DType::i64:
      return max_typed<std::int64_t, std::int64_t>(out, inputs, count);
  }
}

}  // namespace troupe::comm
