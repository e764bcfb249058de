#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/namespaces.h"

namespace troupe::base {

/// What a name of a job, node group or run may look like: at most 64 characters.
/// Names become folders and parts of keys, hence no upper case and no slash.
inline constexpr std::string_view kNamePattern = "[a-z0-9][a-z0-9._-]{0,63}";
/// True when all of `text` matches kNamePattern.
bool is_name(std::string_view text) noexcept;

/// Unpredictable bytes from the kernel. Aborts when the kernel has none to give, because ids would then repeat.
void random_bytes(void* out, std::size_t size);

/// Identifies one start of a process or actor; never 0.
/// 64 random bits: two starts of one actor differ, so that a late message of the first is told from the second.
std::uint64_t new_incarnation();

/// Identifies one message, for replies and for dropping repeats.
using MessageId = std::array<std::uint8_t, 16>;
/// 16 random bytes (docs/wire.md#envelope).
MessageId new_message_id();
/// 32 lower-case hex digits.
/// As logs and events show it.
std::string to_hex(const MessageId& id);

/// Name of a run directory, such as "20261121-113400-7f3a": wall clock in UTC, then 16 random bits. Sorts by time.
/// Two runs of one second get the same name with probability 1 in 65,536; the caller then finds the folder taken.
std::string new_run_id(const Clock& clock);

}  // namespace troupe::base
