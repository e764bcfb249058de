#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/serve/msgpack_numpy.h"
#include "workers/inference/policy/policy.h"
#include "workers/inference/serve/action_reply.h"
#include "workers/inference/serve/request_reader.h"

namespace troupe::workers {

/// What a client over WebSocket asked for.
struct WebSocketRequest {
  enum class Endpoint : std::uint8_t { infer, reset } endpoint = Endpoint::infer;
  /// As the client sent it.
  std::optional<std::string> session_id;
  /// Of infer; `episode` is empty.
  Observation observation;
};

/// How long the server took, for protocols that say so.
struct ReplyTiming {
  /// Milliseconds of the policy call.
  double infer_ms = 0;
  /// Milliseconds of the connection's request before, from its arrival to its reply; empty for the first.
  std::optional<double> prev_total_ms;
};

/// A dialect spoken over WebSocket: MessagePack with arrays in binary frames (docs/serve.md#messagepack-with-arrays).
/// Has no state: any thread may use it. Errors are sent as a text frame "code: sentence", then close 1011.
class WebSocketProtocol {
 public:
  WebSocketProtocol(const PolicyInfo& info, ActionForm form, ViewNames names)
      : info_(info), form_(form), names_(names) {}
  virtual ~WebSocketProtocol() = default;
  /// The frame that a client gets when it connects.
  virtual std::vector<std::byte> metadata() const = 0;
  /// Reads the map that all dialects send. Errors: invalid_argument (no map, an unknown endpoint, what read_observation
  /// says).
  Result<WebSocketRequest> parse(std::span<const std::byte> message, const WireTreeLimits& limits) const;
  /// The binary frame that answers infer.
  virtual std::vector<std::byte> reply(const ActionChunk& chunk, const ReplyTiming& timing) const = 0;

 protected:
  const PolicyInfo info_;
  const ActionForm form_;

 private:
  const ViewNames names_;
};

}  // namespace troupe::workers
