#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace troupe {

/// What a name of a job, node group or run may look like: at most 64 characters.
inline constexpr std::string_view kNamePattern = "[a-z0-9][a-z0-9._-]{0,63}";
bool is_name(std::string_view text) noexcept;

/// Unpredictable bytes from the kernel. Aborts when the kernel has none to give, because ids would then repeat.
void random_bytes(void* out, std::size_t size);

/// Identifies one start of a process or actor; never 0.
std::uint64_t new_incarnation();

/// Identifies one message, for replies and for dropping repeats.
using MessageId = std::array<std::uint8_t, 16>;
MessageId new_message_id();
/// 32 lower-case hex digits.
std::string to_hex(const MessageId& id);

/// Name of a run directory, such as "20261121-113400-7f3a": wall clock in UTC, then 16 random bits. Sorts by time.
std::string new_run_id(const Clock& clock);

}  // namespace troupe
