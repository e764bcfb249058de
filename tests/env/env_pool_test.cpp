#include "env/env_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <set>

#include "tests/env/pool_run.h"
#include "tests/env/scripted_env.h"
#include "tests/support/visible.h"

namespace troupe::testing {
namespace {

std::unique_ptr<EnvPool> scripted_pool(EnvPool::Options options,
                                       std::shared_ptr<EnvScript> script = std::make_shared<EnvScript>()) {
  return make_pool(std::make_shared<ScriptedEnvFactory>(std::move(script)), options);
}

TEST(EnvPoolTest, GroupsHaveTheirEnvironmentsIds) {
  auto pool = scripted_pool({.num_envs = 6, .groups = 3, .first_env = 10});
  EXPECT_EQ(pool->rows(), 2);
  for (std::int64_t g = 0; g < 3; ++g) {
    const auto block = begin(*pool, g);
    EXPECT_EQ(block.group(), g);
    EXPECT_EQ(block.first_env(), 10 + 2 * g);
  }
}

TEST(EnvPoolTest, ABlockEchoesThePolicyVersionAndCounts) {
  auto pool = scripted_pool({.num_envs = 1});
  const auto first = begin(*pool);
  EXPECT_EQ(first.policy_version(), -1);
  const auto block = pool->step(0, std::vector<float>{act::go}, 42).value();
  EXPECT_EQ(block.policy_version(), 42);
  EXPECT_EQ(block.sequence(), first.sequence() + 1);
}

TEST(EnvPoolTest, WhoFinishesFirstIsReceivedFirst) {
  auto script = std::make_shared<EnvScript>();
  std::promise<void> release;
  script->gate = [opened = release.get_future().share()] { opened.wait(); };
  auto pool = scripted_pool({.num_envs = 2, .groups = 2, .threads = 2}, script);
  begin(*pool, 0);
  begin(*pool, 1);
  pool->send(0, std::vector<float>{act::wait}).value();
  pool->send(1, std::vector<float>{act::go}).value();
  EXPECT_EQ(pool->recv().value().group(), 1);
  const auto late = pool->recv(0, std::chrono::milliseconds(1));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::deadline_exceeded);
  release.set_value();
  EXPECT_EQ(pool->recv(0).value().group(), 0);
}

TEST(EnvPoolTest, BuffersOfReleasedBlocksAreUsedAgain) {
  auto pool = scripted_pool({.num_envs = 2, .max_blocks = 2});
  begin(*pool);
  std::set<const std::byte*> seen;
  for (int s = 0; s < 50; ++s) seen.insert(pool->step(0, std::vector<float>(2)).value().view().memory);
  EXPECT_LE(seen.size(), 2u);
}

TEST(EnvPoolTest, ACallerThatHoldsAllBuffersIsTold) {
  auto pool = scripted_pool({.num_envs = 1, .max_blocks = 2});
  std::optional<EnvPool::Block> a = begin(*pool), b = pool->step(0, std::vector<float>{0}).value();
  const auto sent = pool->send(0, std::vector<float>{0});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Errc::resource_exhausted);
  a.reset();
  EXPECT_TRUE(pool->step(0, std::vector<float>{0}));
}

TEST(EnvPoolTest, ABlockKeepsItsBytesWhileOthersAreStepped) {
  auto pool = scripted_pool({.num_envs = 1});
  const auto first = begin(*pool);
  pool->step(0, std::vector<float>{act::go}).value();
  EXPECT_EQ(floats(pool->spec(), first.view(), 0)[1], 0);
}

TEST(EnvPoolTest, ABlockMayOutliveThePool) {
  auto pool = scripted_pool({.num_envs = 1});
  const EnvSpec spec = pool->spec();
  auto block = begin(*pool);
  pool.reset();
  EXPECT_EQ(floats(spec, block.view(), 0)[1], 0);
}

TEST(EnvPoolTest, DestructionWaitsForAStepUnderWay) {
  auto pool = scripted_pool({.num_envs = 64, .threads = 2});
  begin(*pool);
  pool->send(0, std::vector<float>(64)).value();
  pool.reset();
}

TEST(EnvPoolTest, AGroupThatHasNotBeenReceivedTakesNoFurtherStep) {
  auto pool = scripted_pool({.num_envs = 1});
  begin(*pool);
  pool->send(0, std::vector<float>{0}).value();
  EXPECT_EQ(pool->send(0, std::vector<float>{0}).error().code(), Errc::failed_precondition);
  EXPECT_EQ(pool->reset(0).error().code(), Errc::failed_precondition);
  EXPECT_TRUE(pool->recv(0));
}

TEST(EnvPoolTest, AStepBeforeTheFirstResetIsAnError) {
  auto pool = scripted_pool({.num_envs = 1});
  EXPECT_EQ(pool->send(0, std::vector<float>{0}).error().code(), Errc::failed_precondition);
}

TEST(EnvPoolTest, ReceivingWhatWasNotSentIsAnError) {
  auto pool = scripted_pool({.num_envs = 2, .groups = 2});
  EXPECT_EQ(pool->recv().error().code(), Errc::failed_precondition);
  EXPECT_EQ(pool->recv(1).error().code(), Errc::failed_precondition);
}

TEST(EnvPoolTest, ActionsOfAWrongSizeAreAnErrorThatSaysWhichSizeIsWanted) {
  auto pool = scripted_pool({.num_envs = 2, .chunk = 3});
  begin(*pool);
  const auto sent = pool->send(0, std::vector<float>(5));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Errc::invalid_argument);
  EXPECT_EQ(sent.error().message(),
            "5 numbers of actions for scripted-v1; wanted 6 (2 environments x 3 actions x 1 numbers)");
}

TEST(EnvPoolTest, GroupsThatDoNotExistAreErrors) {
  auto pool = scripted_pool({.num_envs = 2, .groups = 2});
  EXPECT_EQ(pool->reset(2).error().code(), Errc::invalid_argument);
  EXPECT_EQ(pool->send(-1, {}).error().code(), Errc::invalid_argument);
  EXPECT_EQ(pool->recv(7).error().code(), Errc::invalid_argument);
}

TEST(EnvPoolTest, GroupsOfDifferentSizesAreRefused) {
  const auto pool = EnvPool::make(std::make_shared<ScriptedEnvFactory>(), {.num_envs = 5, .groups = 2});
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().code(), Errc::invalid_argument);
}

TEST(EnvPoolTest, AResetMidEpisodeBeginsTheEpisodeAskedFor) {
  auto pool = scripted_pool({.num_envs = 2, .seed = 8});
  const auto first = begin(*pool, 0, 3);
  pool->step(0, std::vector<float>(2, act::go)).value();
  const auto again = begin(*pool, 0, 3);
  EXPECT_EQ(observation_bits(pool->spec(), first.view(), 1), observation_bits(pool->spec(), again.view(), 1));
  EXPECT_EQ(again.view().step()[1], 0);
}

TEST(EnvPoolTest, LaterEpisodesCountUpFromTheOneAskedFor) {
  auto pool = scripted_pool({.num_envs = 1});
  begin(*pool, 0, std::int64_t{7} << 20);
  EXPECT_EQ(pool->step(0, std::vector<float>{act::finish}).value().view().episode()[0], (std::int64_t{7} << 20) + 1);
}

}  // namespace
}  // namespace troupe::testing
