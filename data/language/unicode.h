#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::data {

/// Lower case by Unicode's full, locale-independent rules, as Python's str.lower(). Errors: invalid_argument (not
/// UTF-8).
Result<std::string> to_lower(std::string_view utf8);

/// GEAR's formalize_language: lower case, then every character that is neither a word character (letter, number,
/// underscore) nor white space is deleted. Errors: invalid_argument (not UTF-8).
Result<std::string> formalize_language(std::string_view utf8);

/// The cleaning before Wan's tokenizer, of the whole prompt and once (docs/text.md): ftfy's repair (HTML references,
/// terminal escapes, control characters, ligatures, widths, quotes, NFC) line by line until nothing changes, then
/// references resolved twice, white space collapsed to single blanks, ends stripped. Equal to the reference on text
/// that was decoded with the right encoding. Pure; any thread may call it. Errors: invalid_argument (not UTF-8; text
/// that was UTF-8 and was decoded with another encoding, whose repair would be a guess; more than 64 levels of
/// references within references).
/// Source: the cleaning in Wan2.1's tokenizer wrapper: ftfy.fix_text, html.unescape twice, white space.
Result<std::string> clean_prompt(std::string_view utf8);

}  // namespace troupe::data
