#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/serve/msgpack_numpy.h"
#include "workers/inference/policy/policy.h"
#include "workers/inference/serve/action_reply.h"
#include "workers/inference/serve/request_reader.h"

namespace troupe {

/// What a client over WebSocket asked for.
struct WebSocketRequest {
  enum class Endpoint : std::uint8_t { infer, reset } endpoint = Endpoint::infer;
  std::optional<std::string> session_id;  ///< as the client sent it
  Observation observation;                ///< of infer; `episode` is empty
};

/// How long the server took, for protocols that say so.
struct ReplyTiming {
  double infer_ms = 0;                  ///< of the policy
  std::optional<double> prev_total_ms;  ///< of the connection's request before, from its arrival to its reply
};

/// A dialect spoken over WebSocket. Has no state: a value that any thread may use.
class WebSocketProtocol {
 public:
  virtual ~WebSocketProtocol() = default;
  /// The frame that a client gets when it connects.
  virtual std::vector<std::byte> metadata() const = 0;
  /// Errors: invalid_argument naming the key.
  virtual Result<WebSocketRequest> parse(std::span<const std::byte> message, const WireTreeLimits& limits) const = 0;
  /// The binary frame that answers infer.
  virtual std::vector<std::byte> reply(const ActionChunk& chunk, const ReplyTiming& timing) const = 0;
};

/// Reads the map that both dialects send. Errors: invalid_argument (no map, an unknown endpoint, what read_observation
/// says).
Result<WebSocketRequest> parse_request_map(std::span<const std::byte> message, const WireTreeLimits& limits,
                                           const PolicyInfo& info, ViewNames names);

}  // namespace troupe
