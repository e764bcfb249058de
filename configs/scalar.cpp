#include "configs/scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace troupe::configs {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The length of the run of digits at the front.
std::size_t digits(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  return n;
}

bool is_plain(std::string_view text) {
  if (text.empty() || text == "null" || text == "Null" || text == "NULL") return false;
  const auto safe = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '/' ||
           c == '-';
  };
  return text.front() != '-' && text.front() != '.' && std::all_of(text.begin(), text.end(), safe);
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::string_view body = text;
  if (!body.empty() && (body.front() == '-' || body.front() == '+')) body.remove_prefix(1);
  if (body.empty() || digits(body) != body.size() || (body.size() > 1 && body.front() == '0')) return std::nullopt;
  if (text.front() == '+') text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  std::string_view body = text;
  if (!body.empty() && (body.front() == '-' || body.front() == '+')) body.remove_prefix(1);
  const std::size_t whole = digits(body);
  if (whole > 1 && body.front() == '0') return std::nullopt;
  body.remove_prefix(whole);
  std::size_t fraction = 0;
  if (!body.empty() && body.front() == '.') {
    body.remove_prefix(1);
    fraction = digits(body);
    body.remove_prefix(fraction);
  }
  if (whole + fraction == 0) return std::nullopt;
  if (!body.empty()) {
    if (body.front() != 'e' && body.front() != 'E') return std::nullopt;
    body.remove_prefix(1);
    if (!body.empty() && (body.front() == '-' || body.front() == '+')) body.remove_prefix(1);
    if (body.empty() || digits(body) != body.size()) return std::nullopt;
  }
  if (text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<bool> parse_boolean(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

std::string format_number(double value) { return fmt::format("{}", value); }

std::string format_string(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (c == '$' && i + 1 < text.size() && text[i + 1] == '{') out += '$';
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + '"';
}

std::size_t find_non_text(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = utf8_length(bytes.substr(at));
    if (length == 0 || bytes[at] == '\0') return at;
    at += length;
  }
  return std::string_view::npos;
}

bool is_text(std::string_view bytes) { return find_non_text(bytes) == std::string_view::npos; }

int count_code_points(std::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace troupe::configs
