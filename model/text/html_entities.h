#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// Resolves HTML character references as Python's html.unescape: decimal, hexadecimal, and the names of HTML 4's
/// Latin-1 and punctuation tables; a few old names also without their semicolon. A text without `&` comes back
/// unchanged. Errors: invalid_argument (a name with a semicolon that is not in the table: HTML 5 has 2,231 of them).
Result<std::string> unescape_html(std::string_view utf8);

}  // namespace troupe
