// Logic, shifts and bit fields. Source: PTX ISA 9.0, "Logic and Shift Instructions", "Integer Arithmetic Instructions".
#include <bit>

#include "tests/device/ptx/lanes.h"

namespace troupe::device::ptx {
namespace {

constexpr auto kAnd = [](auto a, auto b) { return a & b; };
constexpr auto kOr = [](auto a, auto b) { return a | b; };
constexpr auto kXor = [](auto a, auto b) { return a ^ b; };
constexpr auto kNot = [](auto a) { return ~a; };
constexpr auto kIsZero = [](auto a) { return a == 0; };

// Amounts above the width are clamped to it; the amount is 32 bits whatever the type.
constexpr auto kShiftLeft = [](auto a, std::uint32_t by) {
  using T = decltype(a);
  return static_cast<T>(by >= 8 * sizeof(T) ? 0 : static_cast<std::uint64_t>(a) << by);
};
constexpr auto kShiftRight = [](auto a, std::uint32_t by) {
  using T = decltype(a);
  const std::uint32_t most = 8 * sizeof(T) - 1;
  if (by > most) return static_cast<T>(a < 0 ? ~T{0} : T{0});
  return static_cast<T>(a >> by);
};

constexpr auto kExtract = [](auto a, std::uint32_t at, std::uint32_t count) {
  using T = decltype(a);
  constexpr std::uint32_t kWidth = 8 * sizeof(T);
  at &= 0xFF;
  count &= 0xFF;
  if (count == 0) return T{0};
  // beyond the top the sign is repeated
  const auto bit = [&](std::uint32_t i) { return static_cast<std::uint64_t>(a) >> (i < kWidth ? i : kWidth - 1) & 1; };
  const std::uint32_t top = at + count - 1 < kWidth ? at + count - 1 : kWidth - 1;
  const std::uint64_t sign = std::is_signed_v<T> ? bit(top) : 0;
  const std::uint64_t field =
      at >= kWidth ? 0 : static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<T>>(a)) >> at;
  const std::uint32_t kept = at >= kWidth ? 0 : (count < kWidth - at ? count : kWidth - at);
  const std::uint64_t mask = kept >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << kept) - 1;
  return static_cast<T>((field & mask) | (sign != 0 ? ~mask : 0));
};
constexpr auto kInsert = [](auto a, auto b, std::uint32_t at, std::uint32_t count) {
  using T = decltype(a);
  constexpr std::uint32_t kWidth = 8 * sizeof(T);
  at &= 0xFF;
  count &= 0xFF;
  if (at >= kWidth || count == 0) return b;
  const T mask = static_cast<T>((count >= kWidth ? ~T{0} : static_cast<T>((T{1} << count) - 1)) << at);
  return static_cast<T>((b & ~mask) | (static_cast<T>(a << at) & mask));
};

constexpr auto kPermute = [](std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t bytes = a | std::uint64_t{b} << 32;
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t select = selector >> (4 * i);
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (select & 7))) & 0xFF;
    if ((select & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
    result |= byte << (8 * i);
  }
  return result;
};

constexpr auto kPopulation = [](auto a) { return std::popcount(a); };
constexpr auto kLeadingZeros = [](auto a) { return std::countl_zero(a); };
constexpr auto kReverse = [](auto a) {
  using T = decltype(a);
  T result = 0;
  for (std::uint32_t i = 0; i < 8 * sizeof(T); ++i) result = static_cast<T>(result << 1 | (a >> i & 1));
  return result;
};
template <class T, bool kShiftAmount>
constexpr auto kFind = [](T a) {
  using U = std::make_unsigned_t<T>;
  const U u = a < 0 ? static_cast<U>(~a) : static_cast<U>(a);
  if (u == 0) return ~std::uint32_t{0};
  return static_cast<std::uint32_t>(kShiftAmount ? std::countl_zero(u)
                                                 : 8 * static_cast<int>(sizeof(T)) - 1 - std::countl_zero(u));
};

template <bool kLeft, bool kWrap>
constexpr auto kFunnel = [](std::uint32_t low, std::uint32_t high, std::uint32_t by) {
  by = kWrap ? by & 31 : (by > 32 ? 32 : by);
  const std::uint64_t both = low | std::uint64_t{high} << 32;
  return static_cast<std::uint32_t>(kLeft ? both >> (32 - by) : both >> by);
};

/// Any function of three bits: its table is Op::a.
void lop3(WarpState& warp, const Op& op) {
  for (int i = 1; i < 4; ++i) warp.require_written(op, op.refs[i]);
  const auto* a = warp.values<std::uint32_t>(op.refs[1]);
  const auto* b = warp.values<std::uint32_t>(op.refs[2]);
  const auto* c = warp.values<std::uint32_t>(op.refs[3]);
  std::uint32_t result[kLanes] = {};
  for (std::uint32_t row = 0; row < 8; ++row) {
    if ((op.a >> row & 1) == 0) continue;
    const std::uint32_t not_a = (row & 4) != 0 ? 0 : kAllLanes, not_b = (row & 2) != 0 ? 0 : kAllLanes,
                        not_c = (row & 1) != 0 ? 0 : kAllLanes;
    for (int i = 0; i < kLanes; ++i) result[i] |= (a[i] ^ not_a) & (b[i] ^ not_b) & (c[i] ^ not_c);
  }
  warp.store(op.refs[0], result);
}

/// Logic of predicates, whose 32 lanes are one word. Op::a: 0 and, 1 or, 2 xor, 3 not.
void predicate_logic(WarpState& warp, const Op& op) {
  warp.require_written(op, op.refs[1]);
  const std::uint32_t a = *warp.values<std::uint32_t>(op.refs[1]);
  if (op.a == 3) return warp.store_mask(op.refs[0], ~a);
  warp.require_written(op, op.refs[2]);
  const std::uint32_t b = *warp.values<std::uint32_t>(op.refs[2]);
  warp.store_mask(op.refs[0], op.a == 0 ? a & b : op.a == 1 ? a | b : a ^ b);
}

bool logic(Decoder& decoder, std::string_view mnemonic) {
  const Type type = decoder.take_type();
  const std::uint32_t which = mnemonic == "and" ? 0 : mnemonic == "or" ? 1 : mnemonic == "xor" ? 2 : 3;
  if (type == Type::pred) {
    Op op{.run = &predicate_logic, .op_class = OpClass::integer, .a = which};
    if (which == 3) decoder.refs(op, type, {type});
    if (which != 3) decoder.refs(op, type, {type, type});
    decoder.emit(op);
    return true;
  }
  const Handler runs[] = {on_integers<kAnd, 2>(type), on_integers<kOr, 2>(type), on_integers<kXor, 2>(type),
                          on_integers<kNot, 1>(type)};
  return emit_same(decoder, OpClass::integer, runs[which], type, which == 3 ? 1 : 2);
}

template <auto F>
bool shift(Decoder& decoder) {
  const Type type = decoder.take_type();
  const auto run = [](auto x) -> Handler { return &lanes<F, decltype(x), decltype(x), std::uint32_t>; };
  return emit(decoder, OpClass::integer, on_integer(type, run), type, {type, Type::u32});
}

bool fields(Decoder& decoder, std::string_view mnemonic) {
  using U = std::uint32_t;
  constexpr Type kU32 = Type::u32;
  const bool amount = mnemonic == "bfind" && decoder.take("shiftamt");
  const Type type = decoder.take_type();
  if (size_of(type) < 4) return false;
  const auto make = [&](auto x) -> Handler {
    using T = decltype(x);
    using Bits = std::make_unsigned_t<T>;
    if (mnemonic == "bfe") return &lanes<kExtract, T, T, U, U>;
    if (mnemonic == "bfi") return &lanes<kInsert, Bits, Bits, Bits, U, U>;
    if (mnemonic == "popc") return &lanes<kPopulation, U, Bits>;
    if (mnemonic == "clz") return &lanes<kLeadingZeros, U, Bits>;
    if (mnemonic == "brev") return &lanes<kReverse, Bits, Bits>;
    return amount ? &lanes<kFind<T, true>, U, T> : &lanes<kFind<T, false>, U, T>;
  };
  const Handler run = on_integer(type, make);
  if (mnemonic == "bfe") return emit(decoder, OpClass::integer, run, type, {type, kU32, kU32});
  if (mnemonic == "bfi") return emit(decoder, OpClass::integer, run, type, {type, type, kU32, kU32});
  return emit(decoder, OpClass::integer, run, mnemonic == "brev" ? type : kU32, {type});
}

bool funnel(Decoder& decoder) {
  const bool left = decoder.take("l");
  if (!left && !decoder.take("r")) return false;
  const bool wrap = decoder.take("wrap");
  if (!wrap && !decoder.take("clamp")) return false;
  using U = std::uint32_t;
  constexpr Handler kRuns[] = {&lanes<kFunnel<false, false>, U, U, U, U>, &lanes<kFunnel<false, true>, U, U, U, U>,
                               &lanes<kFunnel<true, false>, U, U, U, U>, &lanes<kFunnel<true, true>, U, U, U, U>};
  const Type type = decoder.take_type();
  return emit(decoder, OpClass::integer, kRuns[(left ? 2 : 0) + (wrap ? 1 : 0)], type, {type, type, Type::u32});
}

}  // namespace

bool decode_bits(Decoder& decoder, std::string_view mnemonic) {
  if (mnemonic == "and" || mnemonic == "or" || mnemonic == "xor" || mnemonic == "not") return logic(decoder, mnemonic);
  if (mnemonic == "cnot") {
    const Type type = decoder.take_type();
    return emit_same(decoder, OpClass::integer, on_integers<kIsZero, 1>(type), type, 1);
  }
  if (mnemonic == "shl") return shift<kShiftLeft>(decoder);
  if (mnemonic == "shr") return shift<kShiftRight>(decoder);
  if (mnemonic == "shf") return funnel(decoder);
  if (mnemonic == "prmt") {
    const Type type = decoder.take_type();
    using U = std::uint32_t;
    return emit(decoder, OpClass::integer, &lanes<kPermute, U, U, U, U>, type, {type, type, Type::u32});
  }
  if (mnemonic == "lop3") {
    const Type type = decoder.take_type();
    if (decoder.operands() != 5) return false;
    Op op{.run = &lop3, .op_class = OpClass::integer, .a = static_cast<std::uint32_t>(decoder.operand(4).value)};
    op.refs[0] = decoder.destination(decoder.operand(0));
    for (std::size_t i = 1; i < 4; ++i) op.refs[i] = decoder.source(decoder.operand(i), type);
    decoder.emit(op);
    return true;
  }
  if (mnemonic == "bfe" || mnemonic == "bfi" || mnemonic == "popc" || mnemonic == "clz" || mnemonic == "brev" ||
      mnemonic == "bfind") {
    return fields(decoder, mnemonic);
  }
  return false;
}

}  // namespace troupe::device::ptx
