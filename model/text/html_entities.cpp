#include "model/text/html_entities.h"

#include <fmt/format.h>
#include <unicode/unistr.h>

#include <array>
#include <charconv>
#include <cstdint>

namespace troupe {

namespace {

struct Entity {
  std::string_view name;
  std::uint32_t code;
};

constexpr Entity kOther[] = {
    {"amp", 38},      {"lt", 60},       {"gt", 62},       {"quot", 34},     {"apos", 39},     {"AMP", 38},
    {"LT", 60},       {"GT", 62},       {"QUOT", 34},     {"OElig", 338},   {"oelig", 339},   {"Scaron", 352},
    {"scaron", 353},  {"Yuml", 376},    {"circ", 710},    {"tilde", 732},   {"ensp", 8194},   {"emsp", 8195},
    {"thinsp", 8201}, {"zwnj", 8204},   {"zwj", 8205},    {"lrm", 8206},    {"rlm", 8207},    {"ndash", 8211},
    {"mdash", 8212},  {"lsquo", 8216},  {"rsquo", 8217},  {"sbquo", 8218},  {"ldquo", 8220},  {"rdquo", 8221},
    {"bdquo", 8222},  {"dagger", 8224}, {"Dagger", 8225}, {"bull", 8226},   {"hellip", 8230}, {"permil", 8240},
    {"prime", 8242},  {"Prime", 8243},  {"lsaquo", 8249}, {"rsaquo", 8250}, {"euro", 8364},   {"trade", 8482},
    {"larr", 8592},   {"uarr", 8593},   {"rarr", 8594},   {"darr", 8595},   {"harr", 8596},   {"minus", 8722},
    {"infin", 8734},  {"ne", 8800},     {"le", 8804},     {"ge", 8805},
};

/// Names of U+00A0 to U+00FF in order; all of them are also known without a semicolon.
constexpr std::string_view kLatin1[96] = {
    "nbsp",   "iexcl",  "cent",   "pound",  "curren", "yen",    "brvbar", "sect",   "uml",    "copy",   "ordf",
    "laquo",  "not",    "shy",    "reg",    "macr",   "deg",    "plusmn", "sup2",   "sup3",   "acute",  "micro",
    "para",   "middot", "cedil",  "sup1",   "ordm",   "raquo",  "frac14", "frac12", "frac34", "iquest", "Agrave",
    "Aacute", "Acirc",  "Atilde", "Auml",   "Aring",  "AElig",  "Ccedil", "Egrave", "Eacute", "Ecirc",  "Euml",
    "Igrave", "Iacute", "Icirc",  "Iuml",   "ETH",    "Ntilde", "Ograve", "Oacute", "Ocirc",  "Otilde", "Ouml",
    "times",  "Oslash", "Ugrave", "Uacute", "Ucirc",  "Uuml",   "Yacute", "THORN",  "szlig",  "agrave", "aacute",
    "acirc",  "atilde", "auml",   "aring",  "aelig",  "ccedil", "egrave", "eacute", "ecirc",  "euml",   "igrave",
    "iacute", "icirc",  "iuml",   "eth",    "ntilde", "ograve", "oacute", "ocirc",  "otilde", "ouml",   "divide",
    "oslash", "ugrave", "uacute", "ucirc",  "uuml",   "yacute", "thorn",  "yuml"};

/// What browsers make of the numbers 128 to 159: Windows-1252.
constexpr std::uint32_t kWindows1252[32] = {0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                            0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,   0x017D, 0x8F,
                                            0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                            0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

std::uint32_t lookup(std::string_view name, bool semicolon) {
  for (std::size_t i = 0; i < std::size(kLatin1); ++i) {
    if (kLatin1[i] == name) return 0xA0 + static_cast<std::uint32_t>(i);
  }
  for (const Entity& e : kOther) {
    // without a semicolon only the oldest names count, and those have codes below 128 (but not apos)
    if (e.name == name && (semicolon || (e.code < 128 && name != "apos"))) return e.code;
  }
  return 0;
}

void append(std::string& out, std::uint32_t code) { icu::UnicodeString(static_cast<UChar32>(code)).toUTF8String(out); }

bool is_alnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// A numeric reference at text[at] == '&', text[at+1] == '#'. Returns bytes consumed; 0 when there are no digits.
std::size_t numeric(std::string_view text, std::size_t at, std::string& out) {
  const bool hex = at + 2 < text.size() && (text[at + 2] | 0x20) == 'x';
  const std::size_t begin = at + (hex ? 3 : 2);
  std::uint32_t code = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), code, hex ? 16 : 10);
  if (error == std::errc::invalid_argument) return 0;
  std::size_t used = static_cast<std::size_t>(end - text.data()) - at;
  if (at + used < text.size() && text[at + used] == ';') ++used;
  if (code >= 0x80 && code < 0xA0) code = kWindows1252[code - 0x80];
  const bool invalid = error != std::errc{} || code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000);
  append(out, invalid ? 0xFFFD : code);
  return used;
}

/// A named reference at text[at] == '&'. Returns bytes consumed; 0 when the & stands for itself.
Result<std::size_t> named(std::string_view text, std::size_t at, std::string& out) {
  std::size_t end = at + 1;
  while (end < text.size() && is_alnum(text[end])) ++end;
  const std::string_view name = text.substr(at + 1, end - at - 1);
  const bool semicolon = end < text.size() && text[end] == ';';
  if (semicolon && !name.empty()) {
    if (const std::uint32_t code = lookup(name, true); code != 0) {
      append(out, code);
      return name.size() + 2;
    }
  }
  // With a semicolon the longest name wins, and HTML 5 has more of them than our table.
  if (semicolon && !name.empty()) {
    return Error{Errc::invalid_argument,
                 fmt::format("the HTML entity '&{};' is not in our table; write the character itself", name)};
  }
  for (std::size_t n = name.size(); n >= 2; --n) {
    if (const std::uint32_t code = lookup(name.substr(0, n), false); code != 0) {
      append(out, code);
      return n + 1;
    }
  }
  return std::size_t{0};
}

}  // namespace

Result<std::string> unescape_html(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t used = 0;
    if (text[at] == '&' && at + 1 < text.size()) {
      if (text[at + 1] == '#') {
        used = numeric(text, at, out);
      } else {
        TROUPE_ASSIGN(used, named(text, at, out));
      }
    }
    if (used == 0) {
      out += text[at];
      used = 1;
    }
    at += used;
  }
  return out;
}

}  // namespace troupe
