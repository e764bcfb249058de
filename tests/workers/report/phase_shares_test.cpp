#include "workers/report/phase_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;

// Shares of rollout workers: simulate, policy, record, hand_over, wait; of the learner: advantages, update, publish,
// other, wait.
TEST(PhaseSharesTest, TheLongestPhaseOfTheSideThatWaitsLessSetsThePace) {
  struct Case {
    RolloutShares rollout;
    LearnerShares learner;
    BottleneckPhase bottleneck;
  };
  const Case cases[] = {{{0.6, 0.2, 0.1, 0.1, 0.0}, {0.0, 0.3, 0.0, 0.0, 0.7}, BottleneckPhase::simulation},
                        {{0.1, 0.6, 0.1, 0.1, 0.1}, {0.0, 0.3, 0.0, 0.0, 0.7}, BottleneckPhase::policy},
                        {{0.1, 0.2, 0.4, 0.1, 0.2}, {0.0, 0.3, 0.0, 0.0, 0.7}, BottleneckPhase::recording},
                        {{0.2, 0.2, 0.1, 0.5, 0.0}, {0.0, 0.3, 0.0, 0.0, 0.7}, BottleneckPhase::hand_over},
                        {{0.2, 0.1, 0.1, 0.0, 0.6}, {0.1, 0.8, 0.0, 0.1, 0.0}, BottleneckPhase::update},
                        {{0.2, 0.1, 0.1, 0.0, 0.6}, {0.7, 0.2, 0.0, 0.1, 0.0}, BottleneckPhase::advantages},
                        {{0.2, 0.1, 0.1, 0.0, 0.6}, {0.1, 0.2, 0.6, 0.1, 0.0}, BottleneckPhase::publishing},
                        {{0.2, 0.1, 0.1, 0.0, 0.6}, {0.1, 0.2, 0.1, 0.6, 0.0}, BottleneckPhase::learner},
                        // beside each other: an update that is longer than any phase of collecting does not hold it up
                        {{0.4, 0.3, 0.1, 0.1, 0.1}, {0.0, 0.6, 0.0, 0.0, 0.4}, BottleneckPhase::simulation},
                        // one after the other
                        {{0.3, 0.1, 0.0, 0.0, 0.6}, {0.0, 0.6, 0.0, 0.0, 0.4}, BottleneckPhase::update},
                        {{0.3, 0.2, 0.0, 0.1, 0.4}, {0.0, 0.4, 0.0, 0.0, 0.6}, BottleneckPhase::simulation},
                        // neither side waits, and phases are equal
                        {{0.5, 0.5, 0.0, 0.0, 0.0}, {0.0, 1.0, 0.0, 0.0, 0.0}, BottleneckPhase::update},
                        {{0.4, 0.4, 0.0, 0.2, 0.0}, {0.0, 0.9, 0.0, 0.0, 0.1}, BottleneckPhase::simulation}};
  for (const Case& c : cases) {
    EXPECT_EQ(bottleneck_of({.rollout = c.rollout, .learner = c.learner}), c.bottleneck)
        << enum_name(c.bottleneck) << ", case " << &c - cases;
  }
}

TEST(PhaseSharesTest, SharesAreTextsAndNames) {
  const PhaseShares shares{.rollout = {0.41, 0.22, 0.09, 0.06, 0.22}, .learner = {0.01, 0.55, 0.01, 0.03, 0.4}};
  EXPECT_THAT(phase_texts(shares), ElementsAre("rollout: simulate 41%, policy 22%, record 9%, hand-over 6%, wait 22%",
                                               "learner: advantages 1%, update 55%, publish 1%, other 3%, wait 40%"));
  EXPECT_EQ(named_shares(shares).size(), 10u);
  EXPECT_EQ(named_shares(shares)[3], (std::pair<std::string, double>("rollout/hand_over", 0.06)));
  PhaseShares simulated = shares;
  simulated.simulators = SimulatorShares{0.5, 0.1, 0.4};
  EXPECT_EQ(named_shares(simulated).size(), 13u);
  EXPECT_EQ(named_shares(simulated)[7], (std::pair<std::string, double>("env/wait", 0.4)));
}

}  // namespace
}  // namespace troupe::workers
