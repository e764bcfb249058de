// The moving average of the masters (EngineOptions::ema_decay).
#include <gtest/gtest.h>

#include <cstring>

#include "tests/model/shard/training_harness.h"

namespace troupe::model {
namespace {

TrainingRun averaged(double decay = 0.9) {
  TrainingRun run;
  run.options.ema_decay = decay;
  return run;
}

TEST(EngineAverageTest, ItStartsAsTheMastersAndFollowsThemByTheFormula) {
  TrainingRun run = averaged();
  run.steps = 0;
  auto before = train(run).state;
  for (const auto& unit : before.values) EXPECT_EQ(unit[kEma], unit[kMaster]);
  run.steps = 1;
  for (int step = 0; step < 4; ++step) {
    run.first_step = step;
    run.resume = &before;
    const auto after = train(run).state;
    for (std::size_t u = 0; u < after.values.size(); ++u) {
      for (std::size_t i = 0; i < after.values[u][kEma].size(); ++i) {
        const double want = 0.9 * before.values[u][kEma][i] + 0.1 * after.values[u][kMaster][i];
        ASSERT_NEAR(after.values[u][kEma][i], want, 2e-7 * (1 + std::abs(want))) << u << " " << i;
      }
    }
    EXPECT_NE(after.values[0][kEma], before.values[0][kEma]);
    before = after;
  }
}

TEST(EngineAverageTest, ItIsPublishedInThePlaceOfTheMasters) {
  EngineOptions options;
  options.ema_decay = 0.9;
  run_thread_ranks(1, [&](Collective& group) {
    StartedEngine engine(group, std::make_shared<ChainNetwork>(), options);
    engine.accumulate(chain_batch(0), 1, true).value();
    engine.commit(1e-2, engine.vote({}, {}).value());
    std::vector<std::byte> state(engine.snapshot_bytes());
    engine.snapshot(state);
    const auto name = engine.units().front().name;
    std::vector<std::vector<float>> masters, averages;
    engine.publish({name}, StateKind::master, masters);
    engine.publish({name}, StateKind::ema, averages);
    // master, m, v, average
    const auto bytes = masters[0].size() * sizeof(float);
    EXPECT_EQ(std::memcmp(masters[0].data(), state.data(), bytes), 0);
    EXPECT_EQ(std::memcmp(averages[0].data(), state.data() + 3 * bytes, bytes), 0);
    EXPECT_NE(averages, masters);
    const auto entry = engine.layouts().front().entries.front();
    const auto views = engine.gather_views({name}, StateKind::ema).value();
    EXPECT_EQ(views.at(name)[entry.name].flatten()[0].item<float>(),
              averages[0][static_cast<std::size_t>(entry.offset)]);
  });
}

TEST(EngineAverageTest, TrainingIsBitForBitWhatItIsWithout) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    TrainingRun with = averaged(), without;
    with.options.param_dtype = without.options.param_dtype = dtype;
    const auto a = train(with), b = train(without);
    EXPECT_EQ(a.losses, b.losses);
    for (std::size_t u = 0; u < a.state.values.size(); ++u) {
      for (std::size_t kind = 0; kind < 3; ++kind) EXPECT_EQ(a.state.values[u][kind], b.state.values[u][kind]);
    }
  }
}

TEST(EngineAverageTest, FourRanksHaveTheAverageOfOneAndAnyNumberLoadsIt) {
  TrainingRun one = averaged(), two = averaged();
  one.micro_batches = 2;
  two.world = 2;
  EXPECT_TRUE(train(one).state == train(two).state);
  TrainingRun four = averaged();
  four.world = 4;
  expect_every_world_loads(averaged(), train(four).state);
}

TEST(EngineAverageTest, AStateWithoutOneStartsItFromTheMastersAndOneMayBeDropped) {
  const auto without = train(TrainingRun{.world = 2}).state;
  TrainingRun load = averaged();
  load.steps = 0;
  load.resume = &without;
  const auto started = train(load).state;
  for (std::size_t u = 0; u < started.values.size(); ++u)
    EXPECT_EQ(started.values[u][kEma], without.values[u][kMaster]);
  TrainingRun drop;
  drop.steps = 0;
  drop.resume = &started;
  EXPECT_TRUE(train(drop).state == without);
}

TEST(EngineAverageTest, ADiscardedStepDoesNotMoveIt) {
  TrainingRun run = averaged();
  const auto discard_one = [](Engine& engine) {
    engine.accumulate(chain_batch(0), 1.0, true).value();
    engine.vote({}, {}).value();
    engine.discard();
  };
  const auto nothing = [](Engine&) {};
  const auto network = std::make_shared<ChainNetwork>();
  EXPECT_TRUE(state_after(1, network, run.options, 3, discard_one) == state_after(1, network, run.options, 3, nothing));
}

}  // namespace
}  // namespace troupe::model
