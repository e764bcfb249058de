#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "base/namespaces.h"

namespace troupe::workers {

/// Where the time of rollout workers goes, in shares of 0..1 that add up to 1; the mean over them.
struct RolloutShares {
  /// Environments are stepped: by the rollout worker itself, or by simulators whose answers it waits for.
  double simulate = 0;
  /// In the policy.
  double policy = 0;
  /// Observations and transitions are written into items.
  double record = 0;
  /// The rest of the work: messages, channels, bookkeeping.
  double hand_over = 0;
  /// Nothing to do: no item is ordered, or its weights are not there yet.
  double wait = 0;
};

/// The same of simulators; hand_over is the sending of answers.
struct SimulatorShares {
  double simulate = 0, hand_over = 0, wait = 0;
};

/// The same of rank 0 of the learners.
struct LearnerShares {
  /// Making rows of trajectories, advantages, their normalisation.
  double advantages = 0;
  /// Minibatches.
  double update = 0;
  /// Handing the weights on.
  double publish = 0;
  /// The rest: copying and replay, ledger, checkpoints.
  double other = 0;
  /// For trajectories.
  double wait = 0;
};

/// Where the time of a job of reinforcement learning goes (docs/metrics.md#phases).
struct PhaseShares {
  RolloutShares rollout;
  /// Absent where rollout workers step the environments.
  std::optional<SimulatorShares> simulators{};
  LearnerShares learner;
};

/// What sets the pace of a job of reinforcement learning.
enum class BottleneckPhase : std::uint8_t {
  simulation,
  policy,
  recording,
  hand_over,
  advantages,
  update,
  publishing,
  /// The learner, with what is none of the phases above.
  learner,
};
constexpr auto enum_names(BottleneckPhase) {
  return std::array{"simulation", "policy", "recording", "hand-over", "advantages", "update", "publishing", "learner"};
}

/// The longest phase of the side that waits less: of rollout workers where learners wait more than they do, else of
/// the learners. Of equal ones the first.
BottleneckPhase bottleneck_of(const PhaseShares& shares);

/// Every share by its name, "rollout/simulate", "env/wait" (simulators), "learner/update", ...
std::vector<std::pair<std::string, double>> named_shares(const PhaseShares& shares);

/// "rollout: simulate 41%, policy 22%, record 9%, hand-over 6%, wait 22%", and the learner's.
std::vector<std::string> phase_texts(const PhaseShares& shares);

}  // namespace troupe::workers
