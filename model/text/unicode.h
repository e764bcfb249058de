#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// Lower case by Unicode's full, locale-independent rules, as Python's str.lower(). Errors: invalid_argument (not
/// UTF-8).
Result<std::string> to_lower(std::string_view utf8);

/// GEAR's formalize_language: lower case, then every character that is neither a word character (letter, number,
/// underscore) nor white space is deleted. Errors: invalid_argument (not UTF-8).
Result<std::string> formalize_language(std::string_view utf8);

/// The cleaning before Wan's tokenizer: text repair (ligatures, full-width forms, curly quotes, line ends, control
/// characters, NFC), HTML entities resolved, white space collapsed, ends stripped. Errors: invalid_argument for text
/// that would need guessing: not UTF-8, UTF-8 that was once decoded as Latin-1 or Windows-1252, a named HTML entity
/// outside our table. Source: data.md 4.9.
Result<std::string> clean_prompt(std::string_view utf8);

}  // namespace troupe
