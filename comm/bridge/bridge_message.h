#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/serve/wire_value.h"

namespace troupe::comm {

/// Frame 0 of every message between a hub and its workers (docs/bridge.md#messages).
inline constexpr char kBridgeMagic[] = "TRB1";
/// [major, minor]: the major one must be equal; keys that a minor one adds are ignored by others.
inline constexpr std::int64_t kBridgeVersion[] = {1, 1};

/// One message: type, session, request number and body.
struct BridgeMessage {
  /// "HELLO", "STEP", ...
  std::string type;
  /// 0: none yet.
  std::int64_t session = 0;
  /// Of a question, and of its answer.
  std::int64_t request = 0;
  WireMap body = {};
};

/// Frame 1.
std::vector<std::byte> encode_bridge_message(BridgeMessage message);
/// The message in frame 1. Unknown keys are ignored. Errors: invalid_argument (no MessagePack, over `max_bytes`, of
/// another major version, a key that is missing or of another type).
Result<BridgeMessage> decode_bridge_message(std::span<const std::byte> bytes, std::size_t max_bytes);

}  // namespace troupe::comm
