// What a second terminal can do while a job runs.

#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

class LiveTest : public RunTest {
 protected:
  /// Asks for the status until `holds` is true of it; false when the job ended before.
  template <class Predicate>
  bool wait_for_status(Program& job, Predicate holds) {
    while (true) {
      const auto end = troupe({"status", "--json", "--run-root", "runs"});
      if (end.exit_code == 0 && holds(status_ = nlohmann::json::parse(end.out))) return true;
      if (end.exit_code == 1 && job.wait_for_text("RUN ")) return false;
    }
  }
  static bool has_decoders(const nlohmann::json& status, std::int64_t count) {
    const auto& pool = status.at("pools").at("decoder");
    return pool.at("target") == count && pool.at("up") == count;
  }

  void expect_pool_scales(const std::vector<std::string>& mode) {
    Program job(std::vector<std::string>{"run", small_job(), "training.steps=100000", "metrics.every=1"} + mode,
                options());
    ASSERT_TRUE(job.wait_for_text("step ")) << job.so_far().text();
    ASSERT_TRUE(wait_for_status(job, [](const auto& s) { return s.at("state") == "RUNNING" && has_decoders(s, 2); }));
    expect_end(troupe({"scale", "decoder=4", "--run-root", "runs"}), 0);
    EXPECT_TRUE(wait_for_status(job, [](const auto& s) { return has_decoders(s, 4); })) << status_.dump(2);
    expect_end(troupe({"scale", "decoder=1", "--run-root", "runs"}), 0);
    EXPECT_TRUE(wait_for_status(job, [](const auto& s) { return has_decoders(s, 1) && s.at("actors").size() == 4; }))
        << status_.dump(2);
    const std::int64_t step = status_.at("step");
    EXPECT_TRUE(wait_for_status(job, [&](const auto& s) { return s.at("step") > step + 8; }))
        << "training stands still";
    expect_end(troupe({"scale", "decoder=5", "--run-root", "runs"}), 3);
    expect_end(troupe({"status", "--stop", "--run-root", "runs"}), 0);
    expect_end(job.wait(), 130, {"restarts 0"});
    expect_end(troupe({"verify"}), 0, {"lost 0  doubled 0"});
    EXPECT_EQ(troupe({"status", "--run-root", "runs"}).exit_code, 1);
  }

  nlohmann::json status_;
};

TEST_F(LiveTest, AStepsMetricsAreInTheFileWhenItsProgressLineIsPrinted) {
  Program job({"run", small_job(), "training.steps=100000", "metrics.every=1"}, options());
  ASSERT_TRUE(job.wait_for_text(" 3/100000")) << job.so_far().text();
  EXPECT_GE(curve("train/loss").size(), 3u);
  expect_end(troupe({"status", "--stop", "--run-root", "runs"}), 0);
  expect_end(job.wait(), 130);
}

TEST_F(LiveTest, ThePoolOfDecodersGrowsAndShrinksOnThreads) { expect_pool_scales({}); }

TEST_F(LiveTest, ThePoolOfDecodersGrowsAndShrinksInProcesses) { expect_pool_scales(in_processes()); }

TEST_F(LiveTest, StatusOfNoRunAtAllExitsWithOne) {
  expect_end(troupe({"status", "--run-root", "absent"}), 1, {}, {"absent"});
}

}  // namespace
}  // namespace troupe::app
