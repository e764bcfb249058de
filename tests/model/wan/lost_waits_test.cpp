// Of a step's waits between streams, each is taken away in turn.
#include <fmt/format.h>
#include <gtest/gtest-spi.h>

#include "tests/model/wan/device_ranks.h"

namespace troupe::model {
namespace {

using ::testing::IsEmpty;

/// Two steps of two ranks in shards, without the wait of this number.
struct LostWait {
  std::vector<std::string> found;
  TrainingResult result;
  std::uint64_t waits = 0;
};

class LostWaitsTest : public TwoDevicesEngineTest {
 protected:
  static LostWait run_without(std::optional<std::uint64_t> wait, std::uint64_t seed) {
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
    LostWait lost;
    ::testing::TestPartResultArray failures;
    {
      const ::testing::ScopedFakeTestPartResultReporter intercept(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &failures);
      lost.result = train(run);
    }
    const auto report = device::standin::report();
    lost.found = report.findings;
    for (int i = 0; i < failures.size(); ++i) lost.found.emplace_back(failures.GetTestPartResult(i).message());
    lost.waits = report.waits;
    return lost;
  }
};

TEST_F(LostWaitsTest, EachIsFoundOrChangesNoBitInAnyOrder) {
  const auto want = run_without(std::nullopt, 1);
  ASSERT_THAT(want.found, IsEmpty());
  ASSERT_GT(want.waits, 0U);
  std::uint64_t found = 0;
  for (std::uint64_t wait = 0; wait < want.waits; ++wait) {
    bool is_found = false;
    for (std::uint64_t seed = 1; seed <= 4 && !is_found; ++seed) {
      const auto got = run_without(wait, seed);
      is_found = !got.found.empty();
      if (!is_found) {
        EXPECT_TRUE(got.result.state == want.result.state) << "wait " << wait << ", seed " << seed;
      }
    }
    found += is_found;
    fmt::print("wait {} of {}: {}\n", wait, want.waits, is_found ? "found" : "orders nothing that others do not");
  }
  fmt::print("{} waits: {} are found when they are lost, {} change no bit\n", want.waits, found, want.waits - found);
}

}  // namespace
}  // namespace troupe::model
