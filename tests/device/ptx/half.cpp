// f16 and bf16 arithmetic, alone and in pairs. Source: PTX ISA 9.0, "Half Precision Floating Point Instructions".
// f32 has more than twice the digits, so that a sum or product rounded to it and then to 16 bits is rounded right; a
// fused one goes through a double cut to odd.
#include <cmath>

#include "tests/device/ptx/rounding.h"

namespace troupe::device::ptx {
namespace {

enum class What : std::uint8_t { add, sub, mul, fma, min, max, min_nan, max_nan, neg, abs, ex2, tanh };
enum class After : std::uint8_t { nothing, saturate, relu };

template <class Format, What kWhat, After kAfter>
std::uint16_t computed(std::uint16_t a, std::uint16_t b = 0, std::uint16_t c = 0) {
  if (kWhat == What::neg) return static_cast<std::uint16_t>(a ^ 0x8000);
  if (kWhat == What::abs) return static_cast<std::uint16_t>(a & 0x7FFF);
  const float x = Format::from(a), y = Format::from(b);
  float result = 0;
  if (kWhat == What::add) result = x + y;
  if (kWhat == What::sub) result = x - y;
  if (kWhat == What::mul) result = x * y;
  if (kWhat == What::fma) {
    result = to_odd_float(to_odd(exact_sum(static_cast<double>(x) * y, static_cast<double>(Format::from(c)))));
  }
  if (kWhat >= What::min && kWhat <= What::max_nan) {
    const bool is_min = kWhat == What::min || kWhat == What::min_nan;
    const bool keeps_nan = kWhat >= What::min_nan;
    if (x != x || y != y) {
      result = (keeps_nan || (x != x && y != y)) ? NAN : x != x ? y : x;
    } else if (x == y) {
      result = std::signbit(x) == is_min ? x : y;
    } else {
      result = (x < y) == is_min ? x : y;
    }
  }
  if (kWhat == What::ex2) result = static_cast<float>(std::exp2(static_cast<double>(x)));
  if (kWhat == What::tanh) result = static_cast<float>(std::tanh(static_cast<double>(x)));
  if (kAfter == After::saturate) result = result > 0 ? (result < 1 ? result : 1.0f) : 0.0f;
  if (kAfter == After::relu) result = result < 0 ? 0.0f : result;
  return Format::to(result);
}

template <class Format, What kWhat, After kAfter>
struct One {
  template <class... T>
  std::uint16_t operator()(T... x) const {
    return computed<Format, kWhat, kAfter>(x...);
  }
};
template <class Format, What kWhat, After kAfter>
struct Pair {
  template <class... T>
  std::uint32_t operator()(T... x) const {
    const std::uint32_t low = computed<Format, kWhat, kAfter>(static_cast<std::uint16_t>(x)...);
    return low | static_cast<std::uint32_t>(computed<Format, kWhat, kAfter>(static_cast<std::uint16_t>(x >> 16)...))
                     << 16;
  }
};

template <class Format, What kWhat, After kAfter>
Handler handler(bool pair) {
  constexpr std::size_t kSources = kWhat == What::fma ? 3 : kWhat >= What::neg ? 1 : 2;
  constexpr std::make_index_sequence<kSources> kN;
  constexpr One<Format, kWhat, kAfter> kOne;
  constexpr Pair<Format, kWhat, kAfter> kPair;
  return pair ? detail::same_type<kPair, std::uint32_t>(kN) : detail::same_type<kOne, std::uint16_t>(kN);
}

template <What kWhat>
bool emit(Decoder& decoder, Type type, bool saturate, bool relu) {
  const bool pair = size_of(type) == 4, is_half = type == Type::f16 || type == Type::f16x2;
  Handler run = is_half ? handler<Half, kWhat, After::nothing>(pair) : handler<Bfloat, kWhat, After::nothing>(pair);
  if (saturate)
    run = is_half ? handler<Half, kWhat, After::saturate>(pair) : handler<Bfloat, kWhat, After::saturate>(pair);
  if (relu) run = is_half ? handler<Half, kWhat, After::relu>(pair) : handler<Bfloat, kWhat, After::relu>(pair);
  return emit_same(decoder, OpClass::half, run, type, kWhat == What::fma ? 3 : kWhat >= What::neg ? 1 : 2);
}

}  // namespace

bool decode_half(Decoder& decoder, std::string_view mnemonic) {
  const auto type = decoder.last_type();
  if (!type || *type < Type::f16 || *type > Type::bf16x2) return false;
  if (mnemonic == "setp" || mnemonic == "cvt" || mnemonic == "selp" || mnemonic == "mov") return false;
  if (decoder.take("approx")) decoder.take("ftz");  // of bf16, always written
  decoder.take("rn");
  const bool keeps_nan = decoder.take("NaN");
  const bool saturate = decoder.take("sat"), relu = decoder.take("relu");
  decoder.take_type();
  if (mnemonic == "add") return emit<What::add>(decoder, *type, saturate, relu);
  if (mnemonic == "sub") return emit<What::sub>(decoder, *type, saturate, relu);
  if (mnemonic == "mul") return emit<What::mul>(decoder, *type, saturate, relu);
  if (mnemonic == "fma") return emit<What::fma>(decoder, *type, saturate, relu);
  if (saturate || relu) return false;
  if (mnemonic == "min" && keeps_nan) return emit<What::min_nan>(decoder, *type, false, false);
  if (mnemonic == "max" && keeps_nan) return emit<What::max_nan>(decoder, *type, false, false);
  if (mnemonic == "min") return emit<What::min>(decoder, *type, false, false);
  if (mnemonic == "max") return emit<What::max>(decoder, *type, false, false);
  if (mnemonic == "neg") return emit<What::neg>(decoder, *type, false, false);
  if (mnemonic == "abs") return emit<What::abs>(decoder, *type, false, false);
  if (mnemonic == "ex2") return emit<What::ex2>(decoder, *type, false, false);
  if (mnemonic == "tanh") return emit<What::tanh>(decoder, *type, false, false);
  return false;
}

}  // namespace troupe::device::ptx
