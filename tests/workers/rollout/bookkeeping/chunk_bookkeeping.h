#pragma once

#include <cstdint>
#include <vector>

#include "tests/workers/rollout/bookkeeping/episode_metrics.h"
#include "tests/workers/rollout/bookkeeping/reward_shaping.h"

namespace troupe::workers {

/// What a simulator says about one control step of one environment.
struct StepSignal {
  /// Raw.
  double reward = 0;
  /// The task's end: success or failure.
  bool is_terminal = false;
  bool success = false, fail = false;
};

/// Rules of one environment's chunks of K actions. Each control step may terminate the episode (the task's end) and
/// truncate it (steps >= max_episode_steps); where both are set it counts as a termination. Reset modes, by RLinf's
/// names:
///     A  auto_reset false, ignore_terminations false   one episode a rollout; flags stay at their step, and what
///                                                      follows the end is masked
///     B  auto_reset false, ignore_terminations true    fixed horizon; flags are collapsed into the chunk's last step
///     C  auto_reset true                               a new episode after the chunk that ended one; flags are
///                                                      collapsed as in B
struct ChunkRules {
  /// K.
  std::int64_t chunk = 1;
  /// Truncation once as many steps are done; 0: never.
  std::int32_t max_episode_steps = 0;
  /// Mode C: a new episode begins after the chunk that ended one.
  bool auto_reset = true;
  /// Mode B: only the time limit ends an episode; success is counted all the same.
  bool ignore_terminations = false;
  /// The return stops growing after the first success, that step included, and the mean reward is over the steps
  /// until then (LIBERO).
  bool return_until_success = false;
  RewardShaping shaping = {};
  /// Reproduces RLinf: the environment steps on after an end inside a chunk, with rewards and counters, and its
  /// flags are what the last step says. Without it the rest of the chunk is not executed: rewards 0, flags 0,
  /// counters as they were.
  bool parity = false;
  /// Parity, RLinf's ManiSkill wrapper: flags are collapsed in mode A too.
  bool parity_collapses_always = false;
};

/// One chunk of one environment.
struct ChunkRecord {
  /// [K], shaped; 0 after the end.
  std::vector<double> rewards;
  /// [K]: raw in mode A, else collapsed into the last element.
  std::vector<std::uint8_t> terminated, truncated;
  /// [K]: the action was executed.
  std::vector<std::uint8_t> valid;
  /// An episode ended in this chunk.
  bool is_done = false;
  /// After the chunk, of the episode that ended where is_done.
  EpisodeMetrics episode;
};

/// Turns a simulator's signals into the rows of a rollout: flags, shaped rewards, counters of one environment. The
/// owner steps the simulator as long as wants_step() says so, at most K times, and resets it when finish() returned
/// a done row and auto_reset is set. Not thread-safe.
class ChunkBookkeeper {
 public:
  explicit ChunkBookkeeper(const ChunkRules& rules);

  /// False: the episode is over, and the rest of the chunk is not executed.
  bool wants_step() const { return rules_.parity || !is_over_; }
  /// The next action of the chunk was executed. More than K of them, or one after the end, are an invariant
  /// violation.
  void step(const StepSignal& signal);
  /// The chunk is over after `step` was called for each of its executed actions. With auto_reset the next chunk
  /// begins a new episode where this one ended.
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
  /// 0: none yet.
  std::int32_t steps_to_success_ = 0;
  bool is_over_ = false;
};

}  // namespace troupe::workers
