#pragma once

#include <map>
#include <optional>
#include <string>

#include "comm/control/messages.h"
#include "workers/report/phase_shares.h"

namespace troupe::workers {

/// Where the time of a job of reinforcement learning goes, over windows of steps that end with the step in or before
/// which rollout workers have reported (each does after 2 s of its time). Pure; not thread-safe.
///
/// A rollout worker knows how long it slept until simulators answered, not what they did meanwhile. As much of it
/// counts as simulation as simulators were simulating, min(slept, share of their time that they simulated), and the
/// rest as hand-over.
class PhaseWindow {
 public:
  /// What an actor of `role` has reported; roles other than env and rollout are ignored.
  void add(const std::string& role, const ProducerTimes& times);
  /// Adds a step of the learners by its metrics (time/...). Returns the shares where the window ends: rollout workers
  /// have reported, and simulators or rollout workers have told of simulation.
  std::optional<PhaseShares> end_step(const std::map<std::string, double>& metrics);

 private:
  /// Seconds of the learners' rank 0.
  struct Learner {
    double step = 0, advantages = 0, update = 0, publish = 0, wait = 0;
  };
  ProducerTimes rollout_, env_;
  Learner learner_;
  /// The newest: they need not report in every window.
  std::optional<SimulatorShares> simulators_;
};

}  // namespace troupe::workers
