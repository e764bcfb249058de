#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "tests/comm/collective/wrapped_collective.h"
#include "tests/model/shard/training_harness.h"

namespace troupe::model {
namespace {

using namespace std::chrono_literals;

TEST(EngineFailureTest, ANonFiniteStepIsSeenByAllAndLeavesTheStateBitUnchanged) {
  run_thread_ranks(2, [](Collective& group) {
    StartedEngine engine(group);
    const auto step = [&](bool poisoned) {
      auto batch = chain_batch(group.rank());
      if (poisoned && group.rank() == 1) batch["target"].select(0, 0).fill_(std::nan(""));
      EXPECT_TRUE(engine.enqueue(batch, 0.5, true));
      return engine.finish_step(1e-2, [](const auto&) { return StepNumbers(); }).value();
    };
    EXPECT_TRUE(step(false).finite);
    const auto before = snapshot_of(engine);
    EXPECT_FALSE(step(true).finite);
    EXPECT_EQ(snapshot_of(engine), before);
    EXPECT_EQ(engine.updates(), 1);
    EXPECT_TRUE(step(false).finite);
    EXPECT_NE(snapshot_of(engine), before);
  });
}

TEST(EngineFailureTest, DiscardingAStepAndTakingAnotherGivesTheSameBits) {
  const auto straight = train({.world = 2, .steps = 1});
  run_thread_ranks(2, [&](Collective& group) {
    const TrainingRun run;
    StartedEngine engine(group, std::make_shared<ChainNetwork>(), run.options, 11);
    EXPECT_TRUE(engine.accumulate(chain_batch(99 + group.rank()), 0.5, true));
    EXPECT_TRUE(engine.vote({}, {}));
    engine.discard();
    EXPECT_TRUE(engine.accumulate(chain_batch(group.rank()), 0.5, true));
    EXPECT_EQ(engine.vote({}, {}).value().grad_norm, straight.norms[0]);
  });
}

TEST(EngineFailureTest, TheVoteSumsAndMaximisesTheCallersNumbers) {
  run_thread_ranks(2, [](Collective& group) {
    StartedEngine engine(group);
    EXPECT_TRUE(engine.accumulate(chain_batch(0), 0.5, true));
    const auto vote = engine.vote({1.0 + group.rank(), 10.0}, {static_cast<double>(group.rank()), -5.0}).value();
    EXPECT_THAT(vote.sums, ::testing::ElementsAre(3.0, 20.0));
    EXPECT_THAT(vote.maxima, ::testing::ElementsAre(1.0, -5.0));
  });
}

TEST(EngineFailureTest, RanksWithDifferentUpdateCountsRefuseTheStep) {
  run_thread_ranks(2, [](Collective& group) {
    StartedEngine engine(group);
    EXPECT_TRUE(engine.accumulate(chain_batch(0), 0.5, true));
    const auto vote = engine.vote({}, {}).value();
    // the peer keeps its slots too, so that both ranks issue the same gathers
    engine.commit(0.0, vote);
    if (group.rank() == 0) {
      struct Later final : StateSource {
        std::int64_t updates() const override { return 7; }
        Result<void> read(std::size_t, StateKind, std::int64_t, std::int64_t count, float* out) const override {
          std::fill_n(out, count, 0.0f);
          return {};
        }
      };
      ASSERT_TRUE(engine.load(Later()));
    }
    EXPECT_TRUE(engine.accumulate(chain_batch(0), 0.5, true));
    const auto refused = engine.vote({}, {});
    EXPECT_EQ(refused.error().code(), Errc::failed_precondition);
    EXPECT_THAT(refused.error().message(), ::testing::HasSubstr("number of updates"));
  });
}

TEST(EngineFailureTest, RanksWithDifferentNetworksRefuseTheStep) {
  run_thread_ranks(2, [](Collective& group) {
    // the same padded sizes, so that only the vote can notice
    StartedEngine engine(group, std::make_shared<ChainNetwork>(ChainShape{.hidden = group.rank() == 0 ? 37 : 36}));
    EXPECT_TRUE(engine.accumulate(chain_batch(0), 0.5, true));
    EXPECT_THAT(engine.vote({}, {}).error().message(), ::testing::HasSubstr("layout"));
  });
}

TEST(EngineFailureTest, ANetworkThatThrowsFailsItsRankAndFreesThePeer) {
  run_thread_ranks(2, [](Collective& group) {
    StartedEngine engine(group);
    auto batch = chain_batch(0);
    if (group.rank() == 1) batch["target"] = at::zeros({3, 3});
    const auto result = engine.accumulate(batch, 0.5, true);
    EXPECT_EQ(result.error().code(), group.rank() == 1 ? Errc::internal : Errc::aborted) << result.error().to_string();
    EXPECT_EQ(engine.accumulate(chain_batch(0), 0.5, true).error().code(), Errc::failed_precondition);
  });
}

/// One rank: a step on a group that dies at some operation, then two steps on a fresh group from the last committed
/// state.
struct Survivor {
  std::vector<double> losses;
  std::vector<std::byte> snapshot;
  std::vector<FlatLayout> layouts;
  bool failed = false;
};
void survive(std::unique_ptr<Collective> doomed, std::unique_ptr<Collective> fresh, const FullState& committed,
             Survivor& survivor) {
  TrainingRun run{.world = 2, .micro_batches = 2, .first_step = 2, .steps = 1};
  Engine engine(std::make_shared<ChainNetwork>(), run.options);
  engine.attach(*doomed).value();
  ASSERT_TRUE(engine.load(committed));
  std::vector<double> lost, norms;
  const auto first = train_rank(engine, run, lost, norms);
  survivor.failed = !first;
  if (!first) {
    ASSERT_EQ(first.error().code(), Errc::aborted) << first.error().to_string();
  }
  doomed.reset();
  engine.attach(*fresh).value();
  ASSERT_TRUE(engine.load(committed));
  run.steps = 2;
  train_rank(engine, run, survivor.losses, norms).value();
  survivor.snapshot = snapshot_of(engine);
  survivor.layouts = engine.layouts();
}

TEST(EngineFailureTest, AfterAnAbortAnywhereTheRunContinuesAsIfNothingHadHappened) {
  const auto straight = train({.world = 2, .micro_batches = 2, .steps = 4});
  const auto committed = train({.world = 2, .micro_batches = 2, .steps = 2}).state;
  // a step of two micro-batches has 6 + 3 * 3 gathers, 2 * 6 reduces and the vote
  const int operations = 6 + 3 * 3 + 2 * 6 + 1;
  int aborted = 0;
  for (int at_operation = 0; at_operation <= operations; ++at_operation) {
    const auto doomed = make_thread_group(2, 20s), fresh = make_thread_group(2, 20s);
    Survivor survivors[2];
    std::thread peer(
        [&] { survive(join_thread_group(doomed, 0), join_thread_group(fresh, 0), committed, survivors[0]); });
    survive(std::make_unique<AbortingCollective>(join_thread_group(doomed, 1), at_operation),
            join_thread_group(fresh, 1), committed, survivors[1]);
    peer.join();
    aborted += survivors[0].failed && survivors[1].failed;
    ASSERT_EQ(survivors[0].losses, (std::vector<double>{straight.losses[2], straight.losses[3]}))
        << "aborted at " << at_operation;
    ASSERT_TRUE(full_state(ChainNetwork().units(), survivors[0].layouts, 2,
                           {survivors[0].snapshot, survivors[1].snapshot}, 4) == straight.state)
        << at_operation;
  }
  EXPECT_EQ(aborted, operations);  // and the last round, past the end of the step, had nothing to abort
}

TEST(EngineFailureTest, AbortFromAnotherThreadEndsAWaitingRank) {
  const auto group = make_thread_group(2, 20s);
  const auto alone = join_thread_group(group, 0), absent = join_thread_group(group, 1);
  StartedEngine engine(*alone);
  std::thread aborter([&] { engine.abort("the node lost its lease"); });
  const auto result = engine.accumulate(chain_batch(0), 1, true);
  aborter.join();
  EXPECT_EQ(result.error().code(), Errc::aborted);
  EXPECT_THAT(result.error().message(), ::testing::HasSubstr("the node lost its lease"));
}

}  // namespace
}  // namespace troupe::model
