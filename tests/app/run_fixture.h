#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/toy/toy_dataset.h"
#include "tests/support/folder_files.h"
#include "tests/support/program.h"

namespace troupe::app {

/// The words `a` and then `b`.
inline std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Overrides that leave the images of a dataset as they are: no random crop, no jitter.
inline std::vector<std::string> fixed_images() {
  return {"data.image.crop=1", "data.image.brightness=0", "data.image.contrast=0", "data.image.saturation=0",
          "data.image.hue=0"};
}

/// A metric of a run by step; of a step that was trained again the later line counts.
inline std::map<std::int64_t, double> curve_of(const std::string& run, const std::string& metric) {
  std::map<std::int64_t, double> values;
  std::ifstream in(run + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("m").contains(metric)) values[json.at("step")] = json.at("m").at(metric);
  }
  return values;
}

/// Expects two curves to have the same steps and values that differ by rounding only.
inline void expect_close(const std::map<std::int64_t, double>& a, const std::map<std::int64_t, double>& b) {
  ASSERT_FALSE(a.empty());
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [step, value] : a) EXPECT_NEAR(b.at(step), value, 1e-5 * std::abs(value)) << "step " << step;
}

/// A test that runs whole jobs in a working directory of its own, with a toy dataset in `data` and run directories in
/// `runs`.
class RunTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kEpisodes = 5;

  void SetUp() override {
    std::filesystem::create_directories(dir_ / "runtime");
    std::filesystem::permissions(dir_ / "runtime", std::filesystem::perms::owner_all);
    const auto made = write_toy_dataset(dir_ / "data", {.episodes = kEpisodes, .frames = 32});
    ASSERT_TRUE(made) << made.error().message();
  }

  static std::string small_job() { return std::string(TROUPE_SOURCE_DIR) + "/tests/app/jobs/small.yaml"; }
  /// Overrides that give each actor a process of its own.
  static std::vector<std::string> in_processes() {
    return {"cluster.isolation.learner=process", "cluster.isolation.decoder=process",
            "cluster.isolation.checkpointer=process"};
  }

  ProgramOptions options(std::map<std::string, std::string> env = {}) const {
    env["XDG_RUNTIME_DIR"] = dir_ / "runtime";
    return {.cwd = dir_.path(), .env = std::move(env), .deadline = deadline_};
  }
  ProgramEnd troupe(const std::vector<std::string>& words, std::map<std::string, std::string> env = {}) const {
    return run_program(words, options(std::move(env)));
  }
  /// `troupe run small.yaml WORDS`
  ProgramEnd run_small(std::vector<std::string> words, std::map<std::string, std::string> env = {}) const {
    words.insert(words.begin(), {"run", small_job()});
    return troupe(words, std::move(env));
  }

  /// Names and bytes of the exported weights of a run root's latest run.
  std::map<std::string, std::string> exported(const std::string& run_root = "runs",
                                              const std::string& weights = "model") {
    const std::string folder = "export-" + std::to_string(exports_++);
    expect_end(troupe({"export", run_root + "/latest", "--weights", weights, "--out", folder}), 0);
    auto files = files_of(dir_ / folder, ".safetensors");
    EXPECT_FALSE(files.empty());
    return files;
  }

  /// `troupe verify` finds every sample of `trained` trained exactly once, and `voided` void.
  void expect_verified(std::int64_t trained, std::int64_t voided = 0, const std::string& run_root = "runs") const {
    expect_end(troupe({"verify", "--run-root", run_root}), 0,
               {"trained " + std::to_string(trained) + "  void " + std::to_string(voided) + "  lost 0  doubled 0"});
  }

  std::map<std::int64_t, double> curve(const std::string& metric, const std::string& run_root = "runs") const {
    return curve_of(dir_ / (run_root + "/latest"), metric);
  }

  /// Number of run directories.
  std::size_t num_runs(const std::string& name = "small") const {
    std::error_code none;
    std::size_t count = 0;
    for (auto it = std::filesystem::directory_iterator(dir_ / ("runs/" + name), none);
         it != std::filesystem::directory_iterator(); ++it)
      ++count;
    return count;
  }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(dir_ / name).parent_path());
    std::ofstream(dir_ / name, std::ios::binary) << text;
  }

  ScratchFolder dir_;
  int exports_ = 0;
  /// of each program, from its start
  std::chrono::seconds deadline_ = ProgramOptions().deadline;
};

}  // namespace troupe::app
