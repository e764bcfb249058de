#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "tests/lab/lab_job.h"

namespace troupe::testing {

/// A job over three machines, made by each test.
class LabTest : public ::testing::Test {
 protected:
  using Kind = LabJob::Kind;

  /// False where there are no links and `needs_links`; the test then says so and ends.
  bool make_lab(Kind kind, int steps, bool needs_links = true) {
    job_ = std::make_unique<LabJob>(LabJob::Options{.kind = kind, .steps = steps});
    if (job_->lab.has_links() || !needs_links) return true;
    [&] { GTEST_SKIP() << "no links to touch: " << job_->lab.missing(); }();
    return false;
  }
  void TearDown() override {
    if (HasFailure() && job_) job_->keep();
  }
  /// The job completes whole, with the weights of an undisturbed one, and leaves nothing behind.
  void expect_complete() { EXPECT_THAT(job().complaints_at_completion(), ::testing::IsEmpty()); }
  /// The same, but for the weights: trajectories were begun again elsewhere, in other episodes
  /// (docs/rl.md#failures-and-pools).
  void expect_complete_with_other_episodes() { EXPECT_THAT(job().complaints_at_end(0), ::testing::IsEmpty()); }
  LabJob& job() { return *job_; }
  Lab& lab() { return job_->lab; }

  /// The time that a fault lasts is what the test is about, so this waits by the clock.
  static void last(std::chrono::milliseconds duration) { std::this_thread::sleep_for(duration); }
  void cut_for(std::size_t machine, std::chrono::milliseconds duration) {
    const auto before = lab().counts().cut;
    lab().set_machine(machine, {.cut = true});
    last(duration);
    lab().set_machine(machine, job().options.links);
    EXPECT_FALSE(job().job->wait(0ms)) << "the job was to outlast the cut\n" << job().said();
    EXPECT_GT(lab().counts().cut, before) << "nobody sent anything";
  }

 private:
  std::unique_ptr<LabJob> job_;
};

}  // namespace troupe::testing
