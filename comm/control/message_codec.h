#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "comm/control/messages.h"

namespace troupe::comm {

/// Wire number of the message's type, its struct's kType (docs/wire.md#payload).
std::uint16_t type_of(const Message& message);

/// Name of a type, such as "heartbeat"; "unknown" for a number that no message has.
std::string_view name_of(std::uint16_t type) noexcept;

/// The payload frame: a MessagePack map of the struct's fields (docs/wire.md). Errors: invalid_argument (over a limit,
/// not UTF-8).
Result<std::vector<std::byte>> encode(const Message& message);

/// Parses a payload. Pure; safe on any bytes. Absent keys keep the struct's defaults, unknown keys are skipped.
/// Errors: not_found (unsupported type), invalid_argument (malformed).
Result<Message> decode(std::uint16_t type, std::span<const std::byte> payload);

}  // namespace troupe::comm
