#pragma once

#include "base/ids.h"
#include "tests/app/run_fixture.h"
#include "tests/support/job_process.h"

namespace troupe::app {

using namespace std::chrono_literals;
using testing::JobProcess;

/// Jobs of reinforcement learning, each in a working directory of its own: CartPole with PPO in a few short iterations.
class RlRunTest : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;
  static constexpr std::chrono::milliseconds kRunDeadline{150'000}, kToolDeadline{60'000};

  /// quickstart:rl cut down, every actor a process of its own, in a run root of its own.
  Words small(const std::string& root, const Words& overrides = {}) const {
    Words words = {"run",
                   "rl_cartpole_ppo",
                   "job.run_root=" + (dir_ / root),
                   "training.steps=6",
                   "checkpoint.interval=2",
                   "rollout.steps=32",
                   "training.global_batch_size=64",
                   "training.micro_batch_size=64",
                   "eval.episodes=4",
                   "metrics.every=1"};
    words.insert(words.end(), overrides.begin(), overrides.end());
    return words;
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
  /// Bytes of the newest checkpoint's rank files: weights, moments, targets.
  std::string state_of(const std::string& root) const {
    std::map<std::string, std::string> files;
    const std::string folder = dir_ / (root + "/latest/checkpoints/latest");
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() == ".safetensors")
        files[file.path().filename().string()] = testing::text_of(file.path().string());
    }
    EXPECT_FALSE(files.empty()) << folder;
    std::string bytes;
    for (const auto& [name, content] : files) bytes += name + content;
    return bytes;
  }
  /// A metric by step.
  std::map<std::int64_t, double> curve(const std::string& root, const std::string& metric) const {
    std::map<std::int64_t, double> values;
    std::ifstream in(dir_ / (root + "/latest/metrics.jsonl"));
    for (std::string line; std::getline(in, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.at("m").contains(metric)) values[json.at("step")] = json.at("m").at(metric);
    }
    return values;
  }
  static std::string iteration(int step) { return "iteration +" + std::to_string(step) + "/"; }

  TempDir dir_;
};

}  // namespace troupe::app
