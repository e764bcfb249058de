#include "data/language/python_repr.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "data/language/python_literal.h"

namespace troupe::data {
namespace {

/// Shortest digits that give the value back, without the ".0" of a float's repr.
std::string shortest(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const double magnitude = std::abs(value);
  const bool exponent = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                 exponent ? std::chars_format::scientific : std::chars_format::fixed)
                       .ptr;
  return {buffer, end};
}

/// Quotes and escapes as Python's repr; what lies past 127 goes through `high`.
template <class High>
std::string quoted(const std::string& text, const High& high) {
  const bool use_double = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  const char quote = use_double ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n' || c == '\t' || c == '\r') {
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (byte < 0x80) {
      out += c;
    } else {
      out += high(c);
    }
  }
  return out + quote;
}

}  // namespace

std::string float_repr(double value) {
  std::string text = shortest(value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string complex_repr(double real, double imaginary) {
  std::string tail = shortest(imaginary) + "j";
  if (real == 0 && !std::signbit(real)) return tail;
  return "(" + shortest(real) + (tail[0] == '-' ? "" : "+") + tail + ")";
}

std::string string_repr(const std::string& text) {
  return quoted(text, [](char c) { return std::string(1, c); });
}

std::string bytes_repr(const std::string& bytes) {
  return "b" + quoted(bytes, [](char c) { return fmt::format("\\x{:02x}", static_cast<unsigned char>(c)); });
}

std::string PythonLiteral::repr() const {
  if (kind == Kind::scalar) return text;
  if (kind == Kind::string) return string_repr(text);
  std::string out(1, kind == Kind::list ? '[' : kind == Kind::tuple ? '(' : '{');
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += kind == Kind::dict && i % 2 == 1 ? ": " : ", ";
    out += items[i].repr();
  }
  if (kind == Kind::tuple && items.size() == 1) out += ',';
  return out + (kind == Kind::list ? ']' : kind == Kind::tuple ? ')' : '}');
}

}  // namespace troupe::data
