#include "data/language/unicode.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>

#include "data/language/icu_text.h"

namespace troupe::data {
namespace {

/// Python's \w: letters, every kind of number, underscore.
bool is_word(UChar32 c) {
  return c == '_' || (U_GET_GC_MASK(c) & (U_GC_L_MASK | U_GC_ND_MASK | U_GC_NL_MASK | U_GC_NO_MASK)) != 0;
}

}  // namespace

Result<std::string> to_lower(std::string_view utf8) {
  TROUPE_ASSIGN(icu::UnicodeString text, decode_utf8(utf8));
  return encode_utf8(text.toLower(icu::Locale::getRoot()));
}

Result<std::string> formalize_language(std::string_view utf8) {
  TROUPE_ASSIGN(icu::UnicodeString text, decode_utf8(utf8));
  icu::UnicodeString out;
  for (const UChar32 c : code_points(text.toLower(icu::Locale::getRoot()))) {
    if (is_word(c) || is_unicode_space(c)) out += c;
  }
  return encode_utf8(out);
}

}  // namespace troupe::data
