#pragma once

#include <cstdint>
#include <vector>

#include "workers/rollout/bookkeeping/episode_metrics.h"
#include "workers/rollout/bookkeeping/reward_shaping.h"

namespace troupe {

/// What a simulator says about one control step of one environment.
struct StepSignal {
  double reward = 0;         ///< raw
  bool is_terminal = false;  ///< the task's end: success or failure
  bool success = false, fail = false;
};

/// Rules of one environment's chunks (rl.md 1.2 to 1.4, 1.7).
struct ChunkRules {
  std::int64_t chunk = 1;              ///< K
  std::int32_t max_episode_steps = 0;  ///< truncation once as many steps are done; 0: never
  bool auto_reset = true;              ///< mode C: a new episode begins after the chunk that ended one
  bool ignore_terminations = false;    ///< mode B: only the time limit ends an episode; success is counted all the same
  bool return_until_success =
      false;  ///< the return stops growing after the first success, that step included, and the mean reward
              ///< is over the steps until then (LIBERO)
  RewardShaping shaping = {};
  /// Reproduces RLinf: the environment steps on after an end inside a chunk, with rewards and counters, and its flags are what the last step
  /// says. Without it the rest of the chunk is not executed: rewards 0, flags 0, counters as they were.
  bool parity = false;
  bool parity_collapses_always = false;  ///< parity, RLinf's ManiSkill wrapper: flags are collapsed in mode A too
};

/// One chunk of one environment.
struct ChunkRecord {
  std::vector<double> rewards;                      ///< [K]
  std::vector<std::uint8_t> terminated, truncated;  ///< [K]: raw in mode A, else collapsed into the last element
  std::vector<std::uint8_t> valid;                  ///< [K]: the action was executed
  bool is_done = false;                             ///< an episode ended in this chunk
  EpisodeMetrics episode;                           ///< after the chunk, of the episode that ended where is_done
};

/// Turns a simulator's signals into the rows of a rollout: flags, shaped rewards, counters of one environment. The owner steps the simulator as
/// long as wants_step() says so, and resets it when finish() returned a done row and auto_reset is set. Not thread-safe.
class ChunkBookkeeper {
 public:
  explicit ChunkBookkeeper(const ChunkRules& rules);

  /// False: the episode is over, and the rest of the chunk is not executed.
  bool wants_step() const { return rules_.parity || !is_over_; }
  /// The next action of the chunk was executed.
  void step(const StepSignal& signal);
  /// The chunk is over after `step` was called for each of its executed actions. With auto_reset the next chunk begins a new episode where
  /// this one ended.
  ChunkRecord finish();
  /// A new episode, by the owner's decision.
  void restart();
  /// Control steps of the running episode: of the observation at hand.
  std::int32_t elapsed() const { return metrics_.episode_len; }

 private:
  bool collapses_flags() const;

  ChunkRules rules_;
  RewardShaper shaper_;
  ChunkRecord row_;
  EpisodeMetrics metrics_;
  std::int32_t steps_to_success_ = 0;  ///< 0: none yet
  bool is_over_ = false;
};

}  // namespace troupe
