#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Whether `text` is well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
bool is_utf8(std::string_view text) noexcept;

/// `text` with each byte that is not part of a well-formed sequence replaced by '?'. For captured output that goes into
/// a message.
std::string to_utf8(std::string_view text);

}  // namespace troupe
