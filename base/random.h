#pragma once

#include <cstdint>
#include <string_view>

#include "base/namespaces.h"

namespace troupe::base {

/// Counter-based generator: every draw is a pure function of (key, counter), so that noise, timesteps, augmentation and
/// initial values do not depend on world size, worker counts or restarts. Philox-4x32-10 (Salmon et al. 2011, "Parallel
/// Random Numbers: As Easy as 1, 2, 3").
/// Bits: key = mix64(seed xor mix64(stream * 0x9E3779B97F4A7C15 + 1)); counter words 2 and 3 hold the index, words 0
/// and 1 count blocks of four 32-bit outputs. Cheap to make (one per use); not thread-safe.
class CounterRng {
 public:
  /// `seed` is the job's seed, `stream` separates uses (crop, jitter, noise ...), `index` is the global sample position
  /// or a hash.
  CounterRng(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept;

  /// The next of the 2^66 outputs of this (seed, stream, index).
  std::uint32_t next_u32() noexcept;
  /// Uniform in [0, bound), without modulo bias.
  /// By Lemire's method (arXiv:1805.10941): usually one output, more when it is rejected. `bound` >= 1.
  std::uint32_t below(std::uint32_t bound) noexcept;
  /// Uniform in [0, 1), 24 bits.
  /// One output.
  float uniform() noexcept;
  /// Uniform in [lo, hi).
  /// One output, 32 bits: good to (hi - lo) / 2^32.
  double uniform(double lo, double hi) noexcept;
  /// Standard normal (Box-Muller, both values used in turn).
  /// One output a call on average; computed in f64, rounded to f32. At most 6.7 in magnitude.
  float normal() noexcept;

 private:
  /// Philox's ten rounds over the counter, then the counter plus one.
  void refill() noexcept;
  std::uint32_t key_[2];
  std::uint32_t counter_[4];
  /// Outputs of the block in hand; used_ counts those given out.
  std::uint32_t block_[4] = {};
  int used_ = 4;
  /// The second value of a Box-Muller pair.
  float spare_ = 0;
  bool has_spare_ = false;
};

/// Streams of CounterRng; the numbers are part of what makes a run reproducible and never change.
namespace rng_stream {
/// Of a sample, by its global position: place of the crop, colour jitter, choice among paraphrases, dataset of a
/// mixture, dropout of the instruction (image, data/language, data/sampling).
inline constexpr std::uint64_t crop = 0, jitter = 1, language = 2, mixture = 3, dropout = 4;
/// Of a training sample, by its global position: flow-matching noise and timesteps of video latents and of actions.
inline constexpr std::uint64_t video_noise = 16, video_timestep = 17, action_noise = 18, action_timestep = 19;
/// Of a training sample, by its global position: what is added to predictions to draw targets from the model
/// (model/loss/sampled_label.h), of video latents and of actions.
inline constexpr std::uint64_t video_label = 20, action_label = 21;
/// Initial weights, by parameter; frames of the toy dataset.
inline constexpr std::uint64_t init = 32, toy_scene = 48;
/// The same for held-out windows, so that evaluations of two checkpoints see equal noise.
inline constexpr std::uint64_t eval_video_noise = 64, eval_video_timestep = 65, eval_action_noise = 66,
                               eval_action_timestep = 67;
/// Reinforcement learning: actions of a policy by (environment, policy step), random first actions, order of
/// minibatches, draws from replay, noise inside an update.
inline constexpr std::uint64_t policy_action = 80;  // model/policy/action_head.h
inline constexpr std::uint64_t uniform_action = 81, minibatch = 84, replay = 82,
                               update_noise = 83;  // workers/rollout, workers/rl
/// Draws of a bootstrap (workers/report/compare).
inline constexpr std::uint64_t bootstrap = 96;
}  // namespace rng_stream

}  // namespace troupe::base
