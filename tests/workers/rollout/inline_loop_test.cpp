// Rollout workers that step their blocks themselves: the same items as with simulators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fault.h"
#include "tests/support/team_env.h"
#include "tests/workers/rollout/rollout_fixture.h"

namespace troupe::workers {
namespace {

using namespace testing;
/// With one rollout worker, and a simulator or `inline_threads`.
Items play_by(const JobConfig& config, std::int64_t inline_threads, ScriptedNet::Options net = {}) {
  RolloutJob job(config, net);
  job.inline_threads = inline_threads;
  job.start(inline_threads > 0 ? 0 : 1, 1);
  return play(job, 6);
}

TEST(InlineLoopTest, ChangesNoBitOfAnItemOnAnyNumberOfThreads) {
  const Items simulated = play_by(cart_pole_job(), 0);
  for (const std::int64_t threads : {1, 2, 5}) expect_equal(simulated, play_by(cart_pole_job(), threads));
}

TEST(InlineLoopTest, ChangesNoBitInAnyResetModeOrOfAMemory) {
  for (const char* mode : {"episode", "fixed"}) {
    JobConfig config = cart_pole_job();
    config.env.reset_mode = mode;
    expect_equal(play_by(config, 0), play_by(config, 1));
  }
  expect_equal(play_by(cart_pole_job(), 0, {.has_memory = true}), play_by(cart_pole_job(), 2, {.has_memory = true}));
}

TEST(InlineLoopTest, ChangesNoBitOfChunksThatALimitCuts) {
  JobConfig config = cart_pole_job();
  config.env.id = "reach-v1";  // 50 steps
  config.env.chunk = 4;
  config.env.blocks = 1;
  config.rollout.steps = 32;
  for (const char* mode : {"auto", "episode"}) {
    config.env.reset_mode = mode;
    expect_equal(play_by(config, 0, {.actions = 8, .choices = 0}), play_by(config, 1, {.actions = 8, .choices = 0}));
  }
}

TEST(InlineLoopTest, HowManyWorkersThereAreChangesNoBit) {
  const Items one = play_by(cart_pole_job(), 1);
  RolloutJob job(cart_pole_job());
  job.inline_threads = 1;
  job.await_rollouts = 3;
  job.start(0, 3);
  expect_equal(one, play(job, 6));
}

TEST(InlineLoopTest, ALostWorkersItemsAreMadeByAnother) {
  JobConfig config = cart_pole_job();
  config.env.reset_mode = "episode";
  const Items undisturbed = play_by(config, 1);
  Items disturbed;
  RolloutJob job(config);
  job.inline_threads = 1;
  job.start(0, 2);
  for (std::int64_t round = 0; round < 6; ++round) {
    if (round == 3) job.end("rollout/0#0");
    for (auto& item : job.turn(round)) disturbed.push_back(std::move(item));
  }
  expect_equal(undisturbed, disturbed);
}

TEST(InlineLoopTest, AFailedStepIsGivenUpAndCounted) {
  RolloutJob job(cart_pole_job());
  job.inline_threads = 1;
  ASSERT_TRUE(arm_faults("simulator.step@rollout/0#0 block 2:fail:1:3"));
  job.start(0, 1);
  const Items items = play(job, 1);
  ASSERT_TRUE(arm_faults(""));
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(job.view(items[2]).head().given_up, 4) << "two rows, two calls";
  EXPECT_EQ(job.given_up(), 4);
  ASSERT_EQ(job.events("simulator_failed").size(), 1u);
}

TEST(InlineLoopTest, WhoeverStepsSaysHowManyStepsAndWhatTheyTook) {
  for (const std::int64_t threads : {0, 1, 3}) {
    RolloutJob job(cart_pole_job());
    job.inline_threads = threads;
    job.report_seconds = 0;
    job.start(threads > 0 ? 0 : 1, 1);
    play(job, 2);
    job.publish(2, 0.5f);  // wakes the worker, which then says what it did before
    const std::int64_t steps = 2 * 4 * 2 * 8;
    const ProducerTimes told = job.wait_for_steps(steps);
    EXPECT_EQ(told.env_steps, steps) << "two rounds of four blocks of two rows; " << threads << " threads";
    EXPECT_GT(told.env_step_seconds, 0);
  }
}

TEST(InlineLoopTest, ABlockThatCannotBeMadeIsVoidAndSaysWhy) {
  RolloutJob job(cart_pole_job());
  job.inline_threads = 1;
  job.make_block = [](std::int64_t, Executor&) -> Result<std::unique_ptr<EnvBlock>> {
    return Error{Errc::not_found, "no such scene"};
  };
  job.start(0, 1);
  job.publish(0, 0.5f);
  job.allow(1, 0);
  const auto taken = job.feed().take(0, 0, kPatience);
  ASSERT_TRUE(taken);
  for (const Feed::Sample& sample : *taken) EXPECT_THAT(sample.void_reason, ::testing::HasSubstr("no such scene"));
}

}  // namespace
}  // namespace troupe::workers
