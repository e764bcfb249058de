// Conversions. Source: PTX ISA 9.0, "Data Movement and Conversion Instructions: cvt".
#include <cmath>
#include <limits>

#include "tests/device/ptx/rounding.h"

namespace troupe::device::ptx {
namespace {

/// Bits of Op::c.
constexpr std::uint32_t kRounding = 3, kIntegral = 4, kFlush = 8, kSaturate = 16, kRelu = 32;

Rounding rounding_of(std::uint32_t mode) { return static_cast<Rounding>(mode & kRounding); }

double to_integral(double x, Rounding rounding) {
  if (rounding == Rounding::nearest) return std::nearbyint(x);
  if (rounding == Rounding::zero) return std::trunc(x);
  return rounding == Rounding::down ? std::floor(x) : std::ceil(x);
}

/// The source's value in a double, cut to odd where it has more than 53 digits.
double value_of(std::uint64_t bits, Type type) {
  if (type == Type::f16) return from_half(static_cast<std::uint16_t>(bits));
  if (type == Type::bf16) return from_bfloat(static_cast<std::uint16_t>(bits));
  if (type == Type::f32) return bits_as<float>(static_cast<std::uint32_t>(bits));
  if (type == Type::f64) return bits_as<double>(bits);
  const double high =
      is_signed(type) ? static_cast<double>(static_cast<std::int32_t>(bits >> 32)) : static_cast<double>(bits >> 32);
  return to_odd(exact_sum(high * 0x1p32, static_cast<double>(bits & 0xFFFFFFFF)));
}

std::uint64_t to_integer(double x, Type type, Rounding rounding) {
  if (x != x) return 0;
  const int bits = 8 * static_cast<int>(size_of(type));
  x = to_integral(x, rounding);
  if (is_signed(type)) {
    const double limit = std::ldexp(1.0, bits - 1);
    if (x >= limit) return (std::uint64_t{1} << (bits - 1)) - 1;
    if (x < -limit) return ~std::uint64_t{0} << (bits - 1);
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  }
  if (x <= 0) return 0;
  if (x >= std::ldexp(1.0, bits)) return ~std::uint64_t{0} >> (64 - bits);
  return static_cast<std::uint64_t>(x);
}

/// Of integers, extended to 64 bits by the source's type.
std::uint64_t saturated(std::uint64_t bits, Type from, Type to) {
  const int width = 8 * static_cast<int>(size_of(to));
  const std::uint64_t most = ~std::uint64_t{0} >> (64 - width + (is_signed(to) ? 1 : 0));
  const bool negative = is_signed(from) && static_cast<std::int64_t>(bits) < 0;
  if (!negative) return bits > most ? most : bits;
  if (!is_signed(to)) return 0;
  return static_cast<std::int64_t>(bits) < -static_cast<std::int64_t>(most) - 1 ? ~most : bits;
}

std::uint64_t convert_one(std::uint64_t bits, Type from, Type to, std::uint32_t mode) {
  const Rounding rounding = rounding_of(mode);
  if (!is_float(from) && !is_float(to)) return (mode & kSaturate) != 0 ? saturated(bits, from, to) : bits;
  if (!is_float(from) && to == Type::f64) {
    return bits_as<std::uint64_t>(is_signed(from) ? static_cast<double>(static_cast<std::int64_t>(bits))
                                                  : static_cast<double>(bits));
  }
  double x = value_of(bits, from);
  if ((mode & kFlush) != 0 && from == Type::f32) x = flushed(static_cast<float>(x));
  if (!is_float(to)) return to_integer(x, to, rounding);
  if ((mode & kIntegral) != 0) x = to_integral(x, rounding);
  if ((mode & kSaturate) != 0) x = x > 0 ? (x < 1 ? x : 1.0) : 0.0;
  if ((mode & kRelu) != 0 && x < 0) x = 0;
  if (to == Type::f16) return to_16_bits<Half>(to_odd_float(x), rounding);
  if (to == Type::bf16) return to_16_bits<Bfloat>(to_odd_float(x), rounding);
  if (to == Type::f64) return bits_as<std::uint64_t>(x);
  const float single = canonical(to_float(x, rounding));
  return bits_as<std::uint32_t>((mode & kFlush) != 0 ? flushed(single) : single);
}

template <class T, class Extended>
void widen(const T* from, std::uint64_t* to) {
  for (int i = 0; i < kLanes; ++i) to[i] = static_cast<std::uint64_t>(static_cast<Extended>(from[i]));
}

/// The low bits that the type takes of a register of that width, extended by the type's sign.
void read_lanes(WarpState& warp, Ref ref, std::uint32_t width, Type type, std::uint64_t* out) {
  if (width == 2) widen<std::uint16_t, std::uint16_t>(warp.values<std::uint16_t>(ref), out);
  if (width == 4) widen<std::uint32_t, std::uint32_t>(warp.values<std::uint32_t>(ref), out);
  if (width == 8) widen<std::uint64_t, std::uint64_t>(warp.values<std::uint64_t>(ref), out);
  if (size_of(type) == 1 && is_signed(type)) widen<std::uint64_t, std::int8_t>(out, out);
  if (size_of(type) == 1 && !is_signed(type)) widen<std::uint64_t, std::uint8_t>(out, out);
  if (type == Type::s16) widen<std::uint64_t, std::int16_t>(out, out);
  if (type == Type::u16) widen<std::uint64_t, std::uint16_t>(out, out);
  if (type == Type::s32) widen<std::uint64_t, std::int32_t>(out, out);
  if (type == Type::u32) widen<std::uint64_t, std::uint32_t>(out, out);
}

template <class T>
void write_narrow(WarpState& warp, Ref ref, const std::uint64_t* from) {
  T result[kLanes];
  for (int i = 0; i < kLanes; ++i) result[i] = static_cast<T>(from[i]);
  warp.store(ref, result);
}

/// refs: d, a. Op::a: type of a and, 8 bits up, of d; Op::b: their registers' widths likewise; Op::c: mode.
void convert(WarpState& warp, const Op& op) {
  warp.require_written(op, op.refs[1]);
  const auto from = static_cast<Type>(op.a & 0xFF), to = static_cast<Type>(op.a >> 8);
  std::uint64_t values[kLanes];
  read_lanes(warp, op.refs[1], op.b & 0xFF, from, values);
  if (is_float(from) || is_float(to) || (op.c & kSaturate) != 0) {
    for (int i = 0; i < kLanes; ++i) {
      if ((warp.active >> i & 1) != 0) values[i] = convert_one(values[i], from, to, op.c);
    }
  }
  // the register may be wider than the type: extended by the type's sign
  if (!is_float(to)) read_lanes(warp, op.refs[1], 0, to, values);
  if (op.b >> 8 == 2) write_narrow<std::uint16_t>(warp, op.refs[0], values);
  if (op.b >> 8 == 4) write_narrow<std::uint32_t>(warp, op.refs[0], values);
  if (op.b >> 8 == 8) write_narrow<std::uint64_t>(warp, op.refs[0], values);
}

// The conversions that inner loops are full of.
constexpr auto kToFloat = [](std::int32_t x) { return static_cast<float>(x); };
constexpr auto kFromHalf = [](std::uint16_t x) { return canonical(from_half(x)); };
constexpr auto kFromBfloat = [](std::uint16_t x) { return canonical(from_bfloat(x)); };
constexpr auto kToHalf = [](float x) { return to_half(x); };
constexpr auto kToBfloat = [](float x) { return to_bfloat(x); };
constexpr auto kExact = [](auto x) { return x; };

Handler fast(Type from, Type to, std::uint32_t mode) {
  const bool narrows = mode == static_cast<std::uint32_t>(Rounding::nearest);
  if (!narrows) return nullptr;
  if (from == Type::s32 && to == Type::f32) return &lanes<kToFloat, float, std::int32_t>;
  if (from == Type::f16 && to == Type::f32) return &lanes<kFromHalf, float, std::uint16_t>;
  if (from == Type::bf16 && to == Type::f32) return &lanes<kFromBfloat, float, std::uint16_t>;
  if (from == Type::f32 && to == Type::f16) return &lanes<kToHalf, std::uint16_t, float>;
  if (from == Type::f32 && to == Type::bf16) return &lanes<kToBfloat, std::uint16_t, float>;
  if (from == Type::s32 && to == Type::s64) return &lanes<kExact, std::int64_t, std::int32_t>;
  if (from == Type::u32 && to == Type::u64) return &lanes<kExact, std::uint64_t, std::uint32_t>;
  return nullptr;
}

template <class Format>
constexpr auto kPack =
    [](float high, float low) { return static_cast<std::uint32_t>(Format::to(high)) << 16 | Format::to(low); };
template <class Format>
constexpr auto kPackPositive =
    [](float high, float low) { return kPack<Format>(high < 0 ? 0.0f : high, low < 0 ? 0.0f : low); };

bool convert_pair(Decoder& decoder, bool to_half_pair, std::uint32_t mode) {
  if ((mode & ~kRelu) != 0 || decoder.take_type() != Type::f32) return false;
  using U = std::uint32_t;
  Handler run = to_half_pair ? &lanes<kPack<Half>, U, float, float> : &lanes<kPack<Bfloat>, U, float, float>;
  if (mode == kRelu)
    run = to_half_pair ? &lanes<kPackPositive<Half>, U, float, float> : &lanes<kPackPositive<Bfloat>, U, float, float>;
  Op op{.run = run, .op_class = OpClass::half};
  decoder.refs(op, Type::b32, {Type::f32, Type::f32});
  decoder.emit(op);
  return true;
}

}  // namespace

bool decode_convert(Decoder& decoder, std::string_view mnemonic) {
  if (mnemonic != "cvt") return false;
  std::uint32_t mode = 0;
  const std::string_view rounding = decoder.take_one({"rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp"});
  if (rounding.ends_with("i")) mode |= kIntegral;
  if (rounding.starts_with("rz")) mode |= static_cast<std::uint32_t>(Rounding::zero);
  if (rounding.starts_with("rm")) mode |= static_cast<std::uint32_t>(Rounding::down);
  if (rounding.starts_with("rp")) mode |= static_cast<std::uint32_t>(Rounding::up);
  if (decoder.take("ftz")) mode |= kFlush;
  if (decoder.take("sat")) mode |= kSaturate;
  if (decoder.take("relu")) mode |= kRelu;
  const Type to = decoder.take_type();
  if (to == Type::f16x2 || to == Type::bf16x2) return convert_pair(decoder, to == Type::f16x2, mode);
  const Type from = decoder.take_type();
  if (decoder.operands() != 2 || to == Type::pred || from == Type::pred) return false;
  if (to == Type::f64 && !is_float(from) && (mode & kRounding) != 0) return false;
  const int width_to = decoder.width(decoder.operand(0));
  int width_from = decoder.width(decoder.operand(1));
  if (width_from < 0) width_from = static_cast<int>(size_of(from));
  if (width_to < static_cast<int>(size_of(to)) || width_from < static_cast<int>(size_of(from))) return false;
  const bool fits = width_to == static_cast<int>(size_of(to)) && width_from == static_cast<int>(size_of(from));
  Op op{.run = fits ? fast(from, to, mode) : nullptr};
  if (op.run == nullptr) op.run = &convert;
  op.op_class = to == Type::f64 || from == Type::f64   ? OpClass::f64
                : to == Type::f32 || from == Type::f32 ? OpClass::f32
                : is_float(to) || is_float(from)       ? OpClass::half
                                                       : OpClass::integer;
  op.a = static_cast<std::uint32_t>(from) | static_cast<std::uint32_t>(to) << 8;
  op.b = static_cast<std::uint32_t>(width_from) | static_cast<std::uint32_t>(width_to) << 8;
  op.c = mode;
  op.refs[0] = decoder.destination(decoder.operand(0));
  op.refs[1] = decoder.source(decoder.operand(1), from);
  decoder.emit(op);
  return true;
}

}  // namespace troupe::device::ptx
