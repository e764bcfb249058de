#include "model/text/unicode.h"

#include <fmt/format.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/ustring.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "model/text/html_entities.h"

namespace troupe {

namespace {

using Text = std::vector<UChar32>;

Result<icu::UnicodeString> decode(std::string_view utf8) {
  UErrorCode code = U_ZERO_ERROR;
  std::int32_t length = 0;
  u_strFromUTF8(nullptr, 0, &length, utf8.data(), static_cast<std::int32_t>(utf8.size()), &code);
  if (code == U_INVALID_CHAR_FOUND) return Error{Errc::invalid_argument, "a text is not valid UTF-8"};
  return icu::UnicodeString::fromUTF8(icu::StringPiece(utf8.data(), static_cast<std::int32_t>(utf8.size())));
}

std::string encode(const icu::UnicodeString& text) {
  std::string out;
  text.toUTF8String(out);
  return out;
}

Text code_points(const icu::UnicodeString& text) {
  Text out;
  for (std::int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) out.push_back(text.char32At(i));
  return out;
}

/// Python's str.isspace.
bool is_space(UChar32 c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// Python's \w: letters, every kind of number, underscore.
bool is_word(UChar32 c) {
  return c == '_' || (U_GET_GC_MASK(c) & (U_GC_L_MASK | U_GC_ND_MASK | U_GC_NL_MASK | U_GC_NO_MASK)) != 0;
}

bool is_control(UChar32 c) {
  return c <= 0x08 || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || (c >= 0x206A && c <= 0x206F) ||
         c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFC);
}

/// The byte that Windows-1252, or else Latin-1, decodes to `c`; -1 for none.
int windows_1252_byte(UChar32 c) {
  static constexpr std::pair<UChar32, int> kHigh[] = {
      {0x20AC, 0x80}, {0x201A, 0x82}, {0x0192, 0x83}, {0x201E, 0x84}, {0x2026, 0x85}, {0x2020, 0x86}, {0x2021, 0x87},
      {0x02C6, 0x88}, {0x2030, 0x89}, {0x0160, 0x8A}, {0x2039, 0x8B}, {0x0152, 0x8C}, {0x017D, 0x8E}, {0x2018, 0x91},
      {0x2019, 0x92}, {0x201C, 0x93}, {0x201D, 0x94}, {0x2022, 0x95}, {0x2013, 0x96}, {0x2014, 0x97}, {0x02DC, 0x98},
      {0x2122, 0x99}, {0x0161, 0x9A}, {0x203A, 0x9B}, {0x0153, 0x9C}, {0x017E, 0x9E}, {0x0178, 0x9F}};
  if (c < 0x100) return static_cast<int>(c);
  for (const auto& [code, byte] : kHigh) {
    if (code == c) return byte;
  }
  return -1;
}

/// Where UTF-8 was once decoded as a one-byte encoding: a lead byte followed by its continuation bytes, each now a
/// character.
bool looks_mis_decoded(const Text& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int lead = windows_1252_byte(text[i]);
    if (text[i] >= 0x80 && text[i] < 0xA0 && text[i] != 0x85) return true;
    const std::size_t tail = lead >= 0xC2 && lead <= 0xDF   ? 1
                             : lead >= 0xE0 && lead <= 0xEF ? 2
                             : lead >= 0xF0 && lead <= 0xF4 ? 3
                                                            : 0;
    if (tail == 0 || i + tail >= text.size()) continue;
    bool all = true;
    for (std::size_t k = 1; k <= tail; ++k) {
      const int byte = windows_1252_byte(text[i + k]);
      all = all && byte >= 0x80 && byte <= 0xBF;
    }
    if (all) return true;
  }
  return false;
}

/// Ligatures and digraphs that stand for several letters.
const char* expansion(UChar32 c) {
  switch (c) {
    case 0x0132:
      return "IJ";
    case 0x0133:
      return "ij";
    case 0x0149:
      return "'n";
    case 0x01C4:
      return "D\u017D";
    case 0x01C5:
      return "D\u017E";
    case 0x01C6:
      return "d\u017E";
    case 0x01C7:
      return "LJ";
    case 0x01C8:
      return "Lj";
    case 0x01C9:
      return "lj";
    case 0x01CA:
      return "NJ";
    case 0x01CB:
      return "Nj";
    case 0x01CC:
      return "nj";
    case 0x01F1:
      return "DZ";
    case 0x01F2:
      return "Dz";
    case 0x01F3:
      return "dz";
    case 0xFB00:
      return "ff";
    case 0xFB01:
      return "fi";
    case 0xFB02:
      return "fl";
    case 0xFB03:
      return "ffi";
    case 0xFB04:
      return "ffl";
    case 0xFB05:
      return "\u017Ft";
    case 0xFB06:
      return "st";
    default:
      return nullptr;
  }
}

/// Length of the terminal escape sequence at `i`, such as ESC [ 31 m; 0 for none.
std::size_t escape_sequence(const Text& text, std::size_t i) {
  if (text[i] != 0x1B || i + 1 >= text.size() || text[i + 1] != '[') return 0;
  std::size_t end = i + 2;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == ';')) ++end;
  const bool letter = end < text.size() && ((text[end] | 0x20) >= 'a' && (text[end] | 0x20) <= 'z');
  return letter ? end + 1 - i : 0;
}

Result<icu::UnicodeString> repair(const icu::UnicodeString& text) {
  UErrorCode code = U_ZERO_ERROR;
  const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(code);
  const icu::Normalizer2* nfkc = icu::Normalizer2::getNFKCInstance(code);
  if (U_FAILURE(code)) return Error{Errc::internal, fmt::format("ICU has no normaliser: {}", u_errorName(code))};
  const Text in = code_points(text);
  icu::UnicodeString out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const UChar32 c = in[i];
    if (const std::size_t n = escape_sequence(in, i); n > 0) {
      i += n - 1;
    } else if (const char* letters = expansion(c)) {
      out += icu::UnicodeString::fromUTF8(letters);
    } else if (c >= 0xFF01 && c <= 0xFFEF) {
      out += nfkc->normalize(icu::UnicodeString(c), code);  // full-width and half-width forms
    } else if (c == 0x02BC || (c >= 0x2018 && c <= 0x201B)) {
      out += u'\'';
    } else if (c >= 0x201C && c <= 0x201F) {
      out += u'"';
    } else if (!is_control(c)) {
      out += c;
    }
  }
  icu::UnicodeString normal = nfc->normalize(out, code);
  if (U_FAILURE(code))
    return Error{Errc::internal, fmt::format("ICU could not normalise a text: {}", u_errorName(code))};
  return normal;
}

}  // namespace

Result<std::string> to_lower(std::string_view utf8) {
  TROUPE_ASSIGN(icu::UnicodeString text, decode(utf8));
  return encode(text.toLower(icu::Locale::getRoot()));
}

Result<std::string> formalize_language(std::string_view utf8) {
  TROUPE_ASSIGN(icu::UnicodeString text, decode(utf8));
  icu::UnicodeString out;
  for (UChar32 c : code_points(text.toLower(icu::Locale::getRoot()))) {
    if (is_word(c) || is_space(c)) out += c;
  }
  return encode(out);
}

Result<std::string> clean_prompt(std::string_view utf8) {
  TROUPE_ASSIGN(icu::UnicodeString text, decode(utf8));
  if (looks_mis_decoded(code_points(text))) {
    return Error{Errc::invalid_argument,
                 fmt::format("the prompt '{}' looks like UTF-8 decoded as Latin-1; mend it in tasks.jsonl", utf8)};
  }
  std::string bytes = encode(text);
  // The repair step resolves entities itself unless the text has tags; the two calls after it always do.
  if (bytes.find('<') == std::string::npos) {
    TROUPE_ASSIGN(bytes, unescape_html(bytes));
  }
  TROUPE_ASSIGN(text, decode(bytes));
  TROUPE_ASSIGN(text, repair(text));
  TROUPE_ASSIGN(bytes, unescape_html(encode(text)));
  TROUPE_ASSIGN(bytes, unescape_html(bytes));
  TROUPE_ASSIGN(text, decode(bytes));

  icu::UnicodeString out;
  bool gap = false;
  for (UChar32 c : code_points(text)) {
    if (is_space(c)) {
      gap = !out.isEmpty();
      continue;
    }
    if (gap) out += u' ';
    gap = false;
    out += c;
  }
  return encode(out);
}

}  // namespace troupe
