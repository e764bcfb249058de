#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/toy/toy_dataset.h"
#include "tests/support/program.h"

namespace troupe::app {

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
    return {.cwd = dir_.path(), .env = std::move(env)};
  }
  ProgramEnd troupe(const std::vector<std::string>& words, std::map<std::string, std::string> env = {}) const {
    return run_program(words, options(std::move(env)));
  }
  /// `troupe run small.yaml WORDS`
  ProgramEnd run_small(std::vector<std::string> words, std::map<std::string, std::string> env = {}) const {
    words.insert(words.begin(), {"run", small_job()});
    return troupe(words, std::move(env));
  }

  /// Bytes of the exported weights of a run root's latest run.
  std::string exported(const std::string& run_root = "runs") {
    const std::string folder = "export-" + std::to_string(exports_++);
    const ProgramEnd end = troupe({"export", run_root + "/latest", "--out", folder});
    EXPECT_EQ(end.exit_code, 0) << end.text();
    std::map<std::string, std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(dir_ / folder)) {
      if (file.path().extension() == ".safetensors")
        files[file.path().filename().string()] = read(file.path().string());
    }
    EXPECT_FALSE(files.empty()) << end.text();
    std::string bytes;
    for (const auto& [name, content] : files) bytes += name + content;
    return bytes;
  }

  /// `troupe verify` finds every sample of `trained` trained exactly once, and `voided` void.
  void expect_verified(std::int64_t trained, std::int64_t voided = 0, const std::string& run_root = "runs") const {
    const ProgramEnd end = troupe({"verify", "--run-root", run_root});
    EXPECT_EQ(end.exit_code, 0) << end.text();
    EXPECT_THAT(end.out, ::testing::HasSubstr("trained " + std::to_string(trained) + "  void " +
                                              std::to_string(voided) + "  lost 0  doubled 0"))
        << end.text();
  }

  /// A metric by step; of a step that was trained again the later line counts.
  std::map<std::int64_t, double> curve(const std::string& metric, const std::string& run_root = "runs") const {
    std::map<std::int64_t, double> values;
    std::ifstream in(dir_ / (run_root + "/latest/metrics.jsonl"));
    for (std::string line; std::getline(in, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.at("m").contains(metric)) values[json.at("step")] = json.at("m").at(metric);
    }
    return values;
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

  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(dir_ / name).parent_path());
    std::ofstream(dir_ / name, std::ios::binary) << text;
  }

  TempDir dir_;
  int exports_ = 0;
};

/// The words `a` and then `b`.
inline std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace troupe::app
