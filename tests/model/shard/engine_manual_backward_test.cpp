// A network's hand-written backward in place of the tape.
#include <gtest/gtest.h>

#include "tests/model/shard/actor_critic_network.h"
#include "tests/model/shard/training_harness.h"

namespace troupe::model {
namespace {

TEST(EngineExplicitTest, AHandWrittenBackwardGivesTheTapesGradients) {
  for (const int world : {1, 2}) {
    TrainingRun run{.world = world, .micro_batches = 2, .steps = 6};
    run.options.param_slots = run.options.grad_slots = 2;
    const auto network = std::make_shared<TwoLayerNetwork>();
    run.network = network;
    const auto by_hand = train(run);
    EXPECT_EQ(network->manual_runs, 12 * world);
    run.options.explicit_backward = false;
    const auto taped = train(run);
    EXPECT_EQ(network->manual_runs, 12 * world) << "switched off";
    for (std::size_t i = 0; i < taped.losses.size(); ++i) {
      EXPECT_NEAR(by_hand.losses[i], taped.losses[i], 1e-5 * taped.losses[i]) << world;
      EXPECT_NEAR(by_hand.norms[i], taped.norms[i], 1e-4 * taped.norms[i]) << world;
    }
  }
}

TEST(EngineExplicitTest, AHandWrittenBackwardIsNotUsedWithTooFewSlots) {
  TrainingRun run{.steps = 1};
  const auto network = std::make_shared<TwoLayerNetwork>();
  run.network = network;
  run.options.param_slots = 2;
  run.options.grad_slots = 1;
  train(run);
  EXPECT_EQ(network->manual_runs, 0);
}

TEST(EngineExplicitTest, AHandWrittenBackwardOnTwoRanksIsBitEqualToOne) {
  TrainingRun run{.world = 1, .micro_batches = 2, .steps = 5};
  run.options.param_slots = run.options.grad_slots = 2;
  run.network = std::make_shared<TwoLayerNetwork>();
  const auto one = train(run);
  run.world = 2;
  run.micro_batches = 1;
  EXPECT_TRUE(train(run).state == one.state);
}

}  // namespace
}  // namespace troupe::model
