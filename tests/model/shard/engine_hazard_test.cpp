#include <gtest/gtest.h>

#include "base/hash.h"
#include "tests/model/shard/training_harness.h"
#include "tests/model/shard/wrapped_collective.h"

namespace troupe::model {
namespace {

using namespace std::chrono_literals;

TEST(EngineHazardTest, TheNumberOfSlotsDoesNotChangeABit) {
  TrainingRun run{.world = 2, .micro_batches = 2, .steps = 3};
  run.options.param_slots = 6;
  const auto reference = train(run);
  for (const int k : {1, 2, 3, 9}) {
    for (const int g : {1, 2, 3}) {
      run.options.param_slots = k;
      run.options.grad_slots = g;
      const auto result = train(run);
      EXPECT_EQ(result.losses, reference.losses) << "K " << k << ", G " << g;
      EXPECT_TRUE(result.state == reference.state) << "K " << k << ", G " << g;
    }
  }
}

TrainingResult train_against(TrainingRun run, const std::function<bool(int)>& late) {
  run.join = [group = make_thread_group(run.world, 20s), late](int rank) -> std::unique_ptr<Collective> {
    return std::make_unique<AdversarialCollective>(join_thread_group(group, rank), late);
  };
  return train(run);
}

TEST(EngineHazardTest, TheMomentAtWhichDataArrivesDoesNotChangeABit) {
  TrainingRun run{.world = 2, .micro_batches = 2, .steps = 3};
  for (const int k : {2, 3}) {
    for (const int g : {1, 2}) {
      run.options.param_slots = k;
      run.options.grad_slots = g;
      const auto reference = train(run);
      // NaN wherever the engine reads too early or reuses too early would reach the losses
      const auto always = train_against(run, [](int) { return true; });
      const auto never = train_against(run, [](int) { return false; });
      EXPECT_EQ(always.losses, reference.losses);
      EXPECT_TRUE(always.state == reference.state);
      EXPECT_EQ(never.losses, reference.losses);
      EXPECT_TRUE(never.state == reference.state);
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const auto mixed = train_against(
            run, [seed](int op) { return mix64(seed * 1000 + static_cast<std::uint64_t>(op) + 1) % 2 == 0; });
        EXPECT_EQ(mixed.losses, reference.losses) << "seed " << seed;
        EXPECT_TRUE(mixed.state == reference.state) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace troupe::model
