#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/namespaces.h"

namespace troupe::base {

/// Bytes of the well-formed sequence at the start of `text`; 0 if there is none.
/// Source: Unicode 15, table 3-7: no overlong forms, no surrogates, at most U+10FFFF. NUL is a character.
std::size_t utf8_length(std::string_view text) noexcept;

/// Appends one code point. False, and nothing appended, if it is none: a surrogate or beyond U+10FFFF.
bool append_utf8(std::string& out, std::uint32_t code);

/// Whether `text` is well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
/// Source: RFC 3629. NUL is allowed.
/// Any thread; reads every byte once.
bool is_utf8(std::string_view text) noexcept;

/// `text` with each byte that is not part of a well-formed sequence replaced by '?'. For captured output that goes into
/// a message.
/// As many bytes as `text` has; well-formed text comes back unchanged.
std::string to_utf8(std::string_view text);

}  // namespace troupe::base
