#pragma once

#include "tests/app/run_fixture.h"
#include "tests/support/job_process.h"

namespace troupe::app {

using namespace std::chrono_literals;

/// Jobs of reinforcement learning, each in a working directory of its own: CartPole with PPO in a few short iterations.
class RlRunTest : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;
  static constexpr std::chrono::milliseconds kRunDeadline{150'000}, kToolDeadline{60'000};

  /// quickstart:rl cut down, every actor a process of its own, in a run root of its own.
  Words small(const std::string& root, const Words& overrides = {}) const {
    return Words{"run",
                 "rl_cartpole_ppo",
                 "job.run_root=" + (dir_ / root),
                 "training.steps=6",
                 "checkpoint.interval=2",
                 "rollout.steps=32",
                 "training.global_batch_size=64",
                 "training.micro_batch_size=64",
                 "eval.episodes=4",
                 "metrics.every=1"} +
           overrides;
  }
  /// Pendulum with a buffer that overflows: 128 transitions a step in items of 16, 18 of which fit.
  Words small_sac() const {
    return {"run",
            "rl_pendulum_sac",
            "job.run_root=" + (dir_ / "runs"),
            "rollout.commit_every=128",
            "algorithm.sac.learning_starts=128",
            "training.global_batch_size=32",
            "training.micro_batch_size=32",
            "algorithm.sac.replay_capacity=300",
            "checkpoint.interval=2"};
  }
  ProgramEnd troupe(const Words& words) const {
    return run_program(words, {.cwd = dir_.path(), .env = {}, .deadline = 150s});
  }
  ProgramEnd run(const std::string& root, const Words& overrides = {}) const { return troupe(small(root, overrides)); }
  std::unique_ptr<JobProcess> start(const std::string& root, const Words& overrides = {},
                                    const std::map<std::string, std::string>& environment = {}) {
    return std::make_unique<JobProcess>(small(root, overrides), dir_ / (root + ".log"), environment);
  }

  std::string verified(const std::string& root) const {
    const ProgramEnd end = troupe({"verify", "--run-root", dir_ / root});
    EXPECT_EQ(end.exit_code, 0) << end.text();
    return end.out;
  }
  /// Names and bytes of the newest checkpoint's rank files: weights, moments, targets.
  std::map<std::string, std::string> state_of(const std::string& root) const {
    auto files = files_of(dir_ / (root + "/latest/checkpoints/latest"), ".safetensors");
    EXPECT_FALSE(files.empty());
    return files;
  }
  std::map<std::int64_t, double> curve(const std::string& root, const std::string& metric) const {
    return curve_of(dir_ / (root + "/latest"), metric);
  }
  static std::string iteration(int step) { return "iteration +" + std::to_string(step) + "/"; }

  ScratchFolder dir_;
};

}  // namespace troupe::app
