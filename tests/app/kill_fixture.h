#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/app/run_fixture.h"
#include "tests/support/job_process.h"
#include "tests/support/scratch_folder.h"

namespace troupe::app {

using namespace std::chrono_literals;

/// A folder with a generated dataset, and the quickstart job cut to 40 steps with a checkpoint every 5, each actor in
/// its own process.
class KillTest : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;
  static constexpr std::chrono::milliseconds kRunDeadline{150'000}, kToolDeadline{60'000};

  void SetUp() override {
    const auto made = write_toy_dataset(folder_ + "/data", {.episodes = 40, .frames = 32, .fps = 5});
    ASSERT_TRUE(made) << made.error().message();
  }
  void TearDown() override {
    if (HasFailure()) scratch_.keep();
  }

  /// Starts `troupe run` under the run root `name`.
  std::unique_ptr<JobProcess> run(const std::string& name, const Words& overrides = {}, const Words& flags = {},
                                  const std::map<std::string, std::string>& environment = {}) {
    const Words words = Words{"run", "quickstart:sft"} + flags +
                        Words{"training.steps=40",
                              "checkpoint.interval=5",
                              "training.global_batch_size=8",
                              "training.micro_batch_size=4",
                              "eval.every=0",
                              "eval.open_loop.at_end=false",
                              "metrics.every=1",
                              "job.run_root=" + folder_ + "/" + name,
                              "data.sets[0].path=" + folder_ + "/data"} +
                        overrides;
    std::filesystem::create_directories(folder_ + "/" + name);
    return std::make_unique<JobProcess>(words, fresh_log(name), environment);
  }
  std::unique_ptr<JobProcess> tool(const Words& words) {
    return std::make_unique<JobProcess>(words, fresh_log("tool"));
  }

  /// The newest run directory under the run root.
  std::string run_directory(const std::string& name) const {
    std::string newest;
    std::error_code absent;  // the run may not have made it yet
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/" + name + "/quickstart-sft", absent)) {
      if (entry.is_directory() && !entry.is_symlink()) newest = std::max(newest, entry.path().string());
    }
    return newest;
  }
  void expect_sound(const std::string& name) {
    auto verify = tool({"verify", run_directory(name)});
    EXPECT_EQ(verify->wait(kToolDeadline), 0) << verify->output();
  }
  /// What `troupe export` writes: file name -> bytes.
  std::map<std::string, std::string> weights(const std::string& name) {
    const std::string out = folder_ + "/" + name + "/weights";
    std::filesystem::remove_all(out);
    auto exported = tool({"export", run_directory(name), "--out", out});
    EXPECT_EQ(exported->wait(kToolDeadline), 0) << exported->output();
    auto files = files_of(out, ".safetensors");
    EXPECT_FALSE(files.empty());
    return files;
  }
  /// The weights of a run that nothing happens to. They depend on the program alone: the first test that asks leaves
  /// them in the tests' own folder of state for the others.
  std::map<std::string, std::string> undisturbed_weights() {
    namespace fs = std::filesystem;
    const fs::path program = std::getenv("TROUPE_BINARY"), state = std::getenv("XDG_STATE_HOME"),
                   kept = state / ("undisturbed-" + std::to_string(fs::file_size(program)) + "-" +
                                   std::to_string(fs::last_write_time(program).time_since_epoch().count()));
    if (!fs::exists(kept)) {
      auto job = run("undisturbed");
      EXPECT_EQ(job->wait(kRunDeadline), 0) << job->output();
      if (weights("undisturbed").empty()) return {};
      fs::create_directories(state);
      for (const auto& entry : fs::directory_iterator(state)) {
        const std::string name = entry.path().filename();  // what an earlier program left
        if (name.starts_with("undisturbed-") && !name.starts_with(kept.filename().string())) fs::remove_all(entry);
      }
      const fs::path own = kept.string() + "." + std::to_string(::getpid());
      fs::copy(folder_ + "/undisturbed/weights", own);
      std::error_code another_test_was_faster;
      fs::rename(own, kept, another_test_was_faster);
    }
    return files_of(kept, ".safetensors");
  }
  void expect_complete(JobProcess& job, const std::string& name) {
    ASSERT_EQ(job.wait(kRunDeadline), 0) << job.output();
    EXPECT_NE(job.output().find("RUN COMPLETE"), std::string::npos) << job.output();
    expect_sound(name);
  }
  /// Kills each actor once its step was trained; the run completes with all of them started again.
  void expect_survived(JobProcess& job, const std::string& name,
                       const std::vector<std::pair<int, std::string>>& kills) {
    for (const auto& [step, actor] : kills) {
      ASSERT_TRUE(job.wait_output(step_line(step))) << job.output();
      job.strike(actor, SIGKILL);
    }
    expect_complete(job, name);
    for (const auto& [step, actor] : kills)
      EXPECT_NE(job.output().find(actor + " killed by signal 9; restart"), std::string::npos) << actor;
  }
  static std::string step_line(int step) { return "step +" + std::to_string(step) + "/"; }

  ScratchFolder scratch_;
  const std::string folder_ = scratch_.path();

 private:
  std::string fresh_log(const std::string& name) {
    return folder_ + "/" + name + "-" + std::to_string(++logs_) + ".log";
  }
  int logs_ = 0;
};

}  // namespace troupe::app
