#pragma once

#include <cstring>
#include <utility>

#include "tests/device/ptx/decoder.h"
#include "tests/device/ptx/warp_state.h"

namespace troupe::device::ptx {

/// Handlers made of a function of one lane: refs[0] = F(refs[1], refs[2], ...). All 32 lanes are computed, so that the
/// loop is vectorised, and the active ones are stored. F must be defined for any bits.
template <auto F, class Out, class... In>
void lanes(WarpState& warp, const Op& op) {
  Out result[kLanes];
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (warp.require_written(op, op.refs[I + 1]), ...);
    const auto run = [&](const In* __restrict... in) {
      for (int i = 0; i < kLanes; ++i) result[i] = static_cast<Out>(F(in[i]...));
    };
    run(warp.values<In>(op.refs[I + 1])...);
  }
  (std::index_sequence_for<In...>{});
  warp.store(op.refs[0], result);
}

/// The mask of lanes for which F is true.
template <auto F, class... In>
std::uint32_t lane_mask(const In* __restrict... in) {
  std::uint32_t bits[kLanes];
  for (int i = 0; i < kLanes; ++i) bits[i] = F(in[i]...) ? 1U << i : 0U;
  std::uint32_t mask = 0;
  for (int i = 0; i < kLanes; ++i) mask |= bits[i];
  return mask;
}

namespace detail {
template <auto F, class T, std::size_t... I>
constexpr Handler same_type(std::index_sequence<I...>) {
  return &lanes<F, T, std::conditional_t<I == I, T, T>...>;
}
}  // namespace detail

/// f(T{}) for the integer type of C++ that stands for `type`, with 2, 4 or 8 bytes; null for another type.
template <class F>
Handler on_integer(Type type, F f) {
  switch (size_of(type)) {
    case 2:
      return is_float(type) ? nullptr : is_signed(type) ? f(std::int16_t{}) : f(std::uint16_t{});
    case 4:
      return is_float(type) ? nullptr : is_signed(type) ? f(std::int32_t{}) : f(std::uint32_t{});
    case 8:
      return is_float(type) ? nullptr : is_signed(type) ? f(std::int64_t{}) : f(std::uint64_t{});
    default:
      return nullptr;
  }
}

/// The handler of F on N operands of that type; null for a type that is no integer.
template <auto F, std::size_t N>
Handler on_integers(Type type) {
  return on_integer(type, [](auto x) { return detail::same_type<F, decltype(x)>(std::make_index_sequence<N>()); });
}

/// Emits one instruction with sources of those types; false without a handler.
inline bool emit(Decoder& decoder, OpClass op_class, Handler run, Type destination,
                 std::initializer_list<Type> sources) {
  Op op{.run = run, .op_class = op_class};
  if (run == nullptr) return false;
  decoder.refs(op, destination, sources);
  decoder.emit(op);
  return true;
}
/// The same with `count` sources of the destination's type.
inline bool emit_same(Decoder& decoder, OpClass op_class, Handler run, Type type, std::size_t count) {
  if (count == 1) return emit(decoder, op_class, run, type, {type});
  if (count == 2) return emit(decoder, op_class, run, type, {type, type});
  return emit(decoder, op_class, run, type, {type, type, type});
}

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace troupe::device::ptx
