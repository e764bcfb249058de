// Environments of several agents in blocks: so many rows each, which end together (docs/env.md#several-agents).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "env/single_env.h"
#include "tests/env/pool_run.h"
#include "tests/env/scripted_env.h"
#include "tests/support/team_env.h"

namespace troupe::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::shared_ptr<const EnvFactory> team() { return std::make_shared<SimpleEnvFactory<TeamEnv>>(TeamEnv::make_spec()); }

/// Two environments of three agents whose points the test pushes.
class AgentsTest : public ::testing::Test {
 protected:
  void start(EnvPool::Options options = {}) {
    options.num_envs = 2;
    options.seed = 6;
    pool_ = make_pool(team(), options);
    block_.emplace(begin(*pool_));
  }
  /// The first environment's agents are pushed so, those of the second not at all.
  void push(float a, float b, float c) {
    block_.reset();
    block_.emplace(pool_->step(0, std::vector<float>{a, b, c, 0, 0, 0}).value());
  }
  /// Pushes the first agent of the first environment until it is dead.
  void kill_first() {
    for (int i = 0; i < 8 && view().alive()[0] != 0; ++i) push(1, 0, 0);
  }
  const BlockView& view() const { return block_->view(); }
  float point(std::int64_t row) const { return floats(pool_->spec(), view(), row)[0]; }

  std::unique_ptr<EnvPool> pool_;
  std::optional<EnvPool::Block> block_;
};

TEST_F(AgentsTest, EachAgentIsARowWithItsOwnObservationActionAndReward) {
  start();
  EXPECT_EQ(pool_->rows(), 6);
  EXPECT_EQ(pool_->envs(), 2);
  EXPECT_EQ(view().layout->agents, 3);
  EXPECT_THAT(ints(view().alive()), Each(1));
  std::vector<float> before;
  for (std::int64_t row = 0; row < 6; ++row) before.push_back(point(row));
  push(0.25F, -0.25F, 0);
  const float moved[] = {0.0625F, -0.0625F, 0, 0, 0, 0};
  for (std::size_t row = 0; row < 6; ++row) {
    EXPECT_FLOAT_EQ(point(static_cast<std::int64_t>(row)), before[row] + moved[row]) << row;
    EXPECT_FLOAT_EQ(view().reward()[row], -std::abs(before[row] + moved[row])) << row;
  }
  EXPECT_THAT(ints(view().valid()), Each(1));
  EXPECT_THAT(view().info(), Each(3)) << "of the environment, in all of its rows";
}

TEST_F(AgentsTest, ADeadAgentsRowIsMaskedUntilTheEndAndItsActionsAreIgnored) {
  start();
  kill_first();
  EXPECT_THAT(ints(view().alive()), ElementsAre(0, 1, 1, 1, 1, 1));
  EXPECT_THAT(ints(view().valid()), Each(1)) << "it acted in the step in which it died";
  EXPECT_THAT(ints(view().terminated()), ElementsAre(1, 0, 0, 0, 0, 0)) << "nothing is expected behind its death";
  EXPECT_THAT(ints(view().done()), Each(0));
  const float where = point(0);
  push(kNan, 0.5F, 0);
  EXPECT_THAT(ints(view().lost()), Each(0));
  EXPECT_THAT(ints(view().valid()), ElementsAre(0, 1, 1, 1, 1, 1));
  EXPECT_THAT(ints(view().terminated()), Each(0));
  EXPECT_EQ(point(0), where);
  EXPECT_EQ(view().reward()[0], 0);
  EXPECT_THAT(view().executed(), Each(1)) << "of the environment";
  EXPECT_THAT(view().info().first(3), Each(2));
}

TEST_F(AgentsTest, ADeathAtTheTimeLimitIsATerminationOfThatRowAlone) {
  start();
  std::int64_t steps = 0;
  for (; view().alive()[0] != 0; ++steps) push(1, 0, 0);
  start({.max_steps = steps});
  for (std::int64_t i = 0; i < steps; ++i) push(1, 0, 0);
  EXPECT_THAT(ints(view().terminated()), ElementsAre(1, 0, 0, 0, 0, 0));
  EXPECT_THAT(ints(view().truncated()), ElementsAre(0, 1, 1, 1, 1, 1));
}

TEST_F(AgentsTest, ADeathIsATerminationWhereThoseOfTheTaskAreIgnored) {
  start({.reset_mode = ResetMode::fixed});
  kill_first();
  EXPECT_THAT(ints(view().terminated()), ElementsAre(1, 0, 0, 0, 0, 0));
}

TEST_F(AgentsTest, RowsOfAnEnvironmentEndTogetherAndItsReturnIsTheMeanOverAgents) {
  start();
  double sum = 0;
  bool is_over = false;
  for (int i = 0; i < 40 && !is_over; ++i) {
    push(1, i < 10 ? 0 : 1, i < 10 ? 0 : 1);
    for (std::size_t row = 0; row < 3; ++row) sum += static_cast<double>(view().reward()[row]);
    is_over = view().done()[0] != 0;
  }
  ASSERT_TRUE(is_over);
  EXPECT_THAT(ints(view().done()), ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(ints(view().terminated()), ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_EQ(ints(view().valid())[0], 0) << "its row was masked to the end";
  EXPECT_THAT(view().episode_return().first(3), Each(::testing::DoubleNear(sum / 3, 1e-5)));
  EXPECT_THAT(ints(view().alive()), Each(1)) << "of the next episode";
  EXPECT_THAT(view().episode(), ElementsAre(1, 1, 1, 0, 0, 0));
}

TEST_F(AgentsTest, AnEnvironmentThatFailsLosesAllOfItsRowsAndNoOthers) {
  start();
  push(0, TeamEnv::kBreak, 0);
  EXPECT_THAT(ints(view().lost()), ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(ints(view().truncated()), ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(ints(view().valid()), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_EQ(pool_->why_lost(0), "the reward is nan");
  EXPECT_EQ(pool_->why_lost(1), "");
  EXPECT_EQ(pool_->counters().lost, 1);
  push(0, 0, 0);
  EXPECT_THAT(ints(view().lost()), Each(0));
}

TEST_F(AgentsTest, AnActionOfALivingAgentThatIsNoNumberLosesTheEnvironment) {
  start();
  push(0, 0, kNan);
  EXPECT_THAT(ints(view().lost()), ElementsAre(1, 1, 1, 0, 0, 0));
}

TEST_F(AgentsTest, StepsAndResetsCountEnvironments) {
  start();
  for (int i = 0; i < 5; ++i) push(0, 0, 0);
  EXPECT_EQ(pool_->counters().env_steps, 10);
  EXPECT_EQ(pool_->counters().resets, 2);
}

TEST_F(AgentsTest, SeedsOfGroupsAndEpisodesAreOfEnvironments) {
  start({.group_size = 2});
  for (std::int64_t row = 0; row < 3; ++row) EXPECT_EQ(point(row), point(row + 3));
  EXPECT_NE(point(0), point(1));
}

TEST_F(AgentsTest, AFrozenTeamShowsItsLastObservationsAndWaits) {
  start({.reset_mode = ResetMode::episode, .max_steps = 2});
  push(0, 0, 0);
  push(0.5F, 0, 0);
  EXPECT_THAT(ints(view().truncated()), Each(1));
  const float where = point(0);
  push(0.5F, 0, 0);
  EXPECT_THAT(ints(view().valid()), Each(0));
  EXPECT_EQ(point(0), where);
}

TEST_F(AgentsTest, ASingleEnvironmentTakesTheActionsOfAllAgents) {
  SingleEnv env = SingleEnv::make(team()).value();
  env.begin(3).value();
  env.step(std::vector<float>{0, 0, 0}).value();
  EXPECT_EQ(env.field(0).size(), 3 * 2 * sizeof(float));
  EXPECT_EQ(env.step(std::vector<float>{0}).error().code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace troupe::testing
