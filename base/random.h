#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

/// Counter-based generator: every draw is a pure function of (key, counter), so that noise, timesteps, augmentation and initial
/// values do not depend on world size, worker counts or restarts. Philox-4x32-10 (Salmon et al. 2011, "Parallel Random Numbers:
/// As Easy as 1, 2, 3").
class CounterRng {
 public:
  /// `seed` is the job's seed, `stream` separates uses (crop, jitter, noise ...), `index` is the global sample position or a hash.
  CounterRng(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept;

  std::uint32_t next_u32() noexcept;
  /// Uniform in [0, bound), without modulo bias.
  std::uint32_t below(std::uint32_t bound) noexcept;
  /// Uniform in [0, 1), 24 bits.
  float uniform() noexcept;
  /// Uniform in [lo, hi).
  double uniform(double lo, double hi) noexcept;
  /// Standard normal (Box-Muller, both values used in turn).
  float normal() noexcept;

 private:
  void refill() noexcept;
  std::uint32_t key_[2];
  std::uint32_t counter_[4];
  std::uint32_t block_[4] = {};
  int used_ = 4;
  float spare_ = 0;
  bool has_spare_ = false;
};

/// Streams of CounterRng; the numbers are part of what makes a run reproducible and never change.
namespace rng_stream {
inline constexpr std::uint64_t crop = 0, jitter = 1, language = 2, mixture = 3, dropout = 4;  // data.md 4.4
inline constexpr std::uint64_t video_noise = 16, video_timestep = 17, action_noise = 18, action_timestep = 19;
inline constexpr std::uint64_t init = 32, toy_scene = 48;
inline constexpr std::uint64_t eval_video_noise = 64, eval_video_timestep = 65, eval_action_noise = 66,
                               eval_action_timestep = 67;
inline constexpr std::uint64_t policy_action = 80;  // model/policy/action_draws.h
inline constexpr std::uint64_t uniform_action = 81, minibatch = 84, replay = 82,
                               update_noise = 83;  // workers/rollout, workers/rl
}  // namespace rng_stream

}  // namespace troupe
