// Comparison and selection. Source: PTX ISA 9.0, "Comparison and Selection Instructions".
#include <algorithm>

#include "tests/device/ptx/rounding.h"

namespace troupe::device::ptx {
namespace {

/// What holds of a and b, as bits: less, equal, greater, unordered.
struct Compare {
  std::string_view name;
  std::uint8_t holds_for;
};
constexpr Compare kCompares[] = {{"eq", 2},
                                 {"ne", 5},
                                 {"lt", 1},
                                 {"le", 3},
                                 {"gt", 4},
                                 {"ge", 6},
                                 {"equ", 10},
                                 {"neu", 13},
                                 {"ltu", 9},
                                 {"leu", 11},
                                 {"gtu", 12},
                                 {"geu", 14},
                                 {"num", 7},
                                 {"nan", 8},
                                 // of unsigned integers, whose type says as much
                                 {"lo", 1},
                                 {"ls", 3},
                                 {"hi", 4},
                                 {"hs", 6}};

/// Values as they are compared: 16-bit floats as f32.
template <class Format>
struct Bits16 {
  std::uint16_t bits;
};
template <class T>
T decoded(T x) {
  return x;
}
template <class Format>
float decoded(Bits16<Format> x) {
  return Format::from(x.bits);
}

template <std::uint8_t kHoldsFor, bool kFlush>
struct Holds {
  template <class T>
  bool operator()(T left, T right) const {
    auto a = decoded(left), b = decoded(right);
    if constexpr (kFlush) {
      a = flushed(a);
      b = flushed(b);
    }
    const bool less = a<b, equal = a == b, greater = a> b;
    return ((kHoldsFor & 1) != 0 && less) || ((kHoldsFor & 2) != 0 && equal) || ((kHoldsFor & 4) != 0 && greater) ||
           ((kHoldsFor & 8) != 0 && !less && !equal && !greater);
  }
};

enum class Combine : std::uint8_t { nothing, with_and, with_or, with_xor };

/// refs: p, q, a, b, c. Op::a: Combine; Op::b: c is negated.
template <std::uint8_t kHoldsFor, bool kFlush, class T>
void compare(WarpState& warp, const Op& op) {
  warp.require_written(op, op.refs[2]);
  warp.require_written(op, op.refs[3]);
  constexpr Holds<kHoldsFor, kFlush> kHolds;
  std::uint32_t p = lane_mask<kHolds, T, T>(warp.values<T>(op.refs[2]), warp.values<T>(op.refs[3]));
  std::uint32_t q = ~p;
  const auto how = static_cast<Combine>(op.a);
  if (how != Combine::nothing) {
    warp.require_written(op, op.refs[4]);
    const std::uint32_t c = *warp.values<std::uint32_t>(op.refs[4]) ^ (op.b != 0 ? kAllLanes : 0);
    const auto combined = [&](std::uint32_t x) {
      return how == Combine::with_and ? x & c : how == Combine::with_or ? x | c : x ^ c;
    };
    p = combined(p);
    q = combined(q);
  }
  warp.store_mask(op.refs[0], p);
  warp.store_mask(op.refs[1], q);
}

template <bool kFlush, class T>
Handler handler(std::uint8_t holds_for) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    constexpr Handler kHandlers[] = {&compare<I, kFlush, T>...};
    return kHandlers[holds_for];
  }
  (std::make_index_sequence<15>());
}

Handler handler_of(Type type, std::uint8_t holds_for, bool flush) {
  if (type == Type::f16) return handler<false, Bits16<Half>>(holds_for);
  if (type == Type::bf16) return handler<false, Bits16<Bfloat>>(holds_for);
  if (type == Type::f32) return flush ? handler<true, float>(holds_for) : handler<false, float>(holds_for);
  if (type == Type::f64) return handler<false, double>(holds_for);
  return on_integer(type, [&](auto x) { return handler<false, decltype(x)>(holds_for); });
}

bool compare(Decoder& decoder) {
  const auto* how =
      std::find_if(std::begin(kCompares), std::end(kCompares), [&](const Compare& c) { return decoder.take(c.name); });
  if (how == std::end(kCompares)) return false;
  Op op{.op_class = OpClass::integer};
  if (decoder.take("and")) op.a = static_cast<std::uint32_t>(Combine::with_and);
  if (decoder.take("or")) op.a = static_cast<std::uint32_t>(Combine::with_or);
  if (decoder.take("xor")) op.a = static_cast<std::uint32_t>(Combine::with_xor);
  const bool flush = decoder.take("ftz");
  const Type type = decoder.take_type();
  op.run = handler_of(type, how->holds_for, flush);
  if (op.run == nullptr || decoder.operands() != (op.a == 0 ? 3U : 4U)) return false;
  if (is_float(type)) op.op_class = type == Type::f32 ? OpClass::f32 : type == Type::f64 ? OpClass::f64 : OpClass::half;
  const Operand& p = decoder.operand(0);
  op.refs[0] = decoder.destination(p);
  op.refs[1] = p.parts.empty() ? decoder.scratch(4) : decoder.destination(p.parts[0]);
  for (std::size_t i = 1; i < 3; ++i) {
    decoder.require_width(decoder.operand(i), type);
    op.refs[i + 1] = decoder.source(decoder.operand(i), type);
  }
  if (op.a != 0) {
    const Operand& c = decoder.operand(3);
    op.b = c.negated ? 1 : 0;
    op.refs[4] = decoder.source(c, Type::b32);
  }
  decoder.emit(op);
  return true;
}

/// refs: d, a, b, predicate. Selecting a register that was never written is no finding, as moving one is none.
template <class T>
void select(WarpState& warp, const Op& op) {
  warp.require_written(op, op.refs[3]);
  const std::uint32_t p = *warp.values<std::uint32_t>(op.refs[3]);
  const std::uint32_t written = (p & warp.written(op.refs[1])) | (~p & warp.written(op.refs[2]));
  const T* a = warp.values<T>(op.refs[1]);
  const T* b = warp.values<T>(op.refs[2]);
  T result[kLanes];
  for (int i = 0; i < kLanes; ++i) result[i] = (p >> i & 1) != 0 ? a[i] : b[i];
  warp.store(op.refs[0], result);
  warp.mark_unwritten(op.refs[0], warp.active & ~written);
}

bool select(Decoder& decoder) {
  const Type type = decoder.take_type();
  if (decoder.operands() != 4) return false;
  const std::uint32_t size = size_of(type);
  Op op{.run = size == 2   ? &select<std::uint16_t>
               : size == 4 ? &select<std::uint32_t>
                           : &select<std::uint64_t>,
        .op_class = OpClass::integer};
  if (size == 1) return false;
  decoder.require_width(decoder.operand(0), type);
  op.refs[0] = decoder.destination(decoder.operand(0));
  op.refs[1] = decoder.source(decoder.operand(1), type);
  op.refs[2] = decoder.source(decoder.operand(2), type);
  op.refs[3] = decoder.source(decoder.operand(3), Type::b32);
  decoder.emit(op);
  return true;
}

}  // namespace

bool decode_compare(Decoder& decoder, std::string_view mnemonic) {
  if (mnemonic == "setp") return compare(decoder);
  if (mnemonic == "selp") return select(decoder);
  return false;
}

}  // namespace troupe::device::ptx
