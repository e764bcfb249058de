#include "workers/controller/phase_window.h"

#include <algorithm>

#include "configs/role_kind.h"

namespace troupe::workers {

namespace {

/// What `parts` leave of `whole`; rounding may leave less than nothing.
double rest(double whole, double parts) { return std::max(0.0, whole - parts); }

double seconds_of(const ProducerTimes& times) { return times.idle_seconds + times.busy_seconds; }

SimulatorShares shares_of_simulators(const ProducerTimes& times) {
  const double whole = seconds_of(times);
  return {.simulate = times.simulate_seconds / whole,
          .hand_over = rest(times.busy_seconds, times.simulate_seconds) / whole,
          .wait = times.idle_seconds / whole};
}

RolloutShares shares_of_rollout(const ProducerTimes& times, const std::optional<SimulatorShares>& simulators) {
  double simulate = times.simulate_seconds;
  if (simulators) simulate += std::min(times.await_seconds, simulators->simulate * seconds_of(times));
  const double known = simulate + times.policy_seconds + times.record_seconds;
  const double hand_over = rest(times.busy_seconds, known), whole = times.idle_seconds + known + hand_over;
  return {.simulate = simulate / whole,
          .policy = times.policy_seconds / whole,
          .record = times.record_seconds / whole,
          .hand_over = hand_over / whole,
          .wait = times.idle_seconds / whole};
}

}  // namespace

void PhaseWindow::add(const std::string& role, const ProducerTimes& times) {
  if (role == RoleKind::rollout) rollout_ += times;
  if (role == RoleKind::env) env_ += times;
}

std::optional<PhaseShares> PhaseWindow::end_step(const std::map<std::string, double>& metrics) {
  const auto seconds = [&](const char* name) {
    const auto found = metrics.find(name);
    return found == metrics.end() ? 0.0 : found->second;
  };
  learner_.step += seconds("time/step");
  learner_.advantages += seconds("time/cal_adv_and_returns");
  learner_.update += seconds("time/actor_training");
  learner_.publish += seconds("time/publish");
  learner_.wait += seconds("time/generate_rollouts");
  const bool has_simulators = seconds_of(env_) > 0 || simulators_, has_simulated = rollout_.simulate_seconds > 0;
  if (seconds_of(rollout_) <= 0 || learner_.step <= 0 || (!has_simulators && !has_simulated)) return std::nullopt;
  if (seconds_of(env_) > 0) simulators_ = shares_of_simulators(env_);
  const double known = learner_.advantages + learner_.update + learner_.publish + learner_.wait;
  const double other = rest(learner_.step, known), whole = known + other;
  const PhaseShares shares{.rollout = shares_of_rollout(rollout_, simulators_),
                           .simulators = simulators_,
                           .learner = {.advantages = learner_.advantages / whole,
                                       .update = learner_.update / whole,
                                       .publish = learner_.publish / whole,
                                       .other = other / whole,
                                       .wait = learner_.wait / whole}};
  rollout_ = env_ = {};
  learner_ = {};
  return shares;
}

}  // namespace troupe::workers
