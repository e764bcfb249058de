#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/model/shard/training_harness.h"

namespace troupe::model {
namespace {

TEST(EngineStateTest, TenStepsAResumeAndTenMoreEqualTwentyBitForBit) {
  const auto straight = train({.world = 2, .steps = 20});
  const auto first = train({.world = 2, .steps = 10});
  const auto second = train({.world = 2, .first_step = 10, .steps = 10, .resume = &first.state});
  auto losses = first.losses;
  losses.insert(losses.end(), second.losses.begin(), second.losses.end());
  EXPECT_EQ(losses, straight.losses);
  EXPECT_TRUE(second.state == straight.state);
  EXPECT_EQ(second.state.num_updates, 20);
}

TEST(EngineStateTest, AStateSavedOnFourRanksLoadsOnAnyNumberBitForBit) {
  expect_every_world_loads({}, train({.world = 4, .steps = 4}).state);
}

TEST(EngineStateTest, TheNextLossesAfterARescaleAgree) {
  const auto saved = train({.world = 4, .steps = 4});
  const auto reference = train({.world = 4, .micro_batches = 1, .first_step = 4, .steps = 3, .resume = &saved.state});
  for (const int world : {1, 2}) {
    const auto result =
        train({.world = world, .micro_batches = 4 / world, .first_step = 4, .steps = 3, .resume = &saved.state});
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(result.losses[i], reference.losses[i], 1e-6 * reference.losses[i]) << world;
  }
}

TEST(EngineStateTest, InitialValuesDoNotDependOnTheWorldSize) {
  const auto one = train({.world = 1, .steps = 0});
  for (const int world : {2, 3}) EXPECT_TRUE(train({.world = world, .steps = 0}).state == one.state) << world;
}

TEST(EngineStateTest, AllocatedBytesFollowTheFormula) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const int world : {1, 2, 3}) {
      run_thread_ranks(world, [&](Collective& group) {
        const std::int64_t width = dtype == at::kFloat ? 4 : 2;
        Engine engine(std::make_shared<ChainNetwork>(), {.param_dtype = dtype, .param_slots = 3, .grad_slots = 2});
        EXPECT_EQ(engine.bytes().at("shards"), 0);
        engine.attach(group).value();
        std::int64_t shard = 0, largest = 0;
        for (const auto& layout : engine.layouts()) {
          shard += layout.padded(world) / world;
          largest = std::max(largest, layout.padded(world));
        }
        EXPECT_EQ(engine.bytes().at("shards"), shard * (dtype == at::kFloat ? 16 : 18));
        EXPECT_EQ(engine.bytes().at("slots"), world == 1 ? 0 : 3 * largest * width) << "alone, units are in place";
        EXPECT_EQ(engine.bytes().at("gradients"), (world == 1 ? 1 : 2 + 1) * largest * 4)
            << "slots, and what ranks sent";
        EXPECT_EQ(engine.snapshot_bytes(), static_cast<std::size_t>(shard) * 12);
      });
    }
  }
}

TEST(EngineStateTest, MoreParameterSlotsThanUnitsAreNotAllocated) {
  run_thread_ranks(2, [&](Collective& group) {
    Engine engine(std::make_shared<ChainNetwork>(ChainShape{.blocks = 2}), {.param_slots = 10});
    engine.attach(group).value();
    std::int64_t all = 0;
    for (const FlatLayout& layout : engine.layouts()) all += layout.padded(2);
    EXPECT_EQ(engine.bytes().at("slots"), all * 4) << "one for each unit, of its size";
  });
}

/// loss = mean((input W)^2); the last unit has no parameters.
class BareHead final : public Network {
 public:
  const std::vector<UnitSpec>& units() const override { return units_; }
  Carry prologue(const ParamView& p, const Batch& batch) const override {
    return {batch.at("input").matmul(p["w"]), {}};
  }
  at::Tensor block(std::int64_t, const ParamView&, const Carry& carry, const Batch&) const override { return carry.x; }
  Outputs epilogue(const ParamView&, const Carry& carry, const Batch&) const override {
    return {carry.x.square().mean(), {}, {}};
  }

 private:
  std::vector<UnitSpec> units_ = {
      {"embed", "embed", {{"w", {7, 3}, {Init::Kind::normal, 1}}}}, {"identity", "identity", {}}, {"head", "head", {}}};
};

TEST(EngineStateTest, UnitsWithoutParametersNeedNoCollective) {
  run_thread_ranks(2, [](Collective& group) {
    StartedEngine engine(group, std::make_shared<BareHead>());
    double losses[2];
    for (double& loss : losses) {
      loss = engine.accumulate(chain_batch(0), 0.5, true).value().loss;
      const auto vote = engine.vote({}, {}).value();
      EXPECT_GT(vote.grad_norm, 0.0);
      engine.commit(1e-2, vote);
    }
    EXPECT_LT(losses[1], losses[0]);
  });
}

TEST(EngineStateTest, WorkWithoutAGroupOrStateIsRefused) {
  Engine engine(std::make_shared<ChainNetwork>(), {});
  EXPECT_EQ(engine.accumulate(chain_batch(0), 1, true).error().code(), Errc::failed_precondition);
  run_thread_ranks(1, [&](Collective& group) {
    engine.attach(group).value();
    EXPECT_FALSE(engine.has_state());
    EXPECT_EQ(engine.forward(chain_batch(0)).error().code(), Errc::failed_precondition);
    engine.initialise(1);
    EXPECT_EQ(engine.vote({}, {}).error().code(), Errc::failed_precondition);
    EXPECT_EQ(engine.accumulate(chain_batch(0), 1, false).error().code(), Errc::failed_precondition);
    EXPECT_TRUE(engine.accumulate(chain_batch(0), 1, true));
  });
}

TEST(EngineStateTest, AttachingAnEqualGroupKeepsTheStateAndAnotherSizeLosesIt) {
  Engine engine(std::make_shared<ChainNetwork>(), {});
  std::vector<std::byte> before;
  run_thread_ranks(1, [&](Collective& group) {
    engine.attach(group).value();
    engine.initialise(1);
    before = snapshot_of(engine);
  });
  run_thread_ranks(1, [&](Collective& group) {
    engine.attach(group).value();
    EXPECT_TRUE(engine.has_state());
    EXPECT_EQ(snapshot_of(engine), before);
  });
  const auto wider = join_thread_group(make_thread_group(2, std::chrono::seconds(5)), 0);
  engine.attach(*wider).value();
  EXPECT_FALSE(engine.has_state());
}

}  // namespace
}  // namespace troupe::model
