#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::configs {

// How scalars are read and written. Plain YAML scalars are typed by the field they stand in, never by their looks:
// no octal, no hexadecimal, no digit separators, no yes/no/on/off, no infinities.

/// Decimal: [+-]digits without leading zeros. Nothing when malformed or beyond 64 bits.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// Decimal with optional fraction and exponent; every integer is a number. Nothing when malformed or not finite.
std::optional<double> parse_number(std::string_view text);

/// `true` or `false`, in lower case.
std::optional<bool> parse_boolean(std::string_view text);

/// The shortest text that parse_number() reads back to the same bits.
std::string format_number(double value);

/// The text as a YAML scalar: plain where that is unambiguous, double-quoted with escapes otherwise. `${` is written
/// `$${`, so that a loaded value is never taken for a reference.
std::string format_string(std::string_view text);

/// The first byte that is NUL or no part of well-formed UTF-8; npos where there is none.
std::size_t find_non_text(std::string_view bytes);

/// True for well-formed UTF-8 without NUL bytes.
bool is_text(std::string_view bytes);

/// Code points before byte `bytes.size()`; what an editor counts as columns.
int count_code_points(std::string_view text);

}  // namespace troupe::configs
