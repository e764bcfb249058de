#pragma once

#include <unicode/unistr.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Between UTF-8 and ICU's strings, for the sources of this folder only.

namespace troupe::data {

/// Code points of a text.
using CodePoints = std::vector<UChar32>;

/// ICU's form of a text. Errors: invalid_argument (not UTF-8, 1 GiB or more).
Result<icu::UnicodeString> decode_utf8(std::string_view utf8);

/// UTF-8 of a text.
std::string encode_utf8(const icu::UnicodeString& text);

/// The code points of a text.
CodePoints code_points(const icu::UnicodeString& text);

/// Python's str.isspace of one character.
bool is_unicode_space(UChar32 c);

}  // namespace troupe::data
