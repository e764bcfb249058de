// Faults that are planted in whole steps: of the waits between streams each is taken away in turn, and of the kernels
// that a graph launches each has two of its addresses exchanged.
#include <fmt/format.h>
#include <gtest/gtest-spi.h>

#include "tests/model/wan/device_ranks.h"

namespace troupe::model {
namespace {

using ::testing::IsEmpty;

/// A run with a fault, and what was found of it: by the stand-ins, and by what the run itself checks.
struct FaultyRun {
  std::vector<std::string> found;
  TrainingResult result;
  device::standin::Report report;
};

FaultyRun train_with_fault(const TrainingRun& run) {
  FaultyRun faulty;
  ::testing::TestPartResultArray failures;
  {
    const ::testing::ScopedFakeTestPartResultReporter intercept(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &failures);
    faulty.result = train(run);
  }
  faulty.report = device::standin::report();
  faulty.found = faulty.report.findings;
  for (int i = 0; i < failures.size(); ++i) faulty.found.emplace_back(failures.GetTestPartResult(i).message());
  return faulty;
}

class LostWaitsTest : public TwoDevicesEngineTest {
 protected:
  /// Two steps of two ranks in shards, without the wait of this number.
  static FaultyRun run_without(std::optional<std::uint64_t> wait, std::uint64_t seed) {
    device::standin::reset({.seed = seed, .devices = 2, .lost_wait = wait});
    NcclRanks ranks(2);
    TrainingRun run = make_run(at::kFloat);
    run.world = 2;
    run.micro_batches = 1;
    run.device = cuda_device;
    run.join = ranks.join();
    run.batch = [](std::int64_t number) {
      return testing::tiny_batch(kShape, 1, at::kFloat, static_cast<std::uint64_t>(number));
    };
    return train_with_fault(run);
  }
};

TEST_F(LostWaitsTest, EachIsFoundOrChangesNoBitInAnyOrder) {
  const auto want = run_without(std::nullopt, 1);
  ASSERT_THAT(want.found, IsEmpty());
  ASSERT_GT(want.report.waits, 0U);
  std::uint64_t found = 0;
  for (std::uint64_t wait = 0; wait < want.report.waits; ++wait) {
    bool is_found = false;
    for (std::uint64_t seed = 1; seed <= 4 && !is_found; ++seed) {
      const auto got = run_without(wait, seed);
      is_found = !got.found.empty();
      if (!is_found) {
        EXPECT_TRUE(got.result.state == want.result.state) << "wait " << wait << ", seed " << seed;
      }
    }
    found += is_found;
    fmt::print("wait {} of {}: {}\n", wait, want.report.waits,
               is_found ? "found" : "orders nothing that others do not");
  }
  fmt::print("{} waits: {} are found when they are lost, {} change no bit\n", want.report.waits, found,
             want.report.waits - found);
}

using SwappedAddressesTest = DeviceEngineTest;

TEST_F(SwappedAddressesTest, EachIsFoundOrChangesNoBit) {
  const auto run_with = [](std::optional<std::uint64_t> launch) {
    // what is read as the length of a loop may be anything
    device::standin::reset({.seed = 1, .swapped_launch = launch, .most_steps = std::uint64_t{1} << 21});
    TrainingRun run = make_run(at::kFloat);
    // the second micro-batch is captured, the third launched
    run.micro_batches = 1, run.steps = 3;
    run.batch = [](std::int64_t number) {
      return testing::tiny_batch(kShape, 1, at::kFloat, static_cast<std::uint64_t>(number));
    };
    run.options.recompute = {RecomputeLevel::none};
    run.device = cuda_device;
    return train_with_fault(run);
  };
  const auto want = run_with(std::nullopt);
  ASSERT_THAT(want.found, IsEmpty());
  const auto launches = want.report.captured;
  ASSERT_GT(launches, 0U);
  std::uint64_t found = 0, changed = 0;
  for (std::uint64_t launch = 0; launch < launches; ++launch) {
    const auto got = run_with(launch);
    ASSERT_NE(got.report.mutant, "") << "launch " << launch;
    const bool is_found = !got.found.empty(),
               is_changed = !(got.result.state == want.result.state && got.result.losses == want.result.losses);
    found += is_found, changed += !is_found && is_changed;
    fmt::print("launch {} of {}, {}: {}\n", launch, launches, got.report.mutant,
               is_found     ? "found"
               : is_changed ? "another result"
                            : "the same result");
  }
  fmt::print("{} launches: {} are found when addresses are exchanged, {} more change the result, {} change no bit\n",
             launches, found, changed, launches - found - changed);
}

}  // namespace
}  // namespace troupe::model
