// States and activations that lie in files: less memory, the same bits, and a job that is larger than its memory.
#include <chrono>
#include <future>
#include <thread>

#include "tests/app/run_fixture.h"
#include "tests/support/control_group.h"

namespace troupe::app {
namespace {

using Words = std::vector<std::string>;

/// 57 million parameters.
const Words kModel = {"model.dit.dim=512", "model.dit.num_heads=8", "model.dit.num_layers=12",
                      "model.dit.ffn_dim=2048"};
constexpr std::int64_t kParameters = 57'000'000;

class OffloadTest : public RunTest {
 protected:
  static Words job() {
    return Words{"run", small_job(), "training.steps=2", "checkpoint.interval=1", "eval.every=0"} + kModel;
  }
  static Words offloaded() { return {"offload.states=true", "offload.activations=true", "offload.folder=behind"}; }

  /// Anonymous and shared memory of the one process that the job is, in bytes.
  static std::int64_t memory_of(pid_t pid) {
    const std::string status = text_of("/proc/" + std::to_string(pid) + "/status");
    std::int64_t sum = 0;
    for (const char* what : {"RssAnon:", "RssShmem:"}) {
      const auto at = status.find(what);
      if (at != std::string::npos) sum += std::stoll(status.substr(at + std::string(what).size())) * 1024;
    }
    return sum;
  }
  /// The most memory that the job had, looked at every few milliseconds.
  std::int64_t peak_of(const Words& words) {
    Program program(words, options());
    auto ended = std::async(std::launch::async, [&] { return program.wait(); });
    std::int64_t most = 0;
    while (ended.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready)
      most = std::max(most, memory_of(program.pid()));
    expect_end(ended.get(), 0);
    return most;
  }
};

TEST_F(OffloadTest, AJobNeedsThreeFifthsOfTheMemoryForTheSameBits) {
  for (const std::string precision : {"fp32", "bf16"}) {
    const Words words = job() + Words{"precision.param=" + precision};
    const auto kept = peak_of(words + Words{"job.run_root=kept-" + precision});
    const auto behind = peak_of(words + offloaded() + Words{"job.run_root=behind-" + precision});
    RecordProperty("kept_" + precision, std::to_string(kept));
    RecordProperty("offloaded_" + precision, std::to_string(behind));
    EXPECT_GT(kept, 28 * kParameters) << "states, and a snapshot";
    EXPECT_LE(behind, kept * 6 / 10) << precision << ": " << kept;
    EXPECT_TRUE(exported("kept-" + precision) == exported("behind-" + precision));
    EXPECT_TRUE(std::filesystem::is_empty(dir_ / "behind"));
  }
}

TEST_F(OffloadTest, AJobTrainsInLessMemoryThanItsStatesHave) {
  const testing::ControlGroup group("memory");
  if (!group.missing().empty()) GTEST_SKIP() << group.missing();
  constexpr std::int64_t kStates = 18 * kParameters;
  group.write("memory.limit_in_bytes", std::to_string(kStates * 9 / 10));
  const Words words = job() + Words{"precision.param=bf16"};
  Program program(words + offloaded(), options());
  group.add(program.pid());
  expect_end(program.wait(), 0);
  expect_verified(8);
}

}  // namespace
}  // namespace troupe::app
