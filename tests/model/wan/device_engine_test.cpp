// DreamZero's transformer in the engine on devices, on the stand-ins of the CUDA runtime, cuBLASLt and NCCL, or with
// label gpu on hardware: whole training steps against the same steps on cores, and no finding of what the stand-ins
// check.
#include <barrier>
#include <cmath>
#include <limits>

#include "model/wan/batch_keys.h"
#include "tests/model/wan/device_ranks.h"

namespace troupe::model {
namespace {

using ::testing::IsEmpty;

/// The largest difference between two states, as a share of what the values moved or are.
double distance(const FullState& a, const FullState& b) {
  double largest = 0;
  for (std::size_t u = 0; u < a.values.size(); ++u) {
    for (std::size_t kind = 0; kind < a.values[u].size(); ++kind) {
      double most = 0, size = 1e-12;
      for (std::size_t i = 0; i < a.values[u][kind].size(); ++i) {
        const double x = a.values[u][kind][i], y = b.values[u][kind][i];
        most = std::max(most, std::abs(x - y)), size = std::max(size, std::abs(x));
      }
      largest = std::max(largest, most / size);
    }
  }
  return largest;
}

/// The cosine of the angle between the first moments of two states: after one step they point as the gradients do.
double moment_cosine(const FullState& a, const FullState& b) {
  constexpr std::size_t kFirstMoment = 1;
  double dot = 0, of_a = 0, of_b = 0;
  for (std::size_t u = 0; u < a.values.size(); ++u) {
    const auto &x = a.values[u].at(kFirstMoment), &y = b.values[u].at(kFirstMoment);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double p = x[i], q = y[i];
      dot += p * q, of_a += p * p, of_b += q * q;
    }
  }
  return dot / std::sqrt(of_a * of_b);
}

TEST_F(DeviceEngineTest, StepsInF32AreThoseOfTheCores) {
  for (const bool lora : {false, true}) {
    TrainingRun run = make_run(at::kFloat, lora);
    run.options.ema_decay = lora ? 0 : 0.5;
    const auto want = train(run);
    run.device = cuda_device;
    const auto got = train(run);
    for (std::size_t i = 0; i < want.losses.size(); ++i) {
      EXPECT_NEAR(got.losses[i], want.losses[i], 1e-5 * want.losses[i]) << "step " << i;
      EXPECT_NEAR(got.norms[i], want.norms[i], 1e-4 * want.norms[i]) << "step " << i;
    }
    EXPECT_LT(distance(want.state, got.state), 2e-2) << (lora ? "lora" : "all weights");
    EXPECT_THAT(device::standin::report().findings, IsEmpty());
  }
}

TEST_F(DeviceEngineTest, StepsInBf16FollowTheCores) {
  TrainingRun run = make_run(at::kBFloat16);
  const auto want = train(run);
  run.device = cuda_device;
  for (const auto moments : {at::kFloat, at::kBFloat16}) {
    run.options.moment_dtype = moments;
    const auto got = train(run);
    for (std::size_t i = 0; i < want.losses.size(); ++i)
      EXPECT_NEAR(got.losses[i], want.losses[i], 2e-2 * want.losses[i]) << "step " << i;
    EXPECT_THAT(device::standin::report().findings, IsEmpty());
  }
}

TEST_F(DeviceEngineTest, AnotherOrderOfTheDevicesWorkChangesNoBit) {
  TrainingRun run = make_run(at::kBFloat16);
  run.device = cuda_device;
  const auto want = train(run);
  for (const std::uint64_t seed : {1, 2}) {
    device::standin::reset({.seed = seed});
    const auto got = train(run);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_TRUE(got.state == want.state);
    EXPECT_THAT(device::standin::report().findings, IsEmpty());
  }
}

TEST_F(DeviceEngineTest, GraphsChangeNoBit) {
  TrainingRun run = make_run(at::kBFloat16);
  run.steps = 4;
  run.device = cuda_device;
  run.options.graphs = false;
  const auto want = train(run);
  EXPECT_EQ(device::standin::report().graph_launches, 0U);
  for (const std::uint64_t seed : {1, 2}) {
    device::standin::reset({.seed = seed});
    run.options.graphs = true;
    const auto got = train(run);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_TRUE(got.state == want.state);
    const auto found = device::standin::report();
    EXPECT_EQ(found.graph_launches > 0, device::standin::counts());
    EXPECT_THAT(found.findings, IsEmpty());
  }
}

TEST_F(DeviceEngineTest, TheHostWaitsOnceAStepBehindAllOfIt) {
  const TrainingRun run = make_run(at::kBFloat16);
  run_thread_ranks(1, [&](Collective& group) {
    const RankDevice own = cuda_device(0);
    StartedEngine engine(group, run.network, run.options, /*seed=*/1, *own.device, own.device_kernels.get());
    const auto waits = [] { return device::standin::report().synchronising; };
    for (std::int64_t step = 0; step < 5; ++step) {
      const auto before = waits();
      for (std::int64_t micro = 0; micro < 3; ++micro)
        ASSERT_TRUE(engine.enqueue(run.batch(3 * step + micro), 1.0 / 3, micro == 0));
      const auto enqueued = waits();
      auto waited = before;
      const auto numbers = [&](const std::vector<MicroResult>& results) {
        EXPECT_EQ(results.size(), 3U);
        waited = waits();
        return StepNumbers();
      };
      ASSERT_TRUE(engine.finish_step(run.lr, numbers).value().finite);
      // the first steps allocate, and capture graphs
      if (step < 3) continue;
      EXPECT_EQ(before, enqueued);
      EXPECT_EQ(waited, waits()) << "the update was enqueued before the wait";
      EXPECT_NE(waited, enqueued);
    }
    EXPECT_THAT(device::standin::report().findings, IsEmpty());
  });
}

TEST_F(DeviceEngineTest, AStepThatIsNotFiniteLeavesTheStateBitUnchanged) {
  const TrainingRun run = make_run(at::kFloat);
  const auto numbers = [](const std::vector<MicroResult>&) { return StepNumbers(); };
  run_thread_ranks(1, [&](Collective& group) {
    for (const bool lazy : {false, true}) {
      const RankDevice own = cuda_device(0);
      EngineOptions options = run.options;
      options.lazy_optimizer = lazy;
      options.ema_decay = 0.5;
      StartedEngine engine(group, run.network, options, /*seed=*/1, *own.device, own.device_kernels.get());
      const auto step = [&](const Batch& batch) {
        EXPECT_TRUE(engine.enqueue(batch, 0.5, true));
        EXPECT_TRUE(engine.enqueue(run.batch(1), 0.5, false));
        return engine.finish_step(run.lr, numbers).value();
      };
      EXPECT_TRUE(step(run.batch(0)).finite);
      const auto before = snapshot_of(engine, options);
      Batch broken = run.batch(0);
      broken.at(batch_keys::kNoisyActions) =
          at::full_like(broken.at(batch_keys::kNoisyActions), std::numeric_limits<float>::infinity());
      EXPECT_FALSE(step(broken).finite);
      EXPECT_EQ(snapshot_of(engine, options), before) << "lazy " << lazy;
      EXPECT_EQ(engine.updates(), 1);
      EXPECT_TRUE(step(run.batch(2)).finite);
      EXPECT_NE(snapshot_of(engine, options), before);
      EXPECT_EQ(engine.updates(), 2);
    }
    EXPECT_THAT(device::standin::report().findings, IsEmpty());
  });
}

TEST_F(DeviceEngineTest, OffloadedStatesAndRecomputeChangeNoBit) {
  TrainingRun run = make_run(at::kFloat);
  run.device = cuda_device;
  const auto want = train(run);
  run.options.offload.states = true;
  run.options.recompute = {RecomputeLevel::cheap};
  const auto got = train(run);
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_TRUE(got.state == want.state);
  EXPECT_THAT(device::standin::report().findings, IsEmpty());
}

TEST_F(TwoDevicesEngineTest, GradientsInBf16PointWhereThoseOfTheCoresDo) {
  TrainingRun run = make_run(at::kBFloat16);
  run.steps = 1;
  const auto want = train(run);
  run.device = cuda_device;
  run.world = 2;
  run.micro_batches = 1;
  NcclRanks ranks(2);
  run.join = ranks.join();
  const auto got = train(run);
  const double cosine = moment_cosine(want.state, got.state);
  RecordProperty("cosine", std::to_string(cosine));
  EXPECT_GE(cosine, 0.999);
  EXPECT_THAT(device::standin::report().findings, IsEmpty());
}

TEST_F(TwoDevicesEngineTest, RanksThatExchangeOverNcclGiveTheBitsOfOneThatAccumulates) {
  TrainingRun run = make_run(at::kFloat);
  run.device = cuda_device;
  const auto want = train(run);
  run.world = 2;
  run.micro_batches = 1;
  // one copy of the parameters in shards, whose sums NCCL makes too (of two ranks there is one order), and two replicas
  for (const auto& [sharing_ranks, reduce_scatters] : {std::pair(0, false), std::pair(0, true), std::pair(1, false)}) {
    device::standin::reset({.seed = 5, .devices = 2});
    NcclRanks ranks(2);
    run.join = ranks.join();
    run.options.sharing_ranks = sharing_ranks;
    run.options.reduce_scatters = reduce_scatters;
    const auto got = train(run);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_EQ(got.norms, want.norms);
    EXPECT_TRUE(got.state == want.state) << "sharing ranks " << sharing_ranks << ", reduce-scatter " << reduce_scatters;
    const auto found = device::standin::report();
    EXPECT_THAT(found.findings, IsEmpty());
    EXPECT_EQ(found.collectives > 0, device::standin::counts());
  }
}

TEST_F(TwoDevicesEngineTest, AGroupThatIsAbortedBehindAVoteFailsTheNextStepAndNotTheCommit) {
  const TrainingRun run = make_run(at::kFloat);
  NcclRanks ranks(2);
  const auto work = [&](Collective& group) {
    const RankDevice own = cuda_device(group.rank());
    StartedEngine engine(group, run.network, run.options, /*seed=*/1, *own.device, own.device_kernels.get());
    ASSERT_TRUE(engine.accumulate(run.batch(group.rank()), 0.5, true));
    const auto vote = engine.vote({}, {}).value();
    engine.abort("a peer has died");
    engine.commit(run.lr, vote);
    EXPECT_FALSE(snapshot_of(engine, run.options).empty());
    const auto next = engine.accumulate(run.batch(group.rank()), 0.5, true);
    ASSERT_FALSE(next);
    EXPECT_EQ(next.error().code(), Errc::aborted) << next.error().message();
  };
  run_thread_ranks(2, work, ranks.join());
}

TEST_F(TwoDevicesEngineTest, AGroupThatIsAbortedWithinAStepFailsItAndWantsTheStateAnew) {
  const TrainingRun run = make_run(at::kFloat);
  NcclRanks ranks(2);
  std::barrier both_have_enqueued(2);
  const auto work = [&](Collective& group) {
    const RankDevice own = cuda_device(group.rank());
    StartedEngine engine(group, run.network, run.options, /*seed=*/1, *own.device, own.device_kernels.get());
    EXPECT_TRUE(engine.enqueue(run.batch(group.rank()), 0.5, true));
    both_have_enqueued.arrive_and_wait();
    engine.abort("a peer has died");
    const auto step = engine.finish_step(run.lr, [](const auto&) { return StepNumbers(); });
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().code(), Errc::aborted) << step.error().message();
    EXPECT_FALSE(engine.has_state());
  };
  run_thread_ranks(2, work, ranks.join());
}

}  // namespace
}  // namespace troupe::model
