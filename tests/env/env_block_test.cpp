// Chunks, reset modes, time limits, groups: what a block makes of its environments.
#include "env/env_block.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/env/pool_run.h"
#include "tests/env/scripted_env.h"

namespace troupe::testing {
namespace {

std::vector<float> numbers(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST(EnvBlockTest, AResetWritesFirstObservationsAndNothingElse) {
  auto pool = make_pool(scripted(), {.num_envs = 3, .seed = 1});
  const auto block = begin(*pool, 0, 5);
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(floats(pool->spec(), block.view(), static_cast<std::int64_t>(row))[1], 0);
    EXPECT_EQ(block.view().episode()[row], 5);
    EXPECT_EQ(block.view().step()[row], 0);
    EXPECT_EQ(block.view().valid()[row] + block.view().done()[row] + block.view().terminated()[row] +
                  block.view().lost()[row],
              0);
  }
}

TEST(EnvBlockTest, AResetToASeedBeginsThatSeedInEveryRow) {
  auto pool = make_pool(scripted(), {.num_envs = 2, .reset_mode = ResetMode::episode, .max_steps = 3, .stagger = true});
  for (const std::uint64_t seed : {5, 7}) {
    pool->reset_to_seed(0, seed).value();
    auto block = pool->recv(0).value();
    for (std::int64_t row : {0, 1}) EXPECT_EQ(floats(pool->spec(), block.view(), row)[0], static_cast<float>(seed));
    for (int step = 1; step <= 3; ++step) {
      block = pool->step(0, std::vector<float>{act::go, act::go}).value();
      EXPECT_EQ(ints(block.view().done()), std::vector<int>(2, step == 3)) << "no stagger";
    }
  }
}

TEST(EnvBlockTest, ARowThatCannotBeginAtASeedIsLostAndSaysWhy) {
  const auto script = std::make_shared<EnvScript>();
  auto pool = make_pool(scripted(script), {.num_envs = 1, .reset_mode = ResetMode::episode});
  script->failing_resets = 1;
  pool->reset_to_seed(0, 5).value();
  EXPECT_EQ(pool->recv(0).value().view().lost()[0], 1);
  EXPECT_NE(pool->why_lost(0).find("reset as scripted"), std::string::npos) << pool->why_lost(0);
  pool->reset_to_seed(0, 5).value();
  const auto begun = pool->recv(0).value();
  EXPECT_EQ(begun.view().lost()[0], 0);
  EXPECT_EQ(floats(pool->spec(), begun.view(), 0)[0], 5);
}

TEST(EnvBlockTest, AStepStopsAtTheActionThatEndsTheEpisode) {
  auto pool = begun_pool(scripted(), {.num_envs = 1, .chunk = 4});
  const auto block = pool->step(0, std::vector<float>{act::go, act::finish, act::go, act::go}).value();
  EXPECT_EQ(ints(block.view().valid()), (std::vector<int>{1, 1, 0, 0}));
  EXPECT_EQ(ints(block.view().terminated()), (std::vector<int>{0, 1, 0, 0}));
  EXPECT_EQ(ints(block.view().truncated()), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(numbers(block.view().reward()), (std::vector<float>{1, 2, 0, 0}));
  EXPECT_EQ(block.view().executed()[0], 2);
  EXPECT_EQ(block.view().info()[0], 2);
}

TEST(EnvBlockTest, ActionsMayLieInTheMemoryThatTheStepWrites) {
  const auto executor = Executor::make({.threads = 0});
  const auto factory = factory_of("reach-v1");
  const auto actions = random_actions(factory->spec().action, 4 * 8, 5, 1);
  const auto play = [&](bool inside) {
    const auto block = EnvBlock::make(factory, {.envs = 4, .chunk = 8}, *executor).value();
    std::vector<std::byte> memory(static_cast<std::size_t>(block->layout().bytes));
    const BlockView out{&block->layout(), memory.data()};
    block->reset(0, out, [] {});
    // as simulators get them: behind the head of the request that lies in the slot
    std::memcpy(memory.data() + 64, actions.data(), actions.size() * sizeof(float));
    const float* const from = inside ? reinterpret_cast<const float*>(memory.data() + 64) : actions.data();
    block->step(
        {from, actions.size()}, out, [] {}, Executor::Caller::leaves);
    return memory;
  };
  EXPECT_EQ(play(true), play(false));
}

TEST(EnvBlockTest, TheFinalObservationIsThatOfTheActionThatEndedIt) {
  auto pool = make_pool(scripted(), {.num_envs = 1, .chunk = 4});
  const auto first = begin(*pool);
  const auto block = pool->step(0, std::vector<float>{act::go, act::finish, act::go, act::go}).value();
  EXPECT_EQ(floats(pool->spec(), block.view(), 0, true)[0], floats(pool->spec(), first.view(), 0)[0]);
  EXPECT_EQ(floats(pool->spec(), block.view(), 0, true)[1], 2);
  EXPECT_EQ(floats(pool->spec(), block.view(), 0)[1], 0) << "of the new episode";
}

TEST(EnvBlockTest, AnEpisodeThatEndedIsSummedUp) {
  auto pool = begun_pool(scripted(), {.num_envs = 1, .chunk = 2});
  pool->step(0, std::vector<float>{act::go, act::go}).value();
  const auto block = pool->step(0, std::vector<float>{act::succeed, act::go}).value();
  EXPECT_EQ(block.view().done()[0], 1);
  EXPECT_EQ(block.view().episode_return()[0], 1 + 2 + 3);
  EXPECT_EQ(block.view().episode_length()[0], 3);
  EXPECT_EQ(block.view().episode_success()[0], 3) << "once, and at the end";
  const auto next = pool->step(0, std::vector<float>{act::finish, act::go}).value();
  EXPECT_EQ(next.view().episode_return()[0], 1) << "the next episode counts anew";
  EXPECT_EQ(next.view().episode_success()[0], 0);
}

TEST(EnvBlockTest, OnlyExecStepsOfAChunkAreExecuted) {
  auto pool = begun_pool(scripted(), {.num_envs = 1, .chunk = 4, .exec_steps = 3});
  const auto block = pool->step(0, std::vector<float>(4, act::go)).value();
  EXPECT_EQ(ints(block.view().valid()), (std::vector<int>{1, 1, 1, 0}));
  EXPECT_EQ(block.view().executed()[0], 3);
  EXPECT_EQ(block.view().step()[0], 3);
}

TEST(EnvBlockTest, TheTimeLimitTruncates) {
  auto pool = begun_pool(scripted(), {.num_envs = 1, .chunk = 4, .max_steps = 6});
  pool->step(0, std::vector<float>(4, act::go)).value();
  const auto block = pool->step(0, std::vector<float>(4, act::go)).value();
  EXPECT_EQ(ints(block.view().truncated()), (std::vector<int>{0, 1, 0, 0}));
  EXPECT_EQ(ints(block.view().terminated()), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(block.view().episode_length()[0], 6);
}

TEST(EnvBlockTest, AnEndAtTheTimeLimitIsATermination) {
  auto pool = begun_pool(scripted(), {.num_envs = 1, .chunk = 2, .max_steps = 2});
  const auto block = pool->step(0, std::vector<float>{act::go, act::finish}).value();
  EXPECT_EQ(ints(block.view().terminated()), (std::vector<int>{0, 1}));
  EXPECT_EQ(ints(block.view().truncated()), (std::vector<int>{0, 0}));
}

TEST(EnvBlockTest, AnEnvironmentThatCutsItsEpisodeTruncatesIt) {
  for (const ResetMode mode : {ResetMode::same_step, ResetMode::fixed}) {
    auto pool = begun_pool(scripted(), {.num_envs = 1, .chunk = 4, .reset_mode = mode});
    const auto block = pool->step(0, std::vector<float>{act::go, act::cut, act::go, act::go}).value();
    EXPECT_EQ(ints(block.view().truncated()), (std::vector<int>{0, 1, 0, 0}));
    EXPECT_EQ(ints(block.view().terminated()), (std::vector<int>{0, 0, 0, 0}));
    EXPECT_EQ(ints(block.view().valid()), (std::vector<int>{1, 1, 0, 0}));
    EXPECT_EQ(floats(pool->spec(), block.view(), 0, true)[1], 2) << "the last observation";
    EXPECT_EQ(block.view().episode_length()[0], 2);
  }
}

TEST(EnvBlockTest, StaggeringShortensTheFirstEpisodeOnly) {
  auto pool = begun_pool(scripted(), {.num_envs = 3, .max_steps = 4, .stagger = true});
  std::vector<std::vector<int>> done(3);
  for (int s = 1; s <= 8; ++s) {
    const auto block = pool->step(0, std::vector<float>(3, act::go)).value();
    for (std::size_t row = 0; row < 3; ++row) {
      if (block.view().done()[row] != 0) done[row].push_back(s);
    }
  }
  EXPECT_EQ(done, (std::vector<std::vector<int>>{{4, 8}, {3, 7}, {2, 6}}));
}

TEST(EnvBlockTest, MembersOfAGroupBeginInTheSameState) {
  auto pool = make_pool(scripted(), {.num_envs = 6, .first_env = 12, .group_size = 3});
  const auto block = begin(*pool);
  std::vector<float> seeds;
  for (std::int64_t row = 0; row < 6; ++row) seeds.push_back(floats(pool->spec(), block.view(), row)[0]);
  EXPECT_EQ(seeds[0], seeds[1]);
  EXPECT_EQ(seeds[0], seeds[2]);
  EXPECT_EQ(seeds[3], seeds[5]);
  EXPECT_NE(seeds[0], seeds[3]);
}

TEST(EnvBlockTest, ActionsOutsideTheBoundsAreClipped) {
  auto chosen = make_pool(factory_of("Pendulum-v1"), {.num_envs = 1});
  auto clipped = make_pool(factory_of("Pendulum-v1"), {.num_envs = 1});
  begin(*chosen);
  begin(*clipped);
  const auto a = chosen->step(0, std::vector<float>{2}).value(), b = clipped->step(0, std::vector<float>{77}).value();
  EXPECT_EQ(a.view().reward()[0], b.view().reward()[0]);
}

TEST(EnvBlockTest, SameStepBeginsTheNextEpisodeAtOnce) {
  auto pool = make_pool(scripted(), {.num_envs = 1});
  const auto first = begin(*pool);
  const auto block = pool->step(0, std::vector<float>{act::finish}).value();
  EXPECT_EQ(block.view().episode()[0], 1);
  EXPECT_EQ(block.view().step()[0], 0);
  EXPECT_NE(floats(pool->spec(), block.view(), 0)[0], floats(pool->spec(), first.view(), 0)[0]);
}

TEST(EnvBlockTest, NextStepShowsTheTerminalObservationThenIgnoresAnAction) {
  auto pool = begun_pool(scripted(), {.num_envs = 1, .chunk = 2, .reset_mode = ResetMode::next_step});
  const auto ended = pool->step(0, std::vector<float>{act::finish, act::go}).value();
  EXPECT_EQ(floats(pool->spec(), ended.view(), 0)[1], 1);
  EXPECT_EQ(ended.view().episode()[0], 0);
  const auto begun = pool->step(0, std::vector<float>{act::finish, act::finish}).value();
  EXPECT_EQ(ints(begun.view().valid()), (std::vector<int>{0, 0}));
  EXPECT_EQ(numbers(begun.view().reward()), (std::vector<float>{0, 0}));
  EXPECT_EQ(begun.view().done()[0], 0);
  EXPECT_EQ(begun.view().episode()[0], 1);
  EXPECT_EQ(floats(pool->spec(), begun.view(), 0)[1], 0);
}

TEST(EnvBlockTest, EpisodeFreezesAnEndedRowUntilTheCallerResets) {
  auto pool = begun_pool(scripted(), {.num_envs = 2, .chunk = 2, .reset_mode = ResetMode::episode});
  pool->step(0, std::vector<float>{act::go, act::finish, act::go, act::go}).value();
  for (int again = 0; again < 2; ++again) {
    const auto block = pool->step(0, std::vector<float>(4, act::go)).value();
    EXPECT_EQ(ints(block.view().valid()), (std::vector<int>{0, 0, 1, 1}));
    EXPECT_EQ(block.view().done()[0] + block.view().terminated()[0] + block.view().terminated()[1], 0);
    EXPECT_EQ(floats(pool->spec(), block.view(), 0)[1], 2) << "its last observation";
    EXPECT_EQ(block.view().step()[0], 2);
  }
  const auto begun = begin(*pool, 0, 1);
  EXPECT_EQ(begun.view().episode()[0], 1);
  EXPECT_EQ(floats(pool->spec(), begun.view(), 0)[1], 0);
}

TEST(EnvBlockTest, FixedIgnoresTerminationsAndFreezesAtTheLimit) {
  auto pool = begun_pool(scripted(), {.num_envs = 1, .chunk = 3, .reset_mode = ResetMode::fixed, .max_steps = 5});
  const auto first = pool->step(0, std::vector<float>{act::go, act::succeed, act::go}).value();
  EXPECT_EQ(ints(first.view().valid()), (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(ints(first.view().terminated()), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(ints(first.view().success()), (std::vector<int>{0, 1, 0}));
  const auto last = pool->step(0, std::vector<float>(3, act::go)).value();
  EXPECT_EQ(ints(last.view().truncated()), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(last.view().episode_success()[0], 1) << "once, but not at the end";
  EXPECT_EQ(ints(pool->step(0, std::vector<float>(3, act::go)).value().view().valid()), (std::vector<int>{0, 0, 0}));
}

TEST(EnvBlockTest, ObservationsInsideAChunkAreNotAskedOfThoseWhoObserveOnDemand) {
  auto script = std::make_shared<EnvScript>();
  script->on_demand = true;
  auto pool = begun_pool(scripted(script), {.num_envs = 1, .chunk = 4});
  script->observed = 0;
  EXPECT_EQ(floats(pool->spec(), pool->step(0, std::vector<float>(4, act::go)).value().view(), 0)[1], 4);
  EXPECT_EQ(script->observed, 1);
  const auto ended = pool->step(0, std::vector<float>{act::go, act::finish, act::go, act::go}).value();
  EXPECT_EQ(floats(pool->spec(), ended.view(), 0, true)[1], 6);
  EXPECT_EQ(script->observed, 3) << "the last of the old episode and the first of the new";
}

TEST(EnvBlockTest, CountersAddUp) {
  auto pool = begun_pool(scripted(), {.num_envs = 4, .chunk = 3});
  pool->step(0, std::vector<float>(12, act::go)).value();
  pool->step(0, std::vector<float>(12, act::finish)).value();
  const auto counters = pool->counters();
  EXPECT_EQ(counters.env_steps, 4 * 3 + 4);
  EXPECT_EQ(counters.resets, 8);
  EXPECT_EQ(counters.lost, 0);
}

TEST(EnvBlockTest, OptionsThatCannotWorkAreErrors) {
  const auto executor = Executor::make({});
  const auto refuses = [&](EnvBlock::Options options) {
    const auto block = EnvBlock::make(scripted(), options, *executor);
    return !block && block.error().code() == Errc::invalid_argument;
  };
  EXPECT_FALSE(refuses({.envs = 4}));
  EXPECT_TRUE(refuses({.envs = 0}));
  EXPECT_TRUE(refuses({.envs = 1, .chunk = 0}));
  EXPECT_TRUE(refuses({.envs = 1, .chunk = 2, .exec_steps = 3}));
  EXPECT_TRUE(refuses({.envs = 6, .group_size = 4}));
  EXPECT_TRUE(refuses({.first_env = 2, .envs = 4, .group_size = 4}));
  EXPECT_TRUE(refuses({.first_env = -1, .envs = 4}));
}

/// A chunk against its actions one by one, in every reset mode: ends fall inside, at the end and at the limit.
class EnvChunkTest : public ::testing::TestWithParam<ResetMode> {};

TEST_P(EnvChunkTest, EightActionsAtOnceEqualEightOneByOne) {
  constexpr std::int64_t kChunk = 8, kEnvs = 3;
  for (const char* id : {"CartPole-v1", "Pendulum-v1", "reach-v1"}) {
    const auto factory = factory_of(id);
    auto chunked =
        make_pool(factory, {.num_envs = kEnvs, .chunk = kChunk, .reset_mode = GetParam(), .max_steps = 30, .seed = 9});
    // a group for each environment, so that one can wait for the next chunk while others go on
    auto single =
        make_pool(factory, {.num_envs = kEnvs, .groups = kEnvs, .reset_mode = GetParam(), .max_steps = 30, .seed = 9});
    const EnvSpec& spec = factory->spec();
    begin(*chunked);
    for (std::int64_t i = 0; i < kEnvs; ++i) begin(*single, i);
    std::int64_t ends_inside = 0;
    for (std::uint64_t c = 0; c < 30; ++c) {
      const auto actions = random_actions(spec.action, kEnvs * kChunk, 5, c);
      const auto block = chunked->step(0, actions).value();
      const BlockView& view = block.view();
      for (std::int64_t i = 0; i < kEnvs; ++i) {
        const auto row = static_cast<std::size_t>(i);
        for (std::int64_t k = 0; k < kChunk; ++k) {
          const auto cell = static_cast<std::size_t>(i * kChunk + k), size = static_cast<std::size_t>(spec.action.size);
          const auto one = single->step(i, std::span(actions).subspan(cell * size, size)).value();
          ASSERT_EQ(view.valid()[cell], one.view().valid()[0]) << id;
          ASSERT_EQ(view.reward()[cell], one.view().reward()[0]);
          ASSERT_EQ(view.terminated()[cell], one.view().terminated()[0]);
          ASSERT_EQ(view.truncated()[cell], one.view().truncated()[0]);
          ASSERT_EQ(view.success()[cell], one.view().success()[0]);
          const bool over = one.view().done()[0] != 0 || one.view().valid()[0] == 0;
          if (!over && k + 1 < kChunk) continue;
          ASSERT_EQ(observation_bits(spec, view, i), observation_bits(spec, one.view(), 0)) << id;
          ASSERT_EQ(view.done()[row], one.view().done()[0]);
          ASSERT_EQ(view.episode()[row], one.view().episode()[0]);
          ASSERT_EQ(view.step()[row], one.view().step()[0]);
          ASSERT_EQ(view.episode_return()[row], one.view().episode_return()[0]);
          ASSERT_EQ(view.episode_length()[row], one.view().episode_length()[0]);
          ASSERT_EQ(view.episode_success()[row], one.view().episode_success()[0]);
          if (view.done()[row] != 0) {
            ASSERT_EQ(observation_bits(spec, view, i, true), observation_bits(spec, one.view(), 0, true));
            ends_inside += k + 1 < kChunk;
          }
          for (std::int64_t rest = k + 1; rest < kChunk; ++rest) {
            const auto after = static_cast<std::size_t>(i * kChunk + rest);
            ASSERT_EQ(view.valid()[after] + view.terminated()[after] + view.truncated()[after] + view.success()[after],
                      0);
            ASSERT_EQ(view.reward()[after], 0);
          }
          break;
        }
        ASSERT_EQ(chunked->state_hash(i), single->state_hash(i));
      }
    }
    EXPECT_GT(ends_inside, 0) << id;
  }
}

std::string mode_name(const ::testing::TestParamInfo<ResetMode>& info) {
  return std::array{"SameStep", "NextStep", "Episode", "Fixed"}[static_cast<std::size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Modes, EnvChunkTest,
                         ::testing::Values(ResetMode::same_step, ResetMode::next_step, ResetMode::episode,
                                           ResetMode::fixed),
                         mode_name);

}  // namespace
}  // namespace troupe::testing
