#pragma once

#include <string>
#include <string_view>

#include "base/namespaces.h"

namespace troupe::base {

/// Whether `text` is well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
/// Source: RFC 3629. NUL is allowed.
/// Any thread; reads every byte once.
bool is_utf8(std::string_view text) noexcept;

/// `text` with each byte that is not part of a well-formed sequence replaced by '?'. For captured output that goes into
/// a message.
/// As many bytes as `text` has; well-formed text comes back unchanged.
std::string to_utf8(std::string_view text);

}  // namespace troupe::base
