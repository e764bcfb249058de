// Device memory is touched by the work of streams alone.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstdlib>

#include "tests/model/shard/guarded_device.h"
#include "tests/model/shard/training_harness.h"
#include "tests/support/scratch_folder.h"

namespace troupe::model {
namespace {

TEST(EngineDeviceTest, StepsTouchTheirMemoryFromStreamsAlone) {
  const testing::ScratchFolder folder("/var/tmp");
  for (const int world : {1, 2}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      for (const bool is_lazy : {false, true}) {
        TrainingRun run{.world = world, .micro_batches = 2, .steps = 3};
        run.options.param_dtype = dtype;
        run.options.ema_decay = 0.9;
        run.options.lazy_optimizer = is_lazy;
        run.options.offload = {.states = is_lazy, .stash_slots = 0, .folder = folder.path()};
        const auto want = train(run);
        run.device = [](int) { return std::make_unique<GuardedDevice>(); };
        const auto got = train(run);
        EXPECT_EQ(got.losses, want.losses);
        EXPECT_TRUE(got.state == want.state);
        run.resume = &want.state;
        train(run);
      }
    }
  }
}

TEST(EngineDeviceTest, WhatIsHandedOutLiesOnTheHost) {
  run_thread_ranks(1, [&](Collective& group) {
    GuardedDevice device;
    StartedEngine engine(group, std::make_shared<ChainNetwork>(), {}, 1, device);
    const auto name = engine.units().front().name;
    std::vector<std::vector<float>> shards;
    engine.publish({name}, StateKind::master, shards);
    const auto views = engine.gather_views({name}).value();
    const auto entry = engine.layouts().front().entries.front();
    const auto& first = views.at(name)[entry.name];
    EXPECT_EQ(first.flatten()[0].item<float>(), shards[0][static_cast<std::size_t>(entry.offset)]);
    EXPECT_TRUE(std::isfinite(engine.forward(chain_batch(0)).value().loss.item<double>()));
  });
}

TEST(GuardedDeviceDeathTest, ALookFromElsewhereEndsTheProcess) {
  GuardedDevice device;
  const auto memory = device.allocate(100);
  EXPECT_EXIT(std::exit(static_cast<int>(memory->address()[3])), ::testing::KilledBySignal(SIGSEGV), "");
  const auto stream = device.make_stream(device::StreamUse::compute);
  int seen = -1;
  stream->enqueue([&] { return seen = static_cast<int>(memory->address()[3]), Result<void>(); });
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(seen, 0);
}

}  // namespace
}  // namespace troupe::model
