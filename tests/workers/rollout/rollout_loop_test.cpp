// Simulators, rollout workers and a feed in one process: what an item holds, and what survives the loss of whom.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fault.h"
#include "tests/support/team_env.h"
#include "tests/workers/rollout/rollout_fixture.h"
#include "workers/rollout/ended_rows.h"

namespace troupe::workers {
namespace {

using namespace testing;

/// With one simulator and one rollout worker.
Items play_alone(const JobConfig& config, std::int64_t rounds) {
  RolloutJob job(config);
  job.start(1, 1);
  return play(job, rounds);
}

TEST(RolloutLoopTest, LibTorchHasOneThreadForThePolicyAndNotAllCores) {
  at::set_num_threads(3);
  RolloutJob job(cart_pole_job());
  job.start(1, 1);
  play(job, 1);
  EXPECT_EQ(job.net().threads(), 1);
}

TEST(RolloutLoopTest, AnItemHoldsWhatTheBlockDid) {
  RolloutJob job(cart_pole_job());
  job.start(1, 1);
  const Items items = play(job, 3);
  ASSERT_EQ(items.size(), 12u);
  const auto& layout = job.layout();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto view = job.view(items[i]);
    const auto round = static_cast<std::int64_t>(i) / 4;
    EXPECT_EQ(view.head().round, round);
    EXPECT_EQ(view.head().block, static_cast<std::int64_t>(i) % 4);
    EXPECT_EQ(view.head().continues, round > 0 ? 1 : 0);
    EXPECT_EQ(view.head().env_steps, layout.calls * layout.rows);
    EXPECT_EQ(view.head().min_version, round);
    EXPECT_EQ(view.head().max_version, round);
    EXPECT_EQ(Moments(view.observed()).count(), static_cast<double>(layout.calls * layout.rows));
    EXPECT_EQ(Moments(view.returned()).count(), static_cast<double>(layout.calls * layout.rows));
    const float w = 0.4f + 0.05f * static_cast<float>(round % 4);
    for (std::int64_t call = 0; call <= layout.calls; ++call) {
      for (std::size_t row = 0; row < 2; ++row) {
        float sum = 0;
        for (const float x : view.state(call).subspan(row * 4, 4)) sum += x;
        EXPECT_NEAR(view.value(call)[row], sum * w, 1e-5) << call;
        if (call == layout.calls) continue;
        EXPECT_EQ(view.action(call)[row], view.logp(call)[row] < w ? 1.0f : 0.0f);
        EXPECT_EQ(view.reward(call)[row], 1.0f);
        EXPECT_EQ(view.valid(call)[row], 1);
        EXPECT_EQ(view.version(call)[row], round);
      }
    }
  }
}

TEST(RolloutLoopTest, TeamsTravelAsRowsAndAreCountedAsEnvironments) {
  TeamEnv::add();
  JobConfig config = cart_pole_job();
  config.env.id = TeamEnv::kId;
  config.rollout.steps = 24;
  RolloutJob job(config, {.choices = 0});
  job.start(1, 1);
  const Items items = play(job, 2);
  const TrajectoryLayout& layout = job.layout();
  EXPECT_EQ(layout.rows, 6);
  EXPECT_EQ(layout.envs(), 2);
  std::int64_t records = 0, masked = 0, deaths = 0;
  for (const auto& item : items) {
    const auto view = job.view(item);
    EXPECT_EQ(view.head().env_steps, 2 * 24);
    std::int64_t acted = 0;
    for (std::int64_t call = 0; call < layout.calls; ++call) {
      for (std::int64_t row = 0; row < layout.rows; ++row) {
        const auto i = static_cast<std::size_t>(row), first = static_cast<std::size_t>(row / 3 * 3);
        EXPECT_EQ(view.done(call)[i], view.done(call)[first]) << "rows of an environment end together";
        EXPECT_EQ(view.ended(call)[i], layout.is_first(row) ? view.done(call)[i] : 0);
        records += view.ended(call)[i];
        acted += view.valid(call)[i];
        deaths += view.terminated(call)[i] != 0 && view.done(call)[i] == 0 ? 1 : 0;
        if (view.valid(call)[i] != 0) continue;
        ++masked;
        EXPECT_EQ(view.reward(call)[i], 0);
      }
    }
    // none of a dead agent, which the policy did not meet; one may have died before the item
    EXPECT_LE(Moments(view.observed()).count(), static_cast<double>(acted));
    EXPECT_EQ(Moments(view.returned()).count(), static_cast<double>(acted));
  }
  EXPECT_GT(records, 0);
  EXPECT_GT(deaths, 0);
  EXPECT_GT(masked, 0);
  // the draws of agents are their own
  const auto first = job.view(items[0]).logp(0);
  EXPECT_NE(first[0], first[1]);
}

TEST(RolloutLoopTest, EpisodesGoOnFromItemToItem) {
  JobConfig config = cart_pole_job();
  config.rollout.normalize_obs = false;
  RolloutJob job(config);
  job.start(1, 1);
  const Items items = play(job, 6);
  std::int64_t ended = 0, longest = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto view = job.view(items[i]);
    if (i >= 4) {
      const auto before = job.view(items[i - 4]).state(job.layout().calls), now = view.state(0);
      EXPECT_TRUE(std::equal(before.begin(), before.end(), now.begin())) << i;
    }
    for (std::int64_t call = 0; call < job.layout().calls; ++call) {
      for (std::size_t row = 0; row < 2; ++row) {
        EXPECT_EQ(view.ended(call)[row], view.done(call)[row]);
        if (view.ended(call)[row] == 0) continue;
        ++ended;
        longest = std::max<std::int64_t>(longest, view.episode_length(call)[row]);
        EXPECT_EQ(view.episode_return(call)[row], view.episode_length(call)[row]);
        EXPECT_NE(view.final_value(call)[row], 0.0f) << "the value of the observation at which it ended";
      }
    }
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(longest, 8) << "an episode is longer than an item";
}

/// Checks that every value of an item counts the steps of its row's episode, from `steps` on, which goes on counting.
void expect_counts(const ConstTrajectoryView& item, std::array<float, 2>& steps) {
  const auto& layout = item.layout();
  ASSERT_EQ(layout.policy_memory.size(), 1u);
  for (std::size_t row = 0; row < steps.size(); ++row) {
    if (item.head().continues == 0) steps[row] = 0;
    EXPECT_EQ(item.all<float>(layout.policy_memory[0])[row], steps[row]) << "as the item begins";
    for (std::int64_t call = 0; call < layout.calls; ++call) {
      EXPECT_EQ(item.value(call)[row], steps[row]) << call;
      ++steps[row];
      if (item.done(call)[row] == 0) continue;
      EXPECT_EQ(item.final_value(call)[row], item.lost(call)[row] != 0 ? 0 : steps[row]) << call;
      steps[row] = 0;
    }
    EXPECT_EQ(item.value(layout.calls)[row], steps[row]) << "after the last step";
  }
}

TEST(RolloutLoopTest, AMemoryGoesFromItemToItemAndEndsWithItsEpisode) {
  for (const std::int64_t together : {1, 3}) {
    JobConfig config = cart_pole_job();
    config.rollout.batch_blocks = together;
    RolloutJob job(config, {.has_memory = true});
    job.start(1, 1);
    const Items items = play(job, 6);
    std::array<std::array<float, 2>, 4> steps{};
    float longest = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      expect_counts(job.view(items[i]), steps[i % 4]);
      longest = std::max(longest, job.view(items[i]).all<float>(job.layout().policy_memory[0])[0]);
    }
    EXPECT_GT(longest, 8) << "an episode is longer than an item";
  }
}

TEST(RolloutLoopTest, AMemoryBeginsAnewWithABlockThatLostItsSimulatorOrItsRolloutWorker) {
  RolloutJob job(cart_pole_job(), {.has_memory = true});
  job.start(2, 2);
  std::array<std::array<float, 2>, 4> steps{};
  int anew = 0;
  for (std::int64_t round = 0; round < 6; ++round) {
    job.publish(round, 0.5f);
    job.allow(round + 1, round);
    if (round == 2) job.end("env/0#0");
    if (round == 4) job.end("rollout/0#0");
    const Items items = job.take(round);
    for (std::size_t i = 0; i < items.size(); ++i) {
      expect_counts(job.view(items[i]), steps[i]);
      if (round > 0 && job.view(items[i]).head().continues == 0) ++anew;
    }
  }
  EXPECT_GT(anew, 0);
}

TEST(RolloutLoopTest, HowManyActorsThereAreChangesNoBit) {
  const Items one = play_alone(cart_pole_job(), 8);
  RolloutJob job(cart_pole_job());
  job.await_rollouts = 2;
  job.await_simulators = 3;
  job.start(3, 2);
  const Items many = play(job, 8);
  expect_equal(one, many);
}

TEST(RolloutLoopTest, BatchingChangesNoBitOfAPolicyThatAnswersRowByRow) {
  JobConfig config = cart_pole_job();
  const Items one = play_alone(config, 4);
  for (const std::int64_t together : {0, 3}) {
    config.rollout.batch_blocks = together;
    expect_equal(one, play_alone(config, 4));
  }
}

TEST(RolloutLoopTest, ALostSimulatorsItemsBeginAnewWithTheSameBits) {
  JobConfig config = cart_pole_job();
  config.env.reset_mode = "episode";
  const Items undisturbed = play_alone(config, 6);
  Items disturbed;
  RolloutJob job(config);
  job.start(2, 1);
  for (std::int64_t round = 0; round < 6; ++round) {
    job.publish(round, 0.4f + 0.05f * static_cast<float>(round % 4));
    job.allow(round + 1, round);
    if (round == 2) {
      job.end("env/0#0");
      job.add_simulator();
    }
    if (round == 4) job.end("env/1#0");
    for (auto& item : job.take(round)) disturbed.push_back(std::move(item));
  }
  for (auto& item : disturbed) reinterpret_cast<TrajectoryHead*>(item.data())->given_up = 0;
  expect_equal(undisturbed, disturbed);
}

TEST(RolloutLoopTest, AFailedStepIsGivenUpAndCounted) {
  JobConfig config = cart_pole_job();
  config.env.reset_mode = "episode";
  RolloutJob job(config);
  ASSERT_TRUE(arm_faults("simulator.step@block 2:fail:1:4"));
  job.start(1, 1);
  const Items items = job.turn(0);
  ASSERT_TRUE(arm_faults(""));
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(job.view(items[2]).head().given_up, 3 * 2) << "three policy steps of two environments";
  EXPECT_EQ(job.view(items[1]).head().given_up, 0);
  EXPECT_EQ(job.given_up(), 6);
  EXPECT_EQ(job.events("simulator_failed").size(), 1u);
}

TEST(RolloutLoopTest, ABlockThatAlwaysFailsIsVoidAndSaysWhy) {
  RolloutJob job(cart_pole_job());
  ASSERT_TRUE(arm_faults("simulator.step@block 1:fail:100"));
  job.start(1, 1);
  job.publish(0, 0.5f);
  job.allow(1, 0);
  const auto taken = job.feed().take(0, 0, kPatience);
  ASSERT_TRUE(arm_faults(""));
  EXPECT_THAT((*taken)[1].void_reason, ::testing::HasSubstr("block 1 failed 3 times in a row"));
  EXPECT_EQ((*taken)[0].void_reason, "");
}

TEST(RolloutLoopTest, ALostRolloutWorkersItemsAreMadeByAnother) {
  RolloutJob job(cart_pole_job());
  job.await_rollouts = 2;
  job.start(2, 2);
  ASSERT_EQ(play(job, 2).size(), 8u);
  job.publish(2, 0.5f);
  job.allow(3, 2);
  job.end("rollout/0#0");
  EXPECT_EQ(job.take(2).size(), 4u);
  EXPECT_EQ(job.turn(3).size(), 4u);
}

TEST(RolloutLoopTest, PoolsGrowAndShrinkWhileItRuns) {
  RolloutJob job(cart_pole_job());
  job.start(1, 1);
  std::int64_t round = 0;
  const auto turns = [&](int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(job.turn(round++).size(), 4u);
  };
  turns(2);
  for (int i = 0; i < 3; ++i) job.add_simulator();
  turns(2);
  job.add_rollout();
  turns(3);
  job.end("env/2#0");
  turns(2);
  job.end("rollout/0#0");
  turns(2);
  job.end("env/0#0");
  job.end("env/1#0");
  turns(2);
}

TEST(RolloutLoopTest, AnExactVersionIsWaitedFor) {
  RolloutJob job(cart_pole_job());
  job.start(1, 1);
  job.publish(0, 0.5f);
  job.allow(1, 3);
  EXPECT_FALSE(job.feed().take(0, 0, 100ms));
  job.publish(3, 0.5f);
  const Items items = job.take(0);
  for (const auto& item : items) EXPECT_EQ(job.view(item).head().min_version, 3);
}

TEST(RolloutLoopTest, NewerWeightsAreTakenBetweenCallsWhereTheyMay) {
  RolloutJob job(cart_pole_job());
  job.start(1, 1);
  job.publish(0, 0.5f);
  job.allow(2, 0, /*exact=*/false);
  ASSERT_EQ(job.take(0).size(), 4u);
  job.publish(5, 0.5f);
  ASSERT_EQ(job.take(1).size(), 4u);
  job.allow(3, 5, false);
  for (const auto& item : job.take(2)) EXPECT_EQ(job.view(item).head().min_version, 5);
}

TEST(RolloutLoopTest, ANewGroupBeginsAnewAtItsRound) {
  RolloutJob job(cart_pole_job());
  job.start(2, 1);
  ASSERT_EQ(play(job, 3).size(), 12u);
  // The group is lost while round 3 is collected; it forms again at round 1.
  job.publish(3, 0.5f);
  job.allow(4, 3);
  job.begin(2, 1);
  job.publish(1, 0.45f);
  job.allow(2, 1);
  const Items items = job.take(1);
  ASSERT_EQ(items.size(), 4u);
  for (const auto& item : items) {
    EXPECT_EQ(job.view(item).head().continues, 0) << "blocks do not go on across groups";
    EXPECT_EQ(job.view(item).head().max_version, 1);
  }
  EXPECT_EQ(job.turn(2).size(), 4u);
}

TEST(RolloutLoopTest, RandomActionsComeBeforeLearningStarts) {
  JobConfig config = cart_pole_job();
  config.env.id = "Pendulum-v1";
  config.algorithm.name = Algorithm::sac;
  config.rollout.normalize_obs = config.rollout.normalize_reward = false;
  config.rollout.commit_every = 64;
  config.algorithm.sac.learning_starts = 64 + 32;  // 1.5 rounds of 8 steps of 8 environments
  RolloutJob job(config, {.choices = 0, .has_value = false});
  job.start(1, 1);
  const Items items = play(job, 2);
  std::set<float> seen;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto view = job.view(items[i]);
    for (std::int64_t call = 0; call < job.layout().calls; ++call) {
      const bool random = i < 4 || call < 4;
      EXPECT_EQ(view.version(call)[0], random ? -1 : 1) << i << " " << call;
      if (random) seen.insert(view.action(call)[0]);
    }
    EXPECT_EQ(view.head().min_version, i < 4 ? -1 : 1);
  }
  EXPECT_EQ(seen.size(), 48u);
  EXPECT_GT(*seen.rbegin(), 1.0f) << "over the whole range of [-2, 2]";
  EXPECT_LT(*seen.begin(), -1.0f);
}

TEST(RolloutLoopTest, ItemsOfPicturesAreAsLongAsEpisodesEndedInThem) {
  JobConfig config = cart_pole_job();
  config.env.id = "arm7/reach-v1";
  config.env.profile = "pixel";
  config.env.options["image_size"] = "8";
  config.env.max_episode_steps = 5;
  config.algorithm.name = Algorithm::sac;
  config.rollout.normalize_obs = config.rollout.normalize_reward = false;
  config.rollout.commit_every = 64;
  const auto actions = (*make_env_factory(config.env))->spec().action.size;
  RolloutJob job(config, {.actions = actions, .choices = 0, .has_value = false});
  job.start(1, 1);
  const Items items = play(job, 2);
  const TrajectoryLayout& layout = job.layout();
  std::set<std::int64_t> counts;
  for (const auto& item : items) {
    const EndedRows ended(job.view(item));
    counts.insert(ended.count());
    EXPECT_EQ(static_cast<std::int64_t>(item.size()), layout.fixed_bytes + ended.count() * layout.final_image_bytes);
    for (std::int64_t i = 0; i < ended.count(); ++i)
      EXPECT_THAT(job.view(item).final_image(0, i), ::testing::Contains(::testing::Gt(0)));
  }
  // two rows each: their episodes end at steps 5, and 10 and 15
  EXPECT_THAT(counts, ::testing::ElementsAre(2, 4));
}

TEST(RolloutLoopTest, ExtrasAndFixedEpisodesComeWithTheItem) {
  JobConfig config = cart_pole_job();
  config.env.reset_mode = "fixed";
  config.env.group_size = 2;
  RolloutJob job(config, {.has_extra = true});
  job.start(1, 1);
  const Items items = play(job, 2);
  for (const auto& item : items) {
    const auto view = job.view(item);
    EXPECT_EQ(view.head().continues, 0);
    EXPECT_EQ(view.at<std::int64_t>(job.layout().extras[0], 3)[1], 7);
    EXPECT_THAT(view.ended(job.layout().calls - 1), ::testing::Each(1));
    EXPECT_THAT(view.episode_length(job.layout().calls - 1), ::testing::Each(8));
    const auto state = view.state(0);
    EXPECT_TRUE(std::equal(state.begin(), state.begin() + 4, state.begin() + 4)) << "a group begins in one state";
  }
  const auto first = job.view(items[0]).state(0), second = job.view(items[4]).state(0);
  EXPECT_FALSE(std::equal(first.begin(), first.end(), second.begin())) << "and every round in another";
}

}  // namespace
}  // namespace troupe::workers
