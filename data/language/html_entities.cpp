#include "data/language/html_entities.h"

#include <unicode/locid.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"
#include "data/language/html_names.h"
#include "data/language/icu_text.h"

namespace troupe::data {
namespace {

constexpr std::size_t kLongestWhole = 24;  // characters between & (or &#) and ; in the narrower reading

struct Named {
  std::string text;   ///< UTF-8
  bool bare = false;  ///< may stand without its semicolon
};
using Names = std::unordered_map<std::string_view, Named>;

/// A reference read at an `&`; length 0 when the & stands for itself.
struct Reference {
  std::size_t length = 0;
  std::string text;
};

bool is_alnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Names read_names() {
  Names names;
  std::string_view rest = kHtmlNames;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
    const std::size_t mark = entry.find_first_of("=!");
    Named named;
    named.bare = entry[mark] == '!';
    for (const char* at = entry.data() + mark; at != entry.data() + entry.size();) {
      std::uint32_t code = 0;
      at = std::from_chars(at + 1, entry.data() + entry.size(), code, 16).ptr;
      append_utf8(named.text, code);
    }
    names.emplace(entry.substr(0, mark), std::move(named));
  }
  return names;
}

const Names& names() {
  static const Names table = read_names();
  return table;
}

/// What browsers make of the numbers 128 to 159: Windows-1252.
constexpr std::uint32_t kWindows1252[32] = {0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                            0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,   0x017D, 0x8F,
                                            0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                            0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

/// Control characters and non-characters that a number may not name.
bool is_forbidden(std::uint32_t code) {
  return (code >= 0x01 && code <= 0x08) || code == 0x0B || (code >= 0x0E && code <= 0x1F) || code == 0x7F ||
         (code >= 0xFDD0 && code <= 0xFDEF) || (code & 0xFFFE) == 0xFFFE;
}

/// A reference at text[at] == '&', text[at+1] == '#'.
Reference numeric(std::string_view text, std::size_t at) {
  const bool hex = at + 2 < text.size() && (text[at + 2] | 0x20) == 'x';
  const std::size_t begin = at + (hex ? 3 : 2);
  if (begin >= text.size()) return {};
  std::uint32_t code = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), code, hex ? 16 : 10);
  if (error == std::errc::invalid_argument) return {};
  Reference out{static_cast<std::size_t>(end - text.data()) - at, {}};
  if (at + out.length < text.size() && text[at + out.length] == ';') ++out.length;
  if (code >= 0x80 && code < 0xA0) {
    append_utf8(out.text, kWindows1252[code - 0x80]);
  } else if (error != std::errc{} || code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
    append_utf8(out.text, 0xFFFD);
  } else if (!is_forbidden(code)) {
    append_utf8(out.text, code);
  }
  return out;
}

/// The letters and digits from `begin`.
std::string_view word_at(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_alnum(text[end])) ++end;
  return text.substr(begin, end - begin);
}

/// A named reference at text[at] == '&': the whole name with its semicolon, else the longest bare name it begins with.
Reference named(std::string_view text, std::size_t at) {
  const std::string_view word = word_at(text, at + 1);
  const std::size_t end = at + 1 + word.size();
  if (end < text.size() && text[end] == ';') {
    if (const auto it = names().find(word); it != names().end()) return {word.size() + 2, it->second.text};
  }
  constexpr std::size_t kLongestBare = 6;
  for (std::size_t n = std::min(word.size(), kLongestBare); n >= 2; --n) {
    const auto it = names().find(word.substr(0, n));
    if (it != names().end() && it->second.bare) return {n + 1, it->second.text};
  }
  return {};
}

Reference reference(std::string_view text, std::size_t at) {
  return at + 1 < text.size() && text[at + 1] == '#' ? numeric(text, at) : named(text, at);
}

/// Upper-case spellings of lower-case names that mean nothing else in HTML5.
std::unordered_map<std::string, std::string> read_capitals() {
  std::unordered_map<std::string, std::string> capitals;
  for (const auto& [name, value] : names()) {
    std::string upper;
    bool lower_case = true;
    for (const char c : name) {
      lower_case = lower_case && !(c >= 'A' && c <= 'Z');
      upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    if (!lower_case || reference("&" + upper + ";", 0).length > 0) continue;
    const auto text = icu::UnicodeString::fromUTF8(value.text).toUpper(icu::Locale::getRoot());
    capitals.emplace(std::move(upper), encode_utf8(text));
  }
  return capitals;
}

/// A whole reference, & to ;, at text[at] == '&'.
Reference whole(std::string_view text, std::size_t at) {
  static const auto capitals = read_capitals();
  const bool number = at + 1 < text.size() && text[at + 1] == '#';
  const std::string_view word = word_at(text, at + (number ? 2 : 1));
  const std::size_t length = word.size() + (number ? 3 : 2);
  if (word.empty() || word.size() > kLongestWhole || at + length > text.size() || text[at + length - 1] != ';') {
    return {};
  }
  if (number) {
    Reference out = numeric(text, at);
    // a part of the digits, or a semicolon as the result, is not taken for a reference
    return out.length == length && out.text != ";" ? out : Reference{};
  }
  if (const auto it = names().find(word); it != names().end()) {
    return {length, it->second.text};
  }
  if (const auto it = capitals.find(std::string(word)); it != capitals.end()) return {length, it->second};
  return {};
}

template <class Read>
std::string unescape(std::string_view text, const Read& read) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = std::min(text.find('&', at), text.size());
    out.append(text, at, next - at);
    at = next;
    if (at == text.size()) break;
    const Reference found = read(text, at);
    if (found.length == 0) out += '&';
    out += found.text;
    at += std::max<std::size_t>(found.length, 1);
  }
  return out;
}

}  // namespace

std::string unescape_html(std::string_view text) { return unescape(text, reference); }

std::string unescape_whole_html(std::string_view text) { return unescape(text, whole); }

}  // namespace troupe::data
