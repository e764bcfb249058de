#include "workers/data/python_literal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace troupe {

namespace {

constexpr int kMaxDepth = 32;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

void append_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

/// Python's repr of a float: shortest digits, an exponent below 1e-4 and from 1e16 on.
std::string float_repr(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const double magnitude = std::abs(value);
  const bool exponent = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                 exponent ? std::chars_format::scientific : std::chars_format::fixed)
                       .ptr;
  std::string text(buffer, end);
  if (!exponent && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string string_repr(const std::string& text) {
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
    } else {
      out += c;
    }
  }
  return out + quote;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<PythonLiteral> whole() {
    skip_space(true);
    auto first = value(0);
    skip_space(false);
    if (first && peek() == ',') first = bare_tuple(std::move(*first));
    skip_space(true);
    if (!first || at_ != text_.size()) return std::nullopt;
    return first;
  }

 private:
  using Maybe = std::optional<PythonLiteral>;
  using Kind = PythonLiteral::Kind;

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  /// Blanks and comments; line ends too inside brackets and around the whole.
  void skip_space(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\f' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  Maybe bare_tuple(PythonLiteral first) {
    PythonLiteral tuple{Kind::tuple, {}, {}};
    tuple.items.push_back(std::move(first));
    while (take(',')) {
      skip_space(false);
      if (at_ == text_.size() || peek() == '\n') break;
      auto next = value(1);
      if (!next) return std::nullopt;
      tuple.items.push_back(std::move(*next));
      skip_space(false);
    }
    return tuple;
  }

  Maybe value(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    const char c = peek();
    if (c == '[') return sequence(']', Kind::list, depth);
    if (c == '(') return sequence(')', Kind::tuple, depth);
    if (c == '{') return braces(depth);
    if (c == '\'' || c == '"') return strings();
    const char quote = peek(1);
    if ((c == 'r' || c == 'R' || c == 'u' || c == 'U') && (quote == '\'' || quote == '"')) return strings();
    if (is_digit(c) || c == '.' || c == '-' || c == '+') return number();
    for (const char* word : {"None", "True", "False"}) {
      const std::size_t n = std::char_traits<char>::length(word);
      if (text_.substr(at_, n) == word && !is_name(peek(n))) {
        at_ += n;
        return PythonLiteral{Kind::scalar, word, {}};
      }
    }
    return std::nullopt;
  }

  Maybe sequence(char close, Kind kind, int depth) {
    PythonLiteral out{kind, {}, {}};
    ++at_;
    bool comma = false;
    while (true) {
      skip_space(true);
      if (take(close)) break;
      if (!out.items.empty() && !comma) return std::nullopt;
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      out.items.push_back(std::move(*item));
      skip_space(true);
      comma = take(',');
    }
    // (x) without a comma is x itself
    if (kind == Kind::tuple && out.items.size() == 1 && !comma) return std::move(out.items[0]);
    return out;
  }

  Maybe braces(int depth) {
    PythonLiteral out{Kind::dict, {}, {}};
    ++at_;
    bool comma = true;
    while (true) {
      skip_space(true);
      if (take('}')) return out;
      if (!comma) return std::nullopt;
      auto key = value(depth + 1);
      if (!key) return std::nullopt;
      skip_space(true);
      const bool pair = peek() == ':';
      if (out.items.empty() && !pair) out.kind = Kind::set;
      if (pair != (out.kind == Kind::dict)) return std::nullopt;
      Maybe mapped;
      if (pair) {
        ++at_;
        skip_space(true);
        mapped = value(depth + 1);
        if (!mapped) return std::nullopt;
        skip_space(true);
      }
      insert(out, std::move(*key), std::move(mapped));
      comma = take(',');
    }
  }

  /// A repeated key keeps its first place and takes the last value.
  static void insert(PythonLiteral& out, PythonLiteral key, Maybe mapped) {
    const std::size_t step = out.kind == Kind::dict ? 2 : 1;
    const std::string name = key.repr();
    for (std::size_t i = 0; i < out.items.size(); i += step) {
      if (out.items[i].repr() != name) continue;
      if (mapped) out.items[i + 1] = std::move(*mapped);
      return;
    }
    out.items.push_back(std::move(key));
    if (mapped) out.items.push_back(std::move(*mapped));
  }

  /// Adjacent strings are one string.
  Maybe strings() {
    PythonLiteral out{Kind::string, {}, {}};
    while (true) {
      const char c = peek();
      const bool prefixed = c == 'r' || c == 'R' || c == 'u' || c == 'U';
      const char quote = prefixed ? peek(1) : c;
      if (quote != '\'' && quote != '"') return out;
      if (prefixed) ++at_;
      if (!string(quote, c == 'r' || c == 'R', out.text)) return std::nullopt;
      skip_space(false);
    }
  }

  bool string(char quote, bool raw, std::string& out) {
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
        at_ += triple ? 3 : 1;
        return true;
      }
      if (c == '\n' && !triple) return false;
      ++at_;
      if (c != '\\') {
        out += c;
      } else if (raw) {
        out += c;
        if (at_ < text_.size()) out += text_[at_++];
      } else if (!escape(out)) {
        return false;
      }
    }
    return false;
  }

  bool escape(std::string& out) {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    static constexpr std::string_view kNames = "abfnrtv\\'\"", kValues = "\a\b\f\n\r\t\v\\'\"";
    if (const std::size_t i = kNames.find(c); i != std::string_view::npos) return out += kValues[i], true;
    if (c == '\n') return true;
    if (c == 'x') return coded(2, out);
    if (c == 'u') return coded(4, out);
    if (c == 'U') return coded(8, out);
    if (c == 'N') return false;
    if (c >= '0' && c <= '7') {
      std::uint32_t code = static_cast<std::uint32_t>(c - '0');
      for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i)
        code = code * 8 + static_cast<std::uint32_t>(text_[at_++] - '0');
      append_utf8(out, code);
      return true;
    }
    out += '\\';
    out += c;
    return true;
  }

  bool coded(std::size_t digits, std::string& out) {
    std::uint32_t code = 0;
    if (at_ + digits > text_.size()) return false;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, begin + digits, code, 16);
    if (error != std::errc{} || end != begin + digits || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      return false;
    append_utf8(out, code);
    at_ += digits;
    return true;
  }

  /// Digits with single underscores between them, appended without the underscores.
  bool digits(std::string& out) {
    const std::size_t begin = out.size();
    while (is_digit(peek()) || (peek() == '_' && out.size() > begin && is_digit(peek(1)))) {
      if (peek() != '_') out += peek();
      ++at_;
    }
    return out.size() > begin;
  }

  Maybe number() {
    const bool negative = peek() == '-';
    if (negative || peek() == '+') {
      ++at_;
      skip_space(false);
    }
    if (peek() == '0' && (peek(1) | 0x20) != 'e' && is_name(peek(1)) && !is_digit(peek(1)) && peek(1) != '_')
      return radix(negative);
    std::string text;
    const bool whole = digits(text);
    bool real = false;
    if (peek() == '.') {
      real = true;
      text += '.';
      ++at_;
      const bool fraction = digits(text);
      if (!whole && !fraction) return std::nullopt;
    }
    if (!whole && !real) return std::nullopt;
    if ((peek() | 0x20) == 'e') {
      const std::size_t sign = peek(1) == '-' || peek(1) == '+' ? 1 : 0;
      if (!is_digit(peek(1 + sign))) return std::nullopt;
      real = true;
      text += 'e';
      if (sign != 0) text += peek(1);
      at_ += 1 + sign;
      digits(text);
    }
    if (is_name(peek())) return std::nullopt;
    if (real) {
      const double value = std::strtod(text.c_str(), nullptr);
      return PythonLiteral{Kind::scalar, float_repr(negative ? -value : value), {}};
    }
    const bool zero = text.find_first_not_of('0') == std::string::npos;
    if (zero) return PythonLiteral{Kind::scalar, "0", {}};
    if (text[0] == '0') return std::nullopt;  // 007 is a syntax error
    return PythonLiteral{Kind::scalar, (negative ? "-" : "") + text, {}};
  }

  Maybe radix(bool negative) {
    const char kind = static_cast<char>(peek(1) | 0x20);
    const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (base == 0) return std::nullopt;
    std::uint64_t value = 0;
    const char* begin = text_.data() + at_ + 2;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value, base);
    if (error != std::errc{}) return std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    if (is_name(peek())) return std::nullopt;
    return PythonLiteral{Kind::scalar, (negative && value != 0 ? "-" : "") + std::to_string(value), {}};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

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

std::optional<PythonLiteral> parse_python_literal(std::string_view text) { return Parser(text).whole(); }

}  // namespace troupe
