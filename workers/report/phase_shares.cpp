#include "workers/report/phase_shares.h"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::workers {

namespace {

using Candidate = std::pair<double, BottleneckPhase>;

template <std::size_t N>
BottleneckPhase longest(const std::array<Candidate, N>& phases) {
  const auto shorter = [](const Candidate& a, const Candidate& b) { return a.first < b.first; };
  return std::max_element(phases.begin(), phases.end(), shorter)->second;
}

}  // namespace

BottleneckPhase bottleneck_of(const PhaseShares& shares) {
  const RolloutShares& rollout = shares.rollout;
  const LearnerShares& learner = shares.learner;
  if (learner.wait > rollout.wait) {
    return longest<4>({{{rollout.simulate, BottleneckPhase::simulation},
                        {rollout.policy, BottleneckPhase::policy},
                        {rollout.record, BottleneckPhase::recording},
                        {rollout.hand_over, BottleneckPhase::hand_over}}});
  }
  return longest<4>({{{learner.update, BottleneckPhase::update},
                      {learner.advantages, BottleneckPhase::advantages},
                      {learner.publish, BottleneckPhase::publishing},
                      {learner.other, BottleneckPhase::learner}}});
}

std::vector<std::pair<std::string, double>> named_shares(const PhaseShares& shares) {
  const RolloutShares& rollout = shares.rollout;
  const LearnerShares& learner = shares.learner;
  std::vector<std::pair<std::string, double>> named = {{"rollout/simulate", rollout.simulate},
                                                       {"rollout/policy", rollout.policy},
                                                       {"rollout/record", rollout.record},
                                                       {"rollout/hand_over", rollout.hand_over},
                                                       {"rollout/wait", rollout.wait}};
  if (shares.simulators) {
    named.emplace_back("env/simulate", shares.simulators->simulate);
    named.emplace_back("env/hand_over", shares.simulators->hand_over);
    named.emplace_back("env/wait", shares.simulators->wait);
  }
  named.emplace_back("learner/advantages", learner.advantages);
  named.emplace_back("learner/update", learner.update);
  named.emplace_back("learner/publish", learner.publish);
  named.emplace_back("learner/other", learner.other);
  named.emplace_back("learner/wait", learner.wait);
  return named;
}

std::vector<std::string> phase_texts(const PhaseShares& shares) {
  const RolloutShares& rollout = shares.rollout;
  const LearnerShares& learner = shares.learner;
  return {fmt::format("rollout: simulate {:.0f}%, policy {:.0f}%, record {:.0f}%, hand-over {:.0f}%, wait {:.0f}%",
                      100 * rollout.simulate, 100 * rollout.policy, 100 * rollout.record, 100 * rollout.hand_over,
                      100 * rollout.wait),
          fmt::format("learner: advantages {:.0f}%, update {:.0f}%, publish {:.0f}%, other {:.0f}%, wait {:.0f}%",
                      100 * learner.advantages, 100 * learner.update, 100 * learner.publish, 100 * learner.other,
                      100 * learner.wait)};
}

}  // namespace troupe::workers
