// Rows in batches (BatchEnv): the rules of one by one, and what a call that fails takes with it.
#include "env/block_lanes.h"

#include <gmock/gmock.h>

#include <stdexcept>
#include <tuple>

#include "tests/env/pool_run.h"
#include "tests/env/scripted_env.h"

namespace troupe::testing {
namespace {

std::shared_ptr<EnvScript> batches_of(std::int64_t lanes, bool on_demand = false) {
  auto script = std::make_shared<EnvScript>();
  script->max_lanes = lanes;
  script->on_demand = on_demand;
  return script;
}

/// Reset mode, and whether environments observe on demand.
class BlockLanesRulesTest : public ::testing::TestWithParam<std::tuple<ResetMode, bool>> {};

// Ends of all kinds, losses of single rows and caller's resets, in chunks; two threads share batches of 5 and 2 lanes.
TEST_P(BlockLanesRulesTest, RowsInABatchSayWhatTheySayOneByOne) {
  constexpr std::int64_t kEnvs = 12, kChunk = 4;
  const auto [mode, on_demand] = GetParam();
  EnvPool::Options options{.num_envs = kEnvs,
                           .first_env = 6,
                           .chunk = kChunk,
                           .exec_steps = 3,
                           .reset_mode = mode,
                           .group_size = 2,
                           .max_steps = 11,
                           .stagger = true,
                           .seed = 8};
  const auto single = begun_pool(scripted(batches_of(1, on_demand)), options);
  options.threads = 2;
  const auto batched = begun_pool(scripted(batches_of(5, on_demand)), options);
  std::int64_t ends = 0, losses = 0;
  for (std::uint64_t s = 0; s < 200; ++s) {
    CounterRng rng(21, 4, s);
    std::vector<float> actions(kEnvs * kChunk, act::go);
    for (float& a : actions) {
      constexpr float kUnusual[] = {act::finish,          act::succeed,    act::cut, act::bad_reward,
                                    act::bad_observation, act::fail_alone, kNan};
      if (rng.below(12) == 0) a = kUnusual[rng.below(7)];
    }
    if (s % 10 == 9) {
      const auto episode = static_cast<std::int64_t>(s);
      const auto one = begin(*single, 0, episode), many = begin(*batched, 0, episode);
      for (std::int64_t row = 0; row < kEnvs; ++row)
        ASSERT_EQ(row_bits(single->spec(), many.view(), row), row_bits(single->spec(), one.view(), row));
      continue;
    }
    const auto one = single->step(0, actions).value(), many = batched->step(0, actions).value();
    for (std::int64_t row = 0; row < kEnvs; ++row) {
      ASSERT_EQ(row_bits(single->spec(), many.view(), row), row_bits(single->spec(), one.view(), row))
          << "row " << row << ", step " << s;
      ASSERT_EQ(batched->state_hash(row), single->state_hash(row)) << "row " << row << ", step " << s;
      ends += one.view().done()[static_cast<std::size_t>(row)];
      losses += one.view().lost()[static_cast<std::size_t>(row)];
    }
  }
  EXPECT_GT(losses, 20);
  EXPECT_GT(ends, losses);
  EXPECT_EQ(batched->counters().env_steps, single->counters().env_steps);
  EXPECT_EQ(batched->counters().resets, single->counters().resets);
  EXPECT_EQ(batched->counters().lost, single->counters().lost);
}

INSTANTIATE_TEST_SUITE_P(Modes, BlockLanesRulesTest,
                         ::testing::Combine(::testing::Values(ResetMode::same_step, ResetMode::next_step,
                                                              ResetMode::episode, ResetMode::fixed),
                                            ::testing::Bool()));

TEST(BlockLanesTest, ACallThatFailsLosesTheRowsInItAndNoOthers) {
  for (const float way : {act::fail, act::refuse}) {
    auto pool = begun_pool(scripted(batches_of(3)), {.num_envs = 6});
    std::vector<float> actions(6, act::go);
    actions[1] = way;
    const auto block = pool->step(0, actions).value();
    EXPECT_EQ(ints(block.view().lost()), (std::vector<int>{1, 1, 1, 0, 0, 0}));
    EXPECT_EQ(ints(block.view().valid()), (std::vector<int>{0, 0, 0, 1, 1, 1}));
    EXPECT_EQ(ints(block.view().truncated()), (std::vector<int>{1, 1, 1, 0, 0, 0}));
    const auto next = pool->step(0, std::vector<float>(6, act::go)).value();
    EXPECT_EQ(ints(next.view().valid()), std::vector<int>(6, 1));
    EXPECT_EQ(pool->counters().lost, 3);
  }
}

TEST(BlockLanesTest, RowsThatEndedBeforeTheCallThatFailedKeepTheirEnds) {
  auto pool = begun_pool(scripted(batches_of(3)), {.num_envs = 3, .chunk = 2});
  const auto block =
      pool->step(0, std::vector<float>{act::finish, act::go, act::go, act::fail, act::go, act::go}).value();
  EXPECT_EQ(ints(block.view().lost()), (std::vector<int>{0, 1, 1}));
  EXPECT_EQ(ints(block.view().terminated()), (std::vector<int>{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(ints(block.view().truncated()), (std::vector<int>{0, 0, 0, 1, 0, 1}));
  EXPECT_EQ(ints(block.view().valid()), (std::vector<int>{1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(floats(pool->spec(), block.view(), 0, true)[1], 1) << "the last of the episode that ended";
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(block.view().done()[row], 1);
    EXPECT_EQ(block.view().episode()[row], 1) << "on a new batch";
  }
}

TEST(BlockLanesTest, ARowThatIsLostForItselfKeepsTheOthersGoing) {
  auto pool = begun_pool(scripted(batches_of(3)), {.num_envs = 3});
  pool->step(0, std::vector<float>(3, act::go)).value();
  for (const float way : {kNan, act::bad_reward, act::bad_observation, act::fail_alone}) {
    const auto block = pool->step(0, std::vector<float>{act::go, way, act::go}).value();
    EXPECT_EQ(ints(block.view().lost()), (std::vector<int>{0, 1, 0}));
    EXPECT_EQ(block.view().episode()[0] + block.view().episode()[2], 0);
  }
  EXPECT_EQ(pool->step(0, std::vector<float>(3, act::go)).value().view().step()[2], 6);
}

TEST(BlockLanesTest, RowsWhoseBatchWasLostInTheResetOfOthersAreLostAtTheirNextAction) {
  const auto script = batches_of(3);
  auto pool = begun_pool(scripted(script), {.num_envs = 3, .chunk = 2});
  script->failing_resets = 1;
  const auto ended =
      pool->step(0, std::vector<float>{act::finish, act::go, act::go, act::go, act::go, act::go}).value();
  EXPECT_EQ(ints(ended.view().lost()), (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(ints(ended.view().valid()), (std::vector<int>{1, 0, 1, 1, 1, 1}));
  EXPECT_EQ(pool->state_hash(1), 0U);
  const auto lost = pool->step(0, std::vector<float>(6, act::go)).value();
  EXPECT_EQ(ints(lost.view().lost()), std::vector<int>(3, 1));
  EXPECT_EQ(ints(lost.view().valid()), std::vector<int>(6, 0));
  EXPECT_NE(pool->why_lost(1).find("another environment of its batch"), std::string::npos) << pool->why_lost(1);
  EXPECT_EQ(ints(pool->step(0, std::vector<float>(6, act::go)).value().view().valid()), std::vector<int>(6, 1));
}

TEST(BlockLanesTest, ABatchThatCannotBeMadeAnewIsTriedAgainInTheNextStep) {
  const auto script = batches_of(3);
  auto pool = begun_pool(scripted(script), {.num_envs = 3});
  script->failing_makes = 1;
  EXPECT_EQ(ints(pool->step(0, std::vector<float>(3, act::fail)).value().view().lost()), std::vector<int>(3, 1));
  EXPECT_EQ(ints(pool->step(0, std::vector<float>(3, act::go)).value().view().lost()), std::vector<int>(3, 1));
  EXPECT_EQ(ints(pool->step(0, std::vector<float>(3, act::go)).value().view().valid()), std::vector<int>(3, 1));
}

/// A factory of a program that breaks its promises.
class FaithlessFactory final : public EnvFactory {
 public:
  explicit FaithlessFactory(std::int64_t given, std::int64_t most = 4) : given_(given), most_(most) {}
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<std::unique_ptr<Env>> make() const override { throw std::runtime_error("no license"); }
  std::int64_t max_lanes() const noexcept override { return most_; }
  Result<std::unique_ptr<BatchEnv>> make_batch(std::int64_t) const override {
    if (given_ == 0) throw std::runtime_error("no license");
    return scripted(batches_of(given_))->make_batch(given_);
  }

 private:
  std::int64_t given_, most_;
  EnvSpec spec_ = ScriptedEnv::make_spec();
};

std::string refusal(std::int64_t given, std::int64_t most = 4) {
  const auto pool = EnvPool::make(std::make_shared<FaithlessFactory>(given, most), {.num_envs = 4});
  EXPECT_FALSE(pool);
  return pool ? "" : pool.error().message();
}

TEST(BlockLanesTest, AFactoryThatMakesSomethingElseIsRefused) {
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal(3), HasSubstr("a batch of 4 lanes was asked for; make_batch() gave one of 3"));
  EXPECT_THAT(refusal(5), HasSubstr("gave one of 5"));
  EXPECT_THAT(refusal(0), HasSubstr("no license"));
  EXPECT_THAT(refusal(4, 0), HasSubstr("max_lanes() is 0"));
}

TEST(BlockLanesTest, EveryThreadHasABatch) {
  auto pool = begun_pool(scripted(batches_of(64)), {.num_envs = 10, .threads = 4});
  std::vector<float> actions(10, act::go);
  actions[4] = act::fail;  // its call tells who is in its batch
  EXPECT_EQ(ints(pool->step(0, actions).value().view().lost()), (std::vector<int>{0, 0, 0, 1, 1, 1, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace troupe::testing
