// Integer arithmetic. Source: PTX ISA 9.0, "Integer Arithmetic Instructions".
#include <limits>
#include <type_traits>

#include "tests/device/ptx/lanes.h"

namespace troupe::device::ptx {
namespace {

// Sums and products wrap: computed without sign, in at least 32 bits so that nothing is promoted to int.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

constexpr auto kAdd = [](auto a, auto b) {
  using T = decltype(a);
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
};
constexpr auto kSubtract = [](auto a, auto b) {
  using T = decltype(a);
  return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
};
constexpr auto kMultiplyLow = [](auto a, auto b) {
  using T = decltype(a);
  return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
};
__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;
template <class T>
using Wider = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, Int128, Uint128>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>>;
constexpr auto kMultiplyHigh = [](auto a, auto b) {
  using T = decltype(a);
  return static_cast<T>((static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b)) >> (8 * sizeof(T)));
};
constexpr auto kMultiplyAdd = [](auto a, auto b, auto c) { return kAdd(kMultiplyLow(a, b), c); };
constexpr auto kMultiplyHighAdd = [](auto a, auto b, auto c) { return kAdd(kMultiplyHigh(a, b), c); };
constexpr auto kMultiplyWide = [](auto a, auto b) { return static_cast<Wider<decltype(a)>>(a) * b; };
constexpr auto kMultiplyWideAdd = [](auto a, auto b, auto c) {
  return kAdd(static_cast<decltype(c)>(kMultiplyWide(a, b)), c);
};

// What a division by zero gives is not specified; all ones, as the hardware does.
constexpr auto kDivide = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0) return static_cast<T>(~T{0});
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return kSubtract(T{0}, a);
  return static_cast<T>(a / b);
};
constexpr auto kRemainder = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return T{0};
  return static_cast<T>(a % b);
};
constexpr auto kMinimum = [](auto a, auto b) { return a < b ? a : b; };
constexpr auto kMaximum = [](auto a, auto b) { return a > b ? a : b; };
constexpr auto kNegate = [](auto a) { return kSubtract(decltype(a){0}, a); };
constexpr auto kAbsolute = [](auto a) { return a < 0 ? kNegate(a) : a; };

template <class T>
bool wide(Decoder& decoder, bool adds, Type type) {
  constexpr bool kSigned = std::is_signed_v<T>;
  const Type wider = sizeof(T) == 2 ? (kSigned ? Type::s32 : Type::u32) : (kSigned ? Type::s64 : Type::u64);
  using W = Wider<T>;
  if (!adds) return emit(decoder, OpClass::integer, &lanes<kMultiplyWide, W, T, T>, wider, {type, type});
  return emit(decoder, OpClass::integer, &lanes<kMultiplyWideAdd, W, T, T, W>, wider, {type, type, wider});
}

bool multiply(Decoder& decoder, bool adds) {
  const std::string_view part = decoder.take_one({"lo", "hi", "wide"});
  const Type type = decoder.take_type();
  if (part == "wide") {
    if (type == Type::u16) return wide<std::uint16_t>(decoder, adds, type);
    if (type == Type::s16) return wide<std::int16_t>(decoder, adds, type);
    if (type == Type::u32) return wide<std::uint32_t>(decoder, adds, type);
    if (type == Type::s32) return wide<std::int32_t>(decoder, adds, type);
    return false;
  }
  if (part.empty()) return false;
  Handler run = nullptr;
  if (part == "lo") run = adds ? on_integers<kMultiplyAdd, 3>(type) : on_integers<kMultiplyLow, 2>(type);
  if (part == "hi") run = adds ? on_integers<kMultiplyHighAdd, 3>(type) : on_integers<kMultiplyHigh, 2>(type);
  return emit_same(decoder, OpClass::integer, run, type, adds ? 3 : 2);
}

}  // namespace

bool decode_integer(Decoder& decoder, std::string_view mnemonic) {
  const auto last = decoder.last_type();
  if (!last || is_float(*last) || *last == Type::pred || size_of(*last) == 1) return false;
  if (mnemonic == "mul") return multiply(decoder, false);
  if (mnemonic == "mad") return multiply(decoder, true);
  Handler run = nullptr;
  std::size_t sources = 2;
  if (mnemonic == "add") run = on_integers<kAdd, 2>(*last);
  if (mnemonic == "sub") run = on_integers<kSubtract, 2>(*last);
  if (mnemonic == "div") run = on_integers<kDivide, 2>(*last);
  if (mnemonic == "rem") run = on_integers<kRemainder, 2>(*last);
  if (mnemonic == "min") run = on_integers<kMinimum, 2>(*last);
  if (mnemonic == "max") run = on_integers<kMaximum, 2>(*last);
  if (mnemonic == "neg" || mnemonic == "abs") {
    run = mnemonic == "neg" ? on_integers<kNegate, 1>(*last) : on_integers<kAbsolute, 1>(*last);
    sources = 1;
  }
  if (run == nullptr) return false;
  return emit_same(decoder, OpClass::integer, run, decoder.take_type(), sources);
}

}  // namespace troupe::device::ptx
