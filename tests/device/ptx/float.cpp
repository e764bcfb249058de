// f32 and f64 arithmetic. Source: PTX ISA 9.0, "Floating Point Instructions". Results of `.approx` and `.full` are
// those of f64 rounded once, or of a correctly rounded f32 division: within every bound that the ISA gives.
#include <algorithm>
#include <cfenv>
#include <cmath>

#include "tests/device/ptx/rounding.h"

namespace troupe::device::ptx {
namespace {

/// The first seven round in every mode.
enum class What : std::uint8_t {
  add,
  sub,
  mul,
  fma,
  div,
  rcp,
  sqrt,
  min,
  max,
  min_nan,
  max_nan,
  rsqrt,
  ex2,
  lg2,
  sin,
  cos,
  tanh
};

constexpr std::size_t sources_of(What what) {
  if (what == What::fma) return 3;
  return what == What::rcp || what == What::sqrt || what >= What::rsqrt ? 1 : 2;
}

template <bool kIsMin, class T>
T smaller_or_larger(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) == kIsMin ? a : b;  // -0 is less than +0
  return (a < b) == kIsMin ? a : b;
}

/// As the processor rounds, to nearest.
template <What kWhat, class T>
T computed(T a, T b = 0, T c = 0) {
  const auto wide = static_cast<double>(a);
  if constexpr (kWhat == What::add) return a + b;
  if constexpr (kWhat == What::sub) return a - b;
  if constexpr (kWhat == What::mul) return a * b;
  if constexpr (kWhat == What::fma) return std::fma(a, b, c);
  if constexpr (kWhat == What::div) return a / b;
  if constexpr (kWhat == What::rcp) return T{1} / a;
  if constexpr (kWhat == What::sqrt) return std::sqrt(a);
  if constexpr (kWhat == What::min) return smaller_or_larger<true>(a, b);
  if constexpr (kWhat == What::max) return smaller_or_larger<false>(a, b);
  if constexpr (kWhat == What::min_nan) return a != a || b != b ? a + b : smaller_or_larger<true>(a, b);
  if constexpr (kWhat == What::max_nan) return a != a || b != b ? a + b : smaller_or_larger<false>(a, b);
  if constexpr (kWhat == What::rsqrt) return static_cast<T>(1.0 / std::sqrt(wide));
  if constexpr (kWhat == What::ex2) return static_cast<T>(std::exp2(wide));
  if constexpr (kWhat == What::lg2) return static_cast<T>(std::log2(wide));
  if constexpr (kWhat == What::sin) return static_cast<T>(std::sin(wide));
  if constexpr (kWhat == What::cos) return static_cast<T>(std::cos(wide));
  if constexpr (kWhat == What::tanh) return static_cast<T>(std::tanh(wide));
}

/// In another mode, from a double that is exact or cut to odd.
template <What kWhat, Rounding kRounding>
float directed(float a, float b = 0, float c = 0) {
  const double x = a, y = b, z = c;
  double value = 0;
  if (kWhat == What::add || kWhat == What::sub) value = to_odd(exact_sum(x, kWhat == What::add ? y : -y));
  if (kWhat == What::mul) value = x * y;
  if (kWhat == What::fma) value = to_odd(exact_sum(x * y, z));
  // the remainder says on which side of the rounded quotient or root the exact one lies
  if (kWhat == What::div || kWhat == What::rcp) {
    const double n = kWhat == What::div ? x : 1.0, d = kWhat == What::div ? y : x, q = n / d;
    const double rest = std::isfinite(q) && q != 0 ? std::fma(-q, d, n) : 0.0;
    value = to_odd({q, (rest < 0) != (d < 0) ? -std::fabs(rest) : std::fabs(rest)});
  }
  if (kWhat == What::sqrt) {
    const double root = std::sqrt(x);
    value = to_odd({root, std::isfinite(root) ? std::fma(-root, root, x) : 0.0});
  }
  const bool sums = kWhat == What::add || kWhat == What::sub || kWhat == What::fma;
  const double term = kWhat == What::fma ? x * y : x, other = kWhat == What::fma ? z : kWhat == What::sub ? -y : y;
  if (sums && value == 0 && kRounding == Rounding::down && std::signbit(term) != std::signbit(other)) return -0.0f;
  return to_float(value, kRounding);
}

template <What kWhat, Rounding kRounding, bool kFlush, bool kSaturate>
constexpr auto kF32 = [](auto... x) {
  if constexpr (kRounding == Rounding::nearest) {
    return output<kFlush, kSaturate>(computed<kWhat>(input<kFlush>(x)...));
  } else {
    return output<kFlush, kSaturate>(directed<kWhat, kRounding>(input<kFlush>(x)...));
  }
};

/// The processor's own rounding mode does the other three: rare, hence by the lane.
template <What kWhat, int kMode>
constexpr auto kF64 = [](auto... x) {
  if constexpr (kMode == FE_TONEAREST) return computed<kWhat>(x...);
  const auto opaque = [](double value) {
    volatile double kept = value;
    return static_cast<double>(kept);
  };
  std::fesetround(kMode);
  const double result = opaque(computed<kWhat>(opaque(x)...));
  std::fesetround(FE_TONEAREST);
  return result;
};

template <What kWhat, Rounding kRounding>
Handler f32(bool flush, bool saturate) {
  constexpr std::make_index_sequence<sources_of(kWhat)> kN;
  if (flush && saturate) return detail::same_type<kF32<kWhat, kRounding, true, true>, float>(kN);
  if (flush) return detail::same_type<kF32<kWhat, kRounding, true, false>, float>(kN);
  if (saturate) return detail::same_type<kF32<kWhat, kRounding, false, true>, float>(kN);
  return detail::same_type<kF32<kWhat, kRounding, false, false>, float>(kN);
}

template <What kWhat>
Handler f32_in(Rounding rounding, bool flush, bool saturate) {
  if constexpr (kWhat <= What::sqrt) {
    if (rounding == Rounding::zero) return f32<kWhat, Rounding::zero>(flush, saturate);
    if (rounding == Rounding::down) return f32<kWhat, Rounding::down>(flush, saturate);
    if (rounding == Rounding::up) return f32<kWhat, Rounding::up>(flush, saturate);
  }
  return rounding == Rounding::nearest ? f32<kWhat, Rounding::nearest>(flush, saturate) : nullptr;
}

template <What kWhat>
Handler f64_in(Rounding rounding, bool flush, bool saturate) {
  constexpr std::make_index_sequence<sources_of(kWhat)> kN;
  if (flush || saturate) return nullptr;
  if (rounding == Rounding::zero) return detail::same_type<kF64<kWhat, FE_TOWARDZERO>, double>(kN);
  if (rounding == Rounding::down) return detail::same_type<kF64<kWhat, FE_DOWNWARD>, double>(kN);
  if (rounding == Rounding::up) return detail::same_type<kF64<kWhat, FE_UPWARD>, double>(kN);
  return detail::same_type<kF64<kWhat, FE_TONEAREST>, double>(kN);
}

struct Named {
  std::string_view name;
  What what;
  Handler (*f32)(Rounding, bool, bool);
  Handler (*f64)(Rounding, bool, bool);
};
template <What kWhat>
constexpr Named both(std::string_view name) {
  return {name, kWhat, &f32_in<kWhat>, &f64_in<kWhat>};
}
template <What kWhat>
constexpr Named single(std::string_view name) {
  return {name, kWhat, &f32_in<kWhat>, nullptr};
}
constexpr Named kNamed[] = {
    both<What::add>("add"),       both<What::sub>("sub"),           both<What::mul>("mul"),
    both<What::fma>("fma"),       both<What::fma>("mad"),           both<What::div>("div"),
    both<What::rcp>("rcp"),       both<What::sqrt>("sqrt"),         both<What::min>("min"),
    both<What::max>("max"),       single<What::min_nan>("min.NaN"), single<What::max_nan>("max.NaN"),
    single<What::rsqrt>("rsqrt"), single<What::ex2>("ex2"),         single<What::lg2>("lg2"),
    single<What::sin>("sin"),     single<What::cos>("cos"),         single<What::tanh>("tanh")};

// neg, abs and copysign move bits and leave NaN as it is, but for `.ftz`.
template <class T, bool kFlush>
T kept(T x) {
  if constexpr (kFlush) return flushed(x);
  return x;
}
template <bool kFlush>
constexpr auto kNegate = [](auto x) { return -kept<decltype(x), kFlush>(x); };
template <bool kFlush>
constexpr auto kAbsolute = [](auto x) { return std::fabs(kept<decltype(x), kFlush>(x)); };
constexpr auto kCopySign = [](auto a, auto b) { return std::copysign(b, a); };

bool signs(Decoder& decoder, std::string_view mnemonic) {
  const bool flush = decoder.take("ftz");
  const Type type = decoder.take_type();
  const bool is_single = type == Type::f32, negates = mnemonic == "neg";
  const OpClass op_class = is_single ? OpClass::f32 : OpClass::f64;
  if (mnemonic == "copysign") {
    const Handler run = is_single ? &lanes<kCopySign, float, float, float> : &lanes<kCopySign, double, double, double>;
    return emit_same(decoder, op_class, run, type, 2);
  }
  Handler run = negates ? &lanes<kNegate<false>, double, double> : &lanes<kAbsolute<false>, double, double>;
  if (is_single) run = negates ? &lanes<kNegate<false>, float, float> : &lanes<kAbsolute<false>, float, float>;
  if (flush) run = negates ? &lanes<kNegate<true>, float, float> : &lanes<kAbsolute<true>, float, float>;
  return (is_single || !flush) && emit_same(decoder, op_class, run, type, 1);
}

}  // namespace

Rounding take_rounding(Decoder& decoder) {
  if (decoder.take("rz")) return Rounding::zero;
  if (decoder.take("rm")) return Rounding::down;
  if (decoder.take("rp")) return Rounding::up;
  decoder.take("rn");
  return Rounding::nearest;
}

bool decode_float(Decoder& decoder, std::string_view mnemonic) {
  const auto type = decoder.last_type();
  if (type != Type::f32 && type != Type::f64) return false;
  if (mnemonic == "neg" || mnemonic == "abs" || mnemonic == "copysign") return signs(decoder, mnemonic);
  const auto named = [](std::string_view name) {
    return std::find_if(std::begin(kNamed), std::end(kNamed), [&](const Named& n) { return n.name == name; });
  };
  const auto* found = named(mnemonic);
  if (found == std::end(kNamed)) return false;
  const bool approximate = !decoder.take_one({"approx", "full"}).empty();
  const Rounding rounding = take_rounding(decoder);
  const bool flush = decoder.take("ftz");
  if (decoder.take("NaN")) found = named(std::string(mnemonic) + ".NaN");
  const bool saturate = decoder.take("sat");
  decoder.take_type();
  if (found == std::end(kNamed) || (found->what >= What::rsqrt && !approximate)) return false;
  const auto make = type == Type::f32 ? found->f32 : found->f64;
  if (make == nullptr || (approximate && type == Type::f64)) return false;
  return emit_same(decoder, type == Type::f32 ? OpClass::f32 : OpClass::f64, make(rounding, flush, saturate), *type,
                   sources_of(found->what));
}

}  // namespace troupe::device::ptx
