#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "placement/rl_shape.h"

namespace troupe {

/// What a rollout worker asks of a simulator. It travels with the credit and lies at the start of the credit's slot; the
/// simulator overwrites it with the answer: the BlockLayout of the transition, or nothing after `release`.
struct BlockRequest {
  enum class Kind : std::int32_t {
    reset = 1,    ///< begin episode `episode` in every row; makes the block's environments if they are not there
    step = 2,     ///< one policy step; `actions` follow
    release = 3,  ///< destroy the block's environments: it is simulated elsewhere, or nowhere
  };
  Kind kind = Kind::reset;
  std::int32_t block = 0;
  std::int64_t episode = 0;
  std::int64_t serial = 0;         ///< requests of one rollout worker, for logs
  std::span<const float> actions;  ///< step: [n, K, A]
};

/// Bytes of the fixed part; the actions follow.
inline constexpr std::size_t kBlockRequestBytes = 64;

/// Bytes of a request with `actions` numbers.
constexpr std::size_t block_request_bytes(std::size_t actions) { return kBlockRequestBytes + actions * sizeof(float); }
/// Writes the fixed part and leaves room for the actions, which the caller writes at request_actions(). `out` holds
/// block_request_bytes(...).
void write_block_request(const BlockRequest& request, std::span<std::byte> out);
/// Room for the actions of a request in `bytes`.
inline std::span<float> request_actions(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data() + kBlockRequestBytes),
          (bytes.size() - kBlockRequestBytes) / sizeof(float)};
}
/// Reads one; `actions` views `bytes` and has `num_actions` numbers where the kind has any. Errors: invalid_argument.
Result<BlockRequest> read_block_request(std::span<const std::byte> bytes, std::size_t num_actions);

/// The episode that a block begins with when it is begun anew in `round`; later episodes of its environments count up, and a
/// round never reaches the next one's numbers.
constexpr std::int64_t first_episode(std::int64_t round) { return round << 20; }

}  // namespace troupe
