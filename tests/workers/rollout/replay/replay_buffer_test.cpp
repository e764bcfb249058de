#include "workers/rollout/replay/replay_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "kernels/threads.h"
#include "model/loss/rl_keys.h"
#include "tests/workers/rollout/item_builder.h"

namespace troupe::workers {
namespace {

/// Three calls of two environments an item: six transitions.
struct ReplayBufferTest : ::testing::Test {
  JobConfig job = line_job(Algorithm::sac, 3);
  EnvSpec spec = line_spec();

  ItemBuilder item(std::int64_t number) const { return {job, spec, number}; }
  ReplayBuffer buffer(ReplayBuffer::Options options) const {
    const ItemBuilder any = item(0);
    return {options, any.layout(), any.shape(job)};
  }
  ReplayBuffer buffer(std::int64_t capacity = 100) const { return buffer({.capacity = capacity, .gamma = 0.5}); }
  /// Draws from `replay` with `one` as its only item.
  static Batch drawn(ReplayBuffer replay, const ItemBuilder& one, std::int64_t rows = 100) {
    replay.add(one.bytes());
    return replay.draw(rows, 1, 0);
  }

  static float number(const Batch& batch, const std::string& key, std::int64_t row) {
    return batch.at(key)[row][0].item<float>();
  }
  /// By the number of the state they began in: one row each.
  static std::map<float, std::int64_t> rows_by_state(const Batch& batch) {
    std::map<float, std::int64_t> rows;
    for (std::int64_t i = 0; i < batch.at(rl_keys::kState).size(0); ++i) rows[number(batch, rl_keys::kState, i)] = i;
    return rows;
  }
};

TEST_F(ReplayBufferTest, DrawsEveryResidentTransitionEquallyOften) {
  ReplayBuffer replay = buffer();
  replay.add(item(0).bytes());
  replay.add(item(1).bytes());
  const std::int64_t rows = 24'000;
  const Batch batch = replay.draw(rows, 1, 2);
  std::map<float, int> counts;
  for (std::int64_t i = 0; i < rows; ++i) ++counts[number(batch, rl_keys::kState, i)];
  ASSERT_EQ(counts.size(), 12u);
  // 2,000 expected each, with a standard deviation of 43
  for (const auto& [state, count] : counts) EXPECT_NEAR(count, 2000, 215) << state;
}

TEST_F(ReplayBufferTest, TheNextObservationIsTheSameRowsOfTheNextCall) {
  const Batch batch = drawn(buffer(), item(2), 200);
  for (std::int64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(number(batch, rl_keys::kNextState, i), number(batch, rl_keys::kState, i) + 10);
    EXPECT_EQ(number(batch, rl_keys::kAction, i), number(batch, rl_keys::kState, i));
    EXPECT_EQ(number(batch, rl_keys::kReward, i), 1);
    EXPECT_EQ(number(batch, rl_keys::kContinues, i), 0.5f);
  }
}

TEST_F(ReplayBufferTest, AtTheEndOfAnEpisodeTheNextObservationIsTheFinalOne) {
  const Batch batch = drawn(buffer(), item(0).end(0, 1, true).end(1, 0, false).end(2, 1, false), 300);
  const auto rows = rows_by_state(batch);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(number(batch, rl_keys::kNextState, rows.at(1)), 1.5f);
  EXPECT_EQ(number(batch, rl_keys::kNextState, rows.at(10)), 10.5f);
  EXPECT_EQ(number(batch, rl_keys::kNextState, rows.at(21)), 21.5f);
  EXPECT_EQ(number(batch, rl_keys::kNextState, rows.at(20)), 30);
}

TEST_F(ReplayBufferTest, ATransitionIsToldTheTextOfItsEpisodeAndOnceForBothObservations) {
  job.policy.text = TextReader::words;
  spec.observation.push_back({.name = "order", .shape = {4}, .dtype = EnvDType::u8, .reader = EnvReader::text});
  ItemBuilder one = item(0);
  one.end(0, 1, true);
  for (std::int64_t t = 0; t <= 3; ++t) {
    one.view().text(0, t)[0] = 'a';
    one.view().text(0, t)[4] = t == 0 ? 'b' : 'c';  // another episode
  }
  const Batch batch = drawn(buffer(), one, 200);
  EXPECT_EQ(batch.at("text.order").sizes().vec(), (std::vector<std::int64_t>{200, 4}));
  for (const auto& [state, row] : rows_by_state(batch)) {
    const bool is_second = static_cast<int>(state) % 10 == 1;
    EXPECT_EQ(batch.at("text.order")[row][0].item<int>(), !is_second ? 'a' : state < 10 ? 'b' : 'c') << state;
    EXPECT_EQ(batch.at("text.order")[row][1].item<int>(), 0);
  }
  job.policy.text = TextReader::none;
  EXPECT_FALSE(drawn(buffer(), item(0)).contains("text.order"));
}

TEST_F(ReplayBufferTest, TerminationsCutTheTargetAndTruncationsDoNot) {
  const Batch batch = drawn(buffer(), item(0).end(0, 1, true).end(1, 0, false), 300);
  const auto rows = rows_by_state(batch);
  EXPECT_EQ(number(batch, rl_keys::kContinues, rows.at(1)), 0);
  EXPECT_EQ(number(batch, rl_keys::kContinues, rows.at(10)), 0.5f);
  EXPECT_EQ(number(batch, rl_keys::kContinues, rows.at(0)), 0.5f);
}

TEST_F(ReplayBufferTest, NothingCutsTheTargetWhenAlwaysBootstrapping) {
  const Batch batch = drawn(buffer({.capacity = 100, .gamma = 0.5, .always_bootstrap = true}), item(0).end(0, 1, true));
  EXPECT_TRUE(batch.at(rl_keys::kContinues).eq(0.5).all().item<bool>());
}

TEST_F(ReplayBufferTest, ChunksAddTheirRewardsAndDiscountOnce) {
  job = line_job(Algorithm::sac, 2, 4);
  const Batch batch = drawn(buffer(), item(0).end(1, 0, false, 1));
  const auto rows = rows_by_state(batch);
  EXPECT_EQ(number(batch, rl_keys::kReward, rows.at(0)), 4);
  EXPECT_EQ(number(batch, rl_keys::kReward, rows.at(10)), 2);
  EXPECT_TRUE(batch.at(rl_keys::kContinues).eq(0.5).all().item<bool>());
}

TEST_F(ReplayBufferTest, SemiMdpDiscountsEveryExecutedControlStep) {
  job = line_job(Algorithm::sac, 2, 4);
  const Batch batch = drawn(buffer({.capacity = 100, .gamma = 0.5, .semi_mdp = true}), item(0).end(1, 0, false, 1));
  const auto rows = rows_by_state(batch);
  EXPECT_FLOAT_EQ(number(batch, rl_keys::kReward, rows.at(0)), 1.875f);  // 1 + 1/2 + 1/4 + 1/8
  EXPECT_FLOAT_EQ(number(batch, rl_keys::kContinues, rows.at(0)), 0.0625f);
  EXPECT_FLOAT_EQ(number(batch, rl_keys::kReward, rows.at(10)), 1.5f);
  EXPECT_FLOAT_EQ(number(batch, rl_keys::kContinues, rows.at(10)), 0.25f);
}

TEST_F(ReplayBufferTest, TheOldestSlabGoesFirstAndWhole) {
  ReplayBuffer replay = buffer(14);
  for (std::int64_t i = 0; i < 2; ++i) replay.add(item(i).bytes());
  EXPECT_EQ(replay.resident(), 12);
  EXPECT_EQ(replay.evicted(), 0);
  replay.add(item(2).bytes());
  EXPECT_EQ(replay.resident(), 12);
  EXPECT_EQ(replay.evicted(), 6);
  std::set<float> items;
  const Batch batch = replay.draw(400, 1, 0);
  for (std::int64_t i = 0; i < 400; ++i) items.insert(std::floor(number(batch, rl_keys::kState, i) / 100));
  EXPECT_THAT(items, ::testing::ElementsAre(1, 2));
}

TEST_F(ReplayBufferTest, HoldsExactlyItsCapacityWhenSlabsFit) {
  ReplayBuffer replay = buffer(18);
  for (std::int64_t i = 0; i < 10; ++i) {
    replay.add(item(i).bytes());
    EXPECT_EQ(replay.resident(), std::min<std::int64_t>(18, 6 * (i + 1)));
    EXPECT_EQ(replay.resident() + replay.evicted(), 6 * (i + 1));
  }
}

TEST_F(ReplayBufferTest, LostAndFrozenRowsAreNoTransitions) {
  ReplayBuffer replay = buffer();
  replay.add(item(0).lose(1, 0).freeze(1, 1).bytes());
  EXPECT_EQ(replay.resident(), 3);
  EXPECT_THAT(rows_by_state(replay.draw(100, 1, 0)),
              ::testing::UnorderedElementsAre(::testing::Key(0), ::testing::Key(1), ::testing::Key(20)));
}

TEST_F(ReplayBufferTest, TheSameSeedAndIndexDrawTheSame) {
  ReplayBuffer first = buffer(), second = buffer();
  for (std::int64_t i = 0; i < 3; ++i) {
    first.add(item(i).bytes());
    second.add(item(i).bytes());
  }
  const at::Tensor once = first.draw(32, 7, 9).at(rl_keys::kState);
  EXPECT_TRUE(once.equal(second.draw(32, 7, 9).at(rl_keys::kState)));
  EXPECT_FALSE(once.equal(first.draw(32, 7, 10).at(rl_keys::kState)));
  EXPECT_FALSE(once.equal(first.draw(32, 8, 9).at(rl_keys::kState)));
}

TEST_F(ReplayBufferTest, ThreadsThatStandByDrawTheSame) {
  ReplayBuffer replay = buffer();
  replay.add(item(0).bytes());
  replay.add(item(1).end(1, 0, false).bytes());
  const Batch alone = replay.draw(37, 1, 2);
  Batch shared;
  kernels::with_own_team(3, [&] { shared = replay.draw(37, 1, 2); });
  ASSERT_EQ(shared.size(), alone.size());
  for (const auto& [key, tensor] : alone) EXPECT_TRUE(tensor.equal(shared.at(key))) << key;
}

TEST_F(ReplayBufferTest, ABufferThatSawMoreDrawsAsOneThatHoldsTheSame) {
  // what a resumed run relies on: the log holds the newest items alone
  ReplayBuffer old = buffer(12), resumed = buffer(12);
  for (std::int64_t i = 0; i < 5; ++i) old.add(item(i).bytes());
  for (std::int64_t i = 2; i < 5; ++i) resumed.add(item(i).bytes());
  EXPECT_TRUE(old.draw(64, 1, 1).at(rl_keys::kState).equal(resumed.draw(64, 1, 1).at(rl_keys::kState)));
}

TEST_F(ReplayBufferTest, ImagesKeepTheirTypeAndEndInTheirFinalOne) {
  spec = line_spec(true);
  spec.observation.push_back({.name = "depth", .shape = {1, 1}});
  const ItemBuilder one = item(0).end(2, 1, false).end(0, 1, true).lose(1, 1).end(1, 0, true);
  const Batch batch = drawn(buffer(), one, 200);
  const auto rows = rows_by_state(batch);
  for (const auto& [name, type, channels] : {std::tuple{"rgb", at::kByte, 3}, std::tuple{"depth", at::kFloat, 1}}) {
    const at::Tensor now = batch.at(std::string("obs.") + name), next = batch.at(std::string("next.") + name);
    EXPECT_EQ(now.scalar_type(), type) << name;
    EXPECT_THAT(next.sizes().vec(), ::testing::ElementsAre(200, 1, 1, channels)) << name;
    // the item's marks are the first bytes of its frames
    const at::Tensor marks = now.view(at::kByte).flatten(1), next_marks = next.view(at::kByte).flatten(1);
    EXPECT_EQ(marks[rows.at(20)][0].item<int>(), 20) << name;
    EXPECT_EQ(next_marks[rows.at(20)][0].item<int>(), 30) << name;
    EXPECT_EQ(next_marks[rows.at(1)][0].item<int>(), 6) << name;
    EXPECT_EQ(next_marks[rows.at(10)][0].item<int>(), 15) << name;
    EXPECT_EQ(next_marks[rows.at(21)][0].item<int>(), 26) << name;
  }
}

TEST_F(ReplayBufferTest, BytesFollowWhatIsResident) {
  ReplayBuffer replay = buffer(12);
  replay.add(item(0).bytes());
  const std::int64_t one = replay.bytes();
  EXPECT_GT(one, 0);
  for (std::int64_t i = 1; i < 6; ++i) replay.add(item(i).bytes());
  EXPECT_EQ(replay.bytes(), 2 * one);
  replay.clear(12);
  EXPECT_EQ(replay.bytes(), 0);
  EXPECT_EQ(replay.resident(), 0);
}

TEST_F(ReplayBufferTest, ABufferMadeSmallerHoldsThatMuch) {
  ReplayBuffer replay = buffer(100);
  replay.clear(6);
  for (std::int64_t i = 0; i < 3; ++i) replay.add(item(i).bytes());
  EXPECT_EQ(replay.resident(), 6);
  EXPECT_EQ(rows_by_state(replay.draw(100, 1, 0)).begin()->first, 200);
}

}  // namespace
}  // namespace troupe::workers
