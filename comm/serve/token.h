#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::comm {

/// Shortest token that a server takes.
inline constexpr std::size_t kMinTokenBytes = 16;

/// Whether two texts are equal, in a time that depends on the second one's length only.
bool constant_time_equal(std::string_view expected, std::string_view given) noexcept;

/// The token in an HTTP Authorization value: "Bearer TOKEN", or "Api-Key TOKEN" as openpi-client writes. Empty: none.
std::string_view token_of_authorization(std::string_view value) noexcept;

/// The token in a file: its first line without blanks at the ends. Errors: those of
/// read_guarded_file for a secret; invalid_argument (shorter than kMinTokenBytes, or not printable ASCII).
Result<std::string> read_bearer_token(const std::string& path);

}  // namespace troupe::comm
