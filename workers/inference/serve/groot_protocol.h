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

namespace troupe::workers {

/// What a GR00T client asked for.
struct GrootRequest {
  enum class Endpoint : std::uint8_t {
    ping,
    kill,
    get_action,
    reset,
    get_modality_config
  } endpoint = Endpoint::get_action;
  /// Empty: none came.
  std::string api_token;
  /// Of get_action: one for each row of the batch.
  std::vector<Observation> rows;
  /// Arrays had a batch axis, so the reply has one.
  bool is_batched = false;
  /// Names like video.front: the reply says action.<key>, else <key>
  bool is_flat = false;
};

/// GR00T's dialect (docs/serve.md#groot): one request, one reply over ZeroMQ, both MessagePack with arrays as `.npy`
/// bytes. Has no state: any thread may use it.
class GrootProtocol {
 public:
  /// `form` nothing: names as the client's. array is refused by start_front.
  GrootProtocol(const PolicyInfo& info, std::optional<ActionForm> form) : info_(info), form_(form) {}

  /// Reads endpoint and token, and of get_action the observations once the token was found right. Errors:
  /// invalid_argument.
  Result<GrootRequest> parse(std::span<const std::byte> message, const WireTreeLimits& limits,
                             const std::string& token) const;
  /// [{key: f32 [B, N, width] or [N, width]}, {}]
  std::vector<std::byte> action_reply(const GrootRequest& request, const std::vector<ActionChunk>& chunks) const;
  /// {video, state, action, language}: each {delta_indices, modality_keys}
  std::vector<std::byte> modality_reply() const;
  /// {"status": "ok", "message": text}
  static std::vector<std::byte> status_reply(const std::string& text);
  /// {}
  static std::vector<std::byte> empty_reply();
  /// {"error": text}
  static std::vector<std::byte> error_reply(const std::string& text);

 private:
  Result<void> read_rows(WireMap observation, GrootRequest& request) const;

  const PolicyInfo info_;
  const std::optional<ActionForm> form_;
};

}  // namespace troupe::workers
