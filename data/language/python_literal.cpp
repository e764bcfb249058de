#include "data/language/python_literal.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>

#include "base/utf8.h"
#include "data/language/python_repr.h"

namespace troupe::data {

namespace {

constexpr int kMaxDepth = 32;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<PythonLiteral> whole() {
    skip_space(true);
    const std::size_t begin = at_;
    auto first = value(0);
    skip_space(false);
    if (first && peek() == ',') first = bare_tuple(std::move(*first));
    const std::size_t end = at_;
    skip_space(true);
    if (!first || at_ != text_.size()) return std::nullopt;
    // an indented line of its own, before or behind, is a syntax error
    if (indented(text_.substr(0, begin)) || indented(text_.substr(end))) return std::nullopt;
    return first;
  }

 private:
  using Maybe = std::optional<PythonLiteral>;
  using Kind = PythonLiteral::Kind;

  /// Whether white space has a line end and then ends with a blank.
  static bool indented(std::string_view space) {
    return space.find('\n') != std::string_view::npos && (space.back() == ' ' || space.back() == '\t');
  }

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
    if (string_prefix() > 0) return strings();
    if (text_.substr(at_, 3) == "...") {
      at_ += 3;
      return PythonLiteral{Kind::scalar, "Ellipsis", {}};
    }
    if (is_digit(c) || c == '.' || c == '-' || c == '+') return number(depth > 0);
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
      if (!key || !is_hashable(*key)) return std::nullopt;
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

  /// Lists, dicts and sets are neither keys nor elements of sets: Python raises TypeError.
  static bool is_hashable(const PythonLiteral& item) {
    if (item.kind == Kind::scalar || item.kind == Kind::string) return true;
    return item.kind == Kind::tuple && std::all_of(item.items.begin(), item.items.end(), is_hashable);
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

  static bool is_quote(char c) { return c == '\'' || c == '"'; }

  /// Length of the letters before a quote: r, u, b, br or rb in any case; 0 for none.
  std::size_t string_prefix() const {
    const char first = static_cast<char>(peek() | 0x20), second = static_cast<char>(peek(1) | 0x20);
    if ((first == 'r' || first == 'u' || first == 'b') && is_quote(peek(1))) return 1;
    const bool pair = (first == 'b' && second == 'r') || (first == 'r' && second == 'b');
    return pair && is_quote(peek(2)) ? 2 : 0;
  }

  /// Adjacent strings are one string; text and bytes do not mix. Bytes become their repr at once.
  Maybe strings() {
    std::string text;
    std::optional<bool> bytes;
    while (true) {
      const std::size_t prefix = string_prefix();
      const char quote = peek(prefix);
      if (!is_quote(quote)) break;
      bool raw = false, of_bytes = false;
      for (std::size_t i = 0; i < prefix; ++i) {
        raw = raw || (peek(i) | 0x20) == 'r';
        of_bytes = of_bytes || (peek(i) | 0x20) == 'b';
      }
      if (bytes.value_or(of_bytes) != of_bytes) return std::nullopt;
      bytes = of_bytes;
      at_ += prefix;
      if (!string(quote, raw, of_bytes, text)) return std::nullopt;
      skip_space(false);
    }
    if (bytes.value_or(false)) return PythonLiteral{Kind::scalar, bytes_repr(text), {}};
    return PythonLiteral{Kind::string, text, {}};
  }

  bool string(char quote, bool raw, bool bytes, std::string& out) {
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
        at_ += triple ? 3 : 1;
        return true;
      }
      if ((c == '\n' && !triple) || (bytes && (c & 0x80) != 0)) return false;
      ++at_;
      if (c != '\\') {
        out += c;
      } else if (raw) {
        out += c;
        if (at_ < text_.size()) out += text_[at_++];
      } else if (!escape(bytes, out)) {
        return false;
      }
    }
    return false;
  }

  bool escape(bool bytes, std::string& out) {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    static constexpr std::string_view kNames = "abfnrtv\\'\"", kValues = "\a\b\f\n\r\t\v\\'\"";
    if (const std::size_t i = kNames.find(c); i != std::string_view::npos) return out += kValues[i], true;
    if (c == '\n') return true;
    if (c == 'x') return coded(2, bytes, out);
    if (!bytes && c == 'u') return coded(4, false, out);
    if (!bytes && c == 'U') return coded(8, false, out);
    if (!bytes && c == 'N') return false;
    if (c >= '0' && c <= '7') {
      std::uint32_t code = static_cast<std::uint32_t>(c - '0');
      for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i)
        code = code * 8 + static_cast<std::uint32_t>(text_[at_++] - '0');
      return append(code, bytes, out);
    }
    out += '\\';
    out += c;
    return true;
  }

  /// False when `code` is no character.
  static bool append(std::uint32_t code, bool byte, std::string& out) {
    if (!byte) return append_utf8(out, code);
    out += static_cast<char>(code & 0xFF);
    return true;
  }

  bool coded(std::size_t digits, bool byte, std::string& out) {
    std::uint32_t code = 0;
    if (at_ + digits > text_.size()) return false;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, begin + digits, code, 16);
    if (error != std::errc{} || end != begin + digits || !append(code, byte, out)) return false;
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

  /// A number with its sign, and the complex number that a sum of a real and an imaginary one is.
  Maybe number(bool in_brackets) {
    const bool negative = peek() == '-';
    if (negative || peek() == '+') {
      ++at_;
      skip_space(in_brackets);
    }
    const auto first = unsigned_number();
    if (!first) return std::nullopt;
    const double sign = negative ? -1.0 : 1.0;
    if (first->imaginary) {
      // minus an imaginary number has the real part -0
      return PythonLiteral{Kind::scalar, complex_repr(negative ? -0.0 : 0.0, sign * first->value), {}};
    }
    const std::size_t behind_first = at_;
    skip_space(in_brackets);
    const char operation = peek();
    if (operation != '+' && operation != '-') {
      at_ = behind_first;
      return PythonLiteral{Kind::scalar, first->repr(negative), {}};
    }
    ++at_;
    skip_space(in_brackets);
    const auto second = unsigned_number();
    if (!second || !second->imaginary) return std::nullopt;
    const bool minus_zero = negative && first->real && first->value == 0;
    const double real = minus_zero ? -0.0 : first->value == 0 ? 0.0 : sign * first->value;
    // Python adds complex numbers: the second one's real part is +0
    return PythonLiteral{
        Kind::scalar,
        operation == '+' ? complex_repr(real + 0.0, second->value) : complex_repr(real - 0.0, 0.0 - second->value),
        {}};
  }

  struct Number {
    std::string digits;  ///< of an integer, decimal
    double value = 0;
    bool real = false;  ///< written with a point or an exponent
    bool imaginary = false;

    std::string repr(bool negative) const {
      if (real) return float_repr(negative ? -value : value);
      return (negative && digits != "0" ? "-" : "") + digits;
    }
  };

  std::optional<Number> unsigned_number() {
    if (peek() == '0' && (peek(1) | 0x20) != 'e' && (peek(1) | 0x20) != 'j' && is_name(peek(1)) && !is_digit(peek(1)) &&
        peek(1) != '_') {
      return radix();
    }
    Number out;
    const bool whole = digits(out.digits);
    if (peek() == '.') {
      out.real = true;
      out.digits += '.';
      ++at_;
      const bool fraction = digits(out.digits);
      if (!whole && !fraction) return std::nullopt;
    }
    if (!whole && !out.real) return std::nullopt;
    if ((peek() | 0x20) == 'e') {
      const std::size_t sign = peek(1) == '-' || peek(1) == '+' ? 1 : 0;
      if (!is_digit(peek(1 + sign))) return std::nullopt;
      out.real = true;
      out.digits += 'e';
      if (sign != 0) out.digits += peek(1);
      at_ += 1 + sign;
      digits(out.digits);
    }
    out.imaginary = (peek() | 0x20) == 'j';
    if (out.imaginary) ++at_;
    if (is_name(peek())) return std::nullopt;
    out.value = std::strtod(out.digits.c_str(), nullptr);
    if (out.real || out.imaginary) return out;
    const bool zero = out.digits.find_first_not_of('0') == std::string::npos;
    if (!zero && out.digits[0] == '0') return std::nullopt;  // 007 is a syntax error
    if (zero) out.digits = "0";
    return out;
  }

  std::optional<Number> radix() {
    const char kind = static_cast<char>(peek(1) | 0x20);
    const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (base == 0) return std::nullopt;
    std::string text;
    at_ += 2;
    if (peek() == '_') ++at_;
    for (; is_name(peek()) && (peek() & 0x80) == 0; ++at_) {
      if (peek() == '_' && (text_[at_ - 1] == '_' || !is_name(peek(1)))) return std::nullopt;
      if (peek() != '_') text += peek();
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    if (is_name(peek())) return std::nullopt;
    return Number{.digits = std::to_string(value), .value = static_cast<double>(value)};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<PythonLiteral> parse_python_literal(std::string_view text) { return Parser(text).whole(); }

}  // namespace troupe::data
