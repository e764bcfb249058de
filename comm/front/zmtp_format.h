#pragma once

#include <cstddef>
#include <cstdint>

#include "base/namespaces.h"

/// Bytes of ZMTP 3 (ZeroMQ RFC 23): a greeting, then frames of flags, length (1 or 8 bytes) and body.
namespace troupe::comm::zmtp {

/// Signature (0xff, 8 bytes, 0x7f), version (2), mechanism (20), as-server (1), filler (31).
inline constexpr std::size_t kSignature = 10, kMajor = 10, kMechanism = 12, kAsServer = 32, kGreeting = 64;
/// Flags of a frame.
inline constexpr std::uint8_t kMore = 1, kLong = 2, kCommand = 4;

}  // namespace troupe::comm::zmtp
