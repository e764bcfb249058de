#include "comm/serve/numpy_dtype.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/utf8.h"
#include "comm/serve/wire_value.h"

namespace troupe::comm {

namespace {

constexpr std::size_t kMaxDims = 8;
constexpr std::int64_t kMaxTextBytes = 1 << 20;

double from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  double value = 0;
  if (exponent == 31) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else {
    value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  }
  return (bits & 0x8000) ? -value : value;
}

/// An item of kind b, i, u or f, whose bytes are the low ones of `bits`.
double number_of(std::uint64_t bits, const NumpyDtype& dtype) {
  if (dtype.kind == 'f') {
    if (dtype.item_bytes == 2) return from_half(static_cast<std::uint16_t>(bits));
    if (dtype.item_bytes == 4) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    return std::bit_cast<double>(bits);
  }
  if (dtype.kind != 'i') return static_cast<double>(bits);
  // moved up and down again, the sign fills the bytes above
  const auto spare = static_cast<int>(64 - 8 * dtype.item_bytes);
  return static_cast<double>(static_cast<std::int64_t>(bits << spare) >> spare);
}

}  // namespace

Result<NumpyDtype> parse_dtype(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return invalid_argument(fmt::format("dtype '{}': {}", to_utf8(text.substr(0, 24)), why));
  };
  if (text.size() < 3) return refuse("want numpy's dtype.str, such as <f4 or |u1");
  const char order = text[0];
  NumpyDtype dtype{.kind = text[1]};
  const auto [end, failed] = std::from_chars(text.data() + 2, text.data() + text.size(), dtype.item_bytes);
  if (failed != std::errc() || end != text.data() + text.size())
    return refuse("want numpy's dtype.str, such as <f4 or |u1");
  if (std::string_view("biufSU").find(dtype.kind) == std::string_view::npos)
    return refuse(fmt::format("arrays of kind {} are not taken; send numbers (b, i, u, f) or text (S, U)",
                              to_utf8(text.substr(1, 1))));
  if (order != '<' && order != '|') return refuse("only little-endian data is taken; convert it with astype('<..')");
  // numpy counts characters of U, which have four bytes
  if (dtype.kind == 'U')
    dtype.item_bytes = dtype.item_bytes < 0 || dtype.item_bytes > kMaxTextBytes ? -1 : 4 * dtype.item_bytes;
  const std::int64_t size = dtype.item_bytes;
  bool fits = false;
  switch (dtype.kind) {
    case 'b':
      fits = size == 1;
      break;
    case 'f':
      fits = size == 2 || size == 4 || size == 8;
      break;
    case 'S':
    case 'U':
      fits = size >= 0 && size <= kMaxTextBytes;
      break;
    default:
      fits = size == 1 || size == 2 || size == 4 || size == 8;
      break;
  }
  if (!fits) return refuse("this size is not taken");
  return dtype;
}

Result<std::int64_t> array_bytes(const NumpyDtype& dtype, std::span<const std::int64_t> shape) {
  if (shape.size() > kMaxDims)
    return invalid_argument(fmt::format("an array of {} dimensions; at most {} are taken", shape.size(), kMaxDims));
  std::int64_t bytes = dtype.item_bytes;
  bool is_empty = bytes == 0;
  for (const std::int64_t d : shape) {
    if (d < 0) return invalid_argument(fmt::format("an array with a dimension of {}", d));
    if (d == 0) is_empty = true;
  }
  if (is_empty) return std::int64_t{0};
  for (const std::int64_t d : shape) {
    if (d > (std::int64_t{1} << 62) / bytes) return invalid_argument("an array whose size does not fit 62 bits");
    bytes *= d;
  }
  return bytes;
}

Result<NdArray> make_ndarray(std::string dtype, std::vector<std::int64_t> shape, std::vector<std::byte> data) {
  TROUPE_ASSIGN(const NumpyDtype parsed, parse_dtype(dtype));
  TROUPE_ASSIGN(const std::int64_t bytes, array_bytes(parsed, shape));
  NdArray array{std::move(dtype), std::move(shape), std::move(data)};
  if (bytes != static_cast<std::int64_t>(array.data.size()))
    return invalid_argument(
        fmt::format("an array {} has {} bytes; {} came", describe(array), bytes, array.data.size()));
  return array;
}

Result<std::vector<double>> to_doubles(const NdArray& array) {
  TROUPE_ASSIGN(const NumpyDtype dtype, parse_dtype(array.dtype));
  std::vector<double> out;
  if (dtype.kind == 'S' || dtype.kind == 'U')
    return invalid_argument(fmt::format("text {} where numbers are wanted", describe(array)));
  const auto item = static_cast<std::size_t>(dtype.item_bytes);
  out.reserve(array.data.size() / item);
  for (std::size_t at = 0; at + item <= array.data.size(); at += item) {
    std::uint64_t bits = 0;  // little-endian: the low bytes come first
    std::memcpy(&bits, array.data.data() + at, item);
    out.push_back(number_of(bits, dtype));
  }
  return out;
}

Result<std::vector<std::string>> to_texts(const NdArray& array) {
  TROUPE_ASSIGN(const NumpyDtype dtype, parse_dtype(array.dtype));
  if (dtype.kind != 'S' && dtype.kind != 'U')
    return invalid_argument(fmt::format("numbers {} where text is wanted", describe(array)));
  std::vector<std::string> texts;
  if (dtype.item_bytes == 0) return texts;
  const auto item = static_cast<std::size_t>(dtype.item_bytes);
  for (std::size_t at = 0; at + item <= array.data.size(); at += item) {
    std::string text;
    if (dtype.kind == 'S') {
      text.assign(reinterpret_cast<const char*>(array.data.data() + at), item);
      while (!text.empty() && text.back() == '\0') text.pop_back();  // numpy pads with zeros
      if (!is_utf8(text)) return invalid_argument("an array of byte strings that are not UTF-8");
    } else {
      std::size_t length = item;
      const auto code_at = [&](std::size_t i) {
        std::uint32_t c = 0;
        std::memcpy(&c, array.data.data() + at + i, 4);
        return c;
      };
      while (length > 0 && code_at(length - 4) == 0) length -= 4;
      for (std::size_t i = 0; i < length; i += 4) {
        if (!append_utf8(text, code_at(i)))
          return invalid_argument("an array of strings with a code that is no Unicode character");
      }
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace troupe::comm
