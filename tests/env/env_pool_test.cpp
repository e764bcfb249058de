#include "env/env_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <latch>
#include <optional>
#include <set>

#include "tests/env/pool_run.h"
#include "tests/env/scripted_env.h"

namespace troupe::testing {
namespace {

TEST(EnvPoolTest, GroupsHaveTheirEnvironmentsIds) {
  auto pool = make_pool(scripted(), {.num_envs = 6, .groups = 3, .first_env = 10});
  EXPECT_EQ(pool->rows(), 2);
  for (std::int64_t g = 0; g < 3; ++g) {
    const auto block = begin(*pool, g);
    EXPECT_EQ(block.group(), g);
    EXPECT_EQ(block.first_env(), 10 + 2 * g);
  }
}

TEST(EnvPoolTest, ABlockEchoesThePolicyVersionAndCounts) {
  auto pool = make_pool(scripted(), {.num_envs = 1});
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
  auto pool = make_pool(scripted(script), {.num_envs = 2, .groups = 2, .threads = 2});
  begin(*pool, 0);
  begin(*pool, 1);
  pool->send(0, std::vector<float>{act::wait}).value();
  pool->send(1, std::vector<float>{act::go}).value();
  EXPECT_EQ(pool->recv().value().group(), 1);
  EXPECT_EQ(pool->recv(0, std::chrono::milliseconds(1)).error().code(), Errc::deadline_exceeded);
  release.set_value();
  EXPECT_EQ(pool->recv(0).value().group(), 0);
}

TEST(EnvPoolTest, AStepThatWasGivenUpIsNotWaitedFor) {
  auto script = std::make_shared<EnvScript>();
  std::promise<void> release;
  std::latch gone(1);
  script->gate = [&gone, opened = release.get_future().share()] {
    opened.wait();
    gone.count_down();
  };
  auto pool = begun_pool(scripted(script), {.num_envs = 1});
  pool->send(0, std::vector<float>{act::wait}).value();
  EXPECT_EQ(pool->recv(0, std::chrono::milliseconds(1)).error().code(), Errc::deadline_exceeded);
  pool.reset();  // would never return
  release.set_value();
  gone.wait();
}

TEST(EnvPoolTest, BuffersOfReleasedBlocksAreUsedAgain) {
  auto pool = begun_pool(scripted(), {.num_envs = 2, .max_blocks = 2});
  std::set<const std::byte*> seen;
  for (int s = 0; s < 50; ++s) seen.insert(pool->step(0, std::vector<float>(2)).value().view().memory);
  EXPECT_LE(seen.size(), 2u);
}

TEST(EnvPoolTest, ACallerThatHoldsAllBuffersIsTold) {
  auto pool = make_pool(scripted(), {.num_envs = 1, .max_blocks = 2});
  std::optional<EnvPool::Block> a = begin(*pool), b = pool->step(0, std::vector<float>{0}).value();
  EXPECT_EQ(pool->send(0, std::vector<float>{0}).error().code(), Errc::resource_exhausted);
  a.reset();
  EXPECT_TRUE(pool->step(0, std::vector<float>{0}));
}

TEST(EnvPoolTest, ABlockKeepsItsBytesWhileOthersAreStepped) {
  auto pool = make_pool(scripted(), {.num_envs = 1});
  const auto first = begin(*pool);
  pool->step(0, std::vector<float>{act::go}).value();
  EXPECT_EQ(floats(pool->spec(), first.view(), 0)[1], 0);
}

TEST(EnvPoolTest, ABlockMayOutliveThePool) {
  auto pool = make_pool(scripted(), {.num_envs = 1});
  const EnvSpec spec = pool->spec();
  auto block = begin(*pool);
  pool.reset();
  EXPECT_EQ(floats(spec, block.view(), 0)[1], 0);
}

TEST(EnvPoolTest, DestructionWaitsForAStepUnderWay) {
  auto pool = begun_pool(scripted(), {.num_envs = 64, .threads = 2});
  pool->send(0, std::vector<float>(64)).value();
  pool.reset();
}

TEST(EnvPoolTest, AGroupThatHasNotBeenReceivedTakesNoFurtherStep) {
  auto pool = begun_pool(scripted(), {.num_envs = 1});
  pool->send(0, std::vector<float>{0}).value();
  EXPECT_EQ(pool->send(0, std::vector<float>{0}).error().code(), Errc::failed_precondition);
  EXPECT_EQ(pool->reset(0).error().code(), Errc::failed_precondition);
  EXPECT_TRUE(pool->recv(0));
}

TEST(EnvPoolTest, AStepBeforeTheFirstResetIsAnError) {
  auto pool = make_pool(scripted(), {.num_envs = 1});
  EXPECT_EQ(pool->send(0, std::vector<float>{0}).error().code(), Errc::failed_precondition);
}

TEST(EnvPoolTest, ReceivingWhatWasNotSentIsAnError) {
  auto pool = make_pool(scripted(), {.num_envs = 2, .groups = 2});
  EXPECT_EQ(pool->recv().error().code(), Errc::failed_precondition);
  EXPECT_EQ(pool->recv(1).error().code(), Errc::failed_precondition);
}

TEST(EnvPoolTest, ActionsOfAWrongSizeAreAnErrorThatSaysWhichSizeIsWanted) {
  auto pool = begun_pool(scripted(), {.num_envs = 2, .chunk = 3});
  const auto sent = pool->send(0, std::vector<float>(5));
  EXPECT_EQ(sent.error().code(), Errc::invalid_argument);
  EXPECT_EQ(sent.error().message(), "5 numbers of actions for scripted-v1; wanted 6 (2 rows x 3 actions x 1 numbers)");
}

TEST(EnvPoolTest, GroupsThatDoNotExistAreErrors) {
  auto pool = make_pool(scripted(), {.num_envs = 2, .groups = 2});
  EXPECT_EQ(pool->reset(2).error().code(), Errc::invalid_argument);
  EXPECT_EQ(pool->send(-1, {}).error().code(), Errc::invalid_argument);
  EXPECT_EQ(pool->recv(7).error().code(), Errc::invalid_argument);
}

TEST(EnvPoolTest, GroupsOfDifferentSizesAreRefused) {
  EXPECT_EQ(EnvPool::make(std::make_shared<ScriptedEnvFactory>(), {.num_envs = 5, .groups = 2}).error().code(),
            Errc::invalid_argument);
}

TEST(EnvPoolTest, AResetMidEpisodeBeginsTheEpisodeAskedFor) {
  auto pool = make_pool(scripted(), {.num_envs = 2, .seed = 8});
  const auto first = begin(*pool, 0, 3);
  pool->step(0, std::vector<float>(2, act::go)).value();
  const auto again = begin(*pool, 0, 3);
  EXPECT_EQ(observation_bits(pool->spec(), first.view(), 1), observation_bits(pool->spec(), again.view(), 1));
  EXPECT_EQ(again.view().step()[1], 0);
}

TEST(EnvPoolTest, LaterEpisodesCountUpFromTheOneAskedFor) {
  auto pool = make_pool(scripted(), {.num_envs = 1});
  begin(*pool, 0, std::int64_t{7} << 20);
  EXPECT_EQ(pool->step(0, std::vector<float>{act::finish}).value().view().episode()[0], (std::int64_t{7} << 20) + 1);
}

}  // namespace
}  // namespace troupe::testing
