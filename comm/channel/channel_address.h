#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "comm/channel/channel.h"

namespace troupe::comm {

/// Bounds of an arena of slots; they keep every product of sizes far from overflow.
inline constexpr std::size_t kMaxSlotBytes = std::size_t{1} << 34;
inline constexpr std::uint32_t kMaxSlots = 1U << 16;

/// What ChannelConsumer::address() says, field by field (docs/channels.md). The sizes are the plan's.
///     inproc:<name>
///     shm:<endpoint>;<arena handle>;<slot bytes>;<slots>
///     zmq:<endpoint>;<slot bytes>;<slots>[;<server's public key>]
struct ChannelAddress {
  Transport transport = Transport::inproc;
  /// inproc.
  std::string name;
  /// shm, zmq.
  std::string endpoint;
  /// shm.
  std::string arena;
  /// shm, zmq: bytes of a slot and number of slots, both from the plan.
  std::size_t slot_bytes = 0;
  std::uint32_t slots = 0;
  /// zmq with CURVE: Z85.
  std::string server_key;

  /// The form above; numbers are decimal.
  std::string text() const;
  /// Errors: invalid_argument.
  /// Names, sizes and the number of fields are checked against the bounds above.
  ///
  static Result<ChannelAddress> parse(const std::string& text);
};

/// Whether `name` can be a routing id and travel in envelopes: 1 to 64 bytes of [a-z0-9.#/_-].
bool is_channel_name(const std::string& name) noexcept;

}  // namespace troupe::comm
