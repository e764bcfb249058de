#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "placement/rl_shape.h"

namespace troupe::workers {

/// What a rollout worker asks of a simulator. It travels with the credit and lies at the start of the credit's slot;
/// the simulator overwrites it with the answer: the BlockLayout of the transition, or nothing after `release`.
///
/// Bytes of the fixed part, little-endian: i32 kind, i32 block, i64 episode, i64 serial, u64 number of actions, 32
/// bytes of zeros. After `step` the actions follow as f32.
struct BlockRequest {
  enum class Kind : std::int32_t {
    /// Begin episode `episode` in every row; makes the block's environments if they are not there.
    reset = 1,
    /// One policy step; `actions` follow.
    step = 2,
    /// Destroy the block's environments: it is simulated elsewhere, or nowhere.
    release = 3,
  };
  Kind kind = Kind::reset;
  /// Block of environments, 0 .. env.blocks - 1: environments [block * n, (block + 1) * n).
  std::int32_t block = 0;
  /// Of `reset` alone: first_episode() of the round.
  std::int64_t episode = 0;
  /// Number of the request among those of one rollout worker, for logs; the receiver does not check it.
  std::int64_t serial = 0;
  /// Of `step` alone: [n, K, A] for n rows, K actions a chunk, A numbers an action; discrete actions as the index.
  std::span<const float> actions = {};
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
/// Reads one; `actions` views `bytes` and has `num_actions` = n K A numbers after `step`, none otherwise. Errors:
/// invalid_argument (shorter than the fixed part, an unknown kind, a negative block, another number of actions).
Result<BlockRequest> read_block_request(std::span<const std::byte> bytes, std::size_t num_actions);

/// The episode that a block begins with when it is begun anew in `round`: round * 2^20. Later episodes of its
/// environments count up from there; a round has fewer than 2^20 of them, so that an episode number, and with it the
/// random stream of a reset, is used once.
constexpr std::int64_t first_episode(std::int64_t round) { return round << 20; }

}  // namespace troupe::workers
