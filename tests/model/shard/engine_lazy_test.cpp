// An update that waits until its unit is used, and states that lie in a file in between.
#include <gtest/gtest.h>

#include "tests/model/shard/training_harness.h"
#include "tests/support/scratch_folder.h"

namespace troupe::model {
namespace {

using testing::ScratchFolder;

struct Way {
  bool is_lazy;
  bool is_offloaded;
};

/// What losses, norms and states are to be in every way, and whether they are.
void expect_same_bits(TrainingRun run, const std::string& folder) {
  run.options.lazy_optimizer = false;
  const auto eager = train(run);
  for (const Way way : {Way{true, false}, Way{false, true}, Way{true, true}}) {
    run.options.lazy_optimizer = way.is_lazy;
    run.options.offload = {.states = way.is_offloaded, .stash_slots = 0, .folder = folder};
    const auto result = train(run);
    EXPECT_EQ(result.losses, eager.losses) << way.is_lazy << way.is_offloaded;
    EXPECT_EQ(result.norms, eager.norms) << way.is_lazy << way.is_offloaded;
    EXPECT_TRUE(result.state == eager.state) << way.is_lazy << way.is_offloaded;
  }
}

TEST(EngineLazyTest, ALazyOptimizerAndOffloadedStatesChangeNoBit) {
  const ScratchFolder folder("/var/tmp");
  for (const int world : {1, 2, 3}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      for (const bool adds_up_whole : {false, true}) {
        TrainingRun run{.world = world, .micro_batches = 2, .steps = 4};
        run.options.param_dtype = dtype;
        run.options.whole_gradients = adds_up_whole;
        run.options.param_slots = 2;
        // offloaded states of other widths and kinds
        if (world == 2) run.options.moment_dtype = at::kBFloat16;
        if (world >= 2) run.options.ema_decay = 0.9;
        SCOPED_TRACE(::testing::Message() << "ranks " << world << (adds_up_whole ? ", zero1" : ""));
        expect_same_bits(run, folder.path());
      }
    }
  }
}

TEST(EngineLazyTest, WhatReadsTheStateFindsItUpdated) {
  const auto network = std::make_shared<ChainNetwork>();
  const auto after = [&](bool is_lazy, const std::function<void(Engine&)>& read) {
    EngineOptions options;
    options.lazy_optimizer = is_lazy;
    return state_after(2, network, options, 5, [&](Engine& engine) {
      for (std::int64_t step = 0; step < 3; ++step) {
        engine.accumulate(chain_batch(step * 2 + engine.rank()), 0.5, true).value();
        engine.commit(1e-2, engine.vote({}, {}).value());
        read(engine);
      }
    });
  };
  const std::vector<std::function<void(Engine&)>> readers = {
      [](Engine&) {},
      [](Engine& engine) { engine.gather_views({engine.units().front().name}).value(); },
      [](Engine& engine) {
        std::vector<std::vector<float>> shards;
        engine.publish({engine.units().front().name}, StateKind::master, shards);
      },
      [](Engine& engine) { engine.forward(chain_batch(7)).value(); },
      [](Engine& engine) { engine.discard(); },
  };
  const FullState eager = after(false, readers.front());
  for (const auto& read : readers) EXPECT_TRUE(after(true, read) == eager);

  EngineOptions options;
  options.lazy_optimizer = true;
  run_thread_ranks(1, [&](Collective& group) {
    StartedEngine engine(group, network, options);
    const auto name = engine.units().front().name;
    const auto first = [&] {
      std::vector<std::vector<float>> shards;
      engine.publish({name}, StateKind::master, shards);
      return shards.front().front();
    };
    const float before = first();
    engine.accumulate(chain_batch(0), 1, true).value();
    engine.commit(1e-2, engine.vote({}, {}).value());
    EXPECT_NE(first(), before);
  });
}

TEST(EngineLazyTest, AFailureBehindACommitAsksForTheState) {
  EngineOptions options;
  options.lazy_optimizer = true;
  run_thread_ranks(1, [&](Collective& group) {
    StartedEngine engine(group, std::make_shared<ChainNetwork>(), options);
    engine.accumulate(chain_batch(0), 1, true).value();
    engine.commit(1e-2, engine.vote({}, {}).value());
    const auto failed = engine.accumulate({}, 1, true);
    ASSERT_FALSE(failed);
    EXPECT_FALSE(engine.has_state()) << "some units are updated, others are not";
  });
}

TEST(EngineLazyTest, OffloadedStatesAreNoMemory) {
  const ScratchFolder folder("/var/tmp");
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto bytes = [&](bool offloads) {
      std::map<std::string, std::int64_t> found;
      run_thread_ranks(1, [&](Collective& group) {
        EngineOptions options;
        options.param_dtype = dtype;
        options.offload = {.states = offloads, .stash_slots = 0, .folder = folder.path()};
        found = StartedEngine(group, std::make_shared<ChainNetwork>(), options).bytes();
      });
      return found;
    };
    const auto kept = bytes(false), offloaded = bytes(true);
    EXPECT_EQ(kept.at("offloaded"), 0);
    // m and v, and the master where bf16 is what is gathered
    const std::int64_t all = kept.at("shards"), moved = dtype == at::kFloat ? all / 16 * 8 : all / 18 * 12;
    EXPECT_EQ(offloaded.at("offloaded"), moved);
    EXPECT_LT(offloaded.at("shards"), all);
  }
}

TEST(EngineLazyTest, AFolderWithoutRoomIsAnErrorOfAttach) {
  EngineOptions options;
  options.offload = {.states = true, .stash_slots = 0, .folder = "/dev/shm"};
  run_thread_ranks(1, [&](Collective& group) {
    Engine engine(std::make_shared<ChainNetwork>(), options);
    const auto attached = engine.attach(group);
    ASSERT_FALSE(attached);
    EXPECT_EQ(attached.error().code(), Errc::failed_precondition);
  });
}

}  // namespace
}  // namespace troupe::model
