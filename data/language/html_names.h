#pragma once

#include <string_view>

namespace troupe::data {

/// HTML5's named character references as text: `name=HEX` or `name!HEX`, one or two hexadecimal code points joined by
/// a comma, separated by blanks, sorted by name. `!` marks the names that may stand without their semicolon. Read
/// through html_entities.h.
extern const std::string_view kHtmlNames;

}  // namespace troupe::data
