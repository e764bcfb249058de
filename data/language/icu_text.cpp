#include "data/language/icu_text.h"

#include <unicode/ustring.h>

#include <cstdint>
#include <limits>

namespace troupe::data {

Result<icu::UnicodeString> decode_utf8(std::string_view utf8) {
  if (utf8.size() > std::numeric_limits<std::int32_t>::max() / 2) {
    return invalid_argument("a text has 1 GiB or more; prompts are sentences");
  }
  UErrorCode code = U_ZERO_ERROR;
  std::int32_t length = 0;
  const auto size = static_cast<std::int32_t>(utf8.size());
  u_strFromUTF8(nullptr, 0, &length, utf8.data(), size, &code);
  if (code == U_INVALID_CHAR_FOUND) return invalid_argument("a text is not valid UTF-8");
  return icu::UnicodeString::fromUTF8(icu::StringPiece(utf8.data(), size));
}

std::string encode_utf8(const icu::UnicodeString& text) {
  std::string out;
  text.toUTF8String(out);
  return out;
}

CodePoints code_points(const icu::UnicodeString& text) {
  CodePoints out;
  out.reserve(static_cast<std::size_t>(text.length()));
  for (std::int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) out.push_back(text.char32At(i));
  return out;
}

bool is_unicode_space(UChar32 c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace troupe::data
