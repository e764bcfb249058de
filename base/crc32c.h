#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/namespaces.h"

namespace troupe::base {

/// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, start and final xor 0xFFFFFFFF). Guards against bugs, not
/// attackers. Source: RFC 3720 appendix B.4.
/// With the processor's crc32 instruction where it has one. Used by envelopes (docs/wire.md#envelope) and file
/// formats. Example: the nine bytes "123456789" give 0xE3069283.
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

/// The same by table only; crc32c() takes it where the processor has no instruction for it.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) noexcept;

}  // namespace troupe::base
