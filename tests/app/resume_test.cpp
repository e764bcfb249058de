// A run that stops and goes on ends where one that never stopped ends.
#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

class ResumeTest : public RunTest {
 protected:
  void expect_two_halves_equal_the_whole(const std::vector<std::string>& mode) {
    const auto whole = run_small(mode + std::vector<std::string>{"job.run_root=whole"});
    ASSERT_TRUE(succeeded(whole));
    ASSERT_TRUE(succeeded(run_small(mode + std::vector<std::string>{"training.steps=10"})));
    expect_verified(40);
    EXPECT_FALSE(exported() == exported("whole"));
    expect_end(run_small(mode + std::vector<std::string>{"--resume", "auto"}), 0, {"resuming at step 10"});
    EXPECT_EQ(num_runs(), 1u);
    expect_verified(80);
    EXPECT_TRUE(exported() == exported("whole"));
    EXPECT_EQ(curve("train/loss"), curve("train/loss", "whole"));
  }
};

TEST_F(ResumeTest, TwoHalvesOnThreadsEqualTheWholeToTheBit) { expect_two_halves_equal_the_whole({}); }

TEST_F(ResumeTest, TwoHalvesInProcessesEqualTheWholeToTheBit) { expect_two_halves_equal_the_whole(in_processes()); }

TEST_F(ResumeTest, TwoHalvesWithAnAverageAndBf16MomentsEqualTheWholeToTheBit) {
  expect_two_halves_equal_the_whole({"ema.decay=0.9", "optimizer.moments=bf16", "optimizer.betas=[0.9, 0.99]"});
  const auto averages = exported("runs", "ema");
  EXPECT_TRUE(averages == exported("whole", "ema"));
  EXPECT_FALSE(averages == exported());
}

TEST_F(ResumeTest, TwoHalvesWithSophiaCutItsCadenceAndEqualTheWholeToTheBit) {
  expect_two_halves_equal_the_whole({"optimizer.name=sophia", "optimizer.sophia.every=4"});
  const auto rates = curve("train/win_rate", "whole"), curvatures = curve("train/curvature", "whole");
  EXPECT_EQ(rates.size(), 19u) << "not of the first step";
  EXPECT_EQ(curvatures.size(), 20u);
  for (const auto& [step, rate] : rates) EXPECT_TRUE(rate >= 0 && rate <= 1) << step;
  for (const auto& [step, curvature] : curvatures) EXPECT_GT(curvature, 0) << step;
}

TEST_F(ResumeTest, AnAverageMayBeginAndEndWhereARunGoesOn) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=4"})));
  const ProgramEnd refused = troupe({"export", "runs/latest", "--weights", "ema", "--out", "none"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, ::testing::HasSubstr("has no average of its weights"));
  ASSERT_TRUE(succeeded(run_small({"training.steps=8", "--resume", "auto", "ema.decay=0.9"})));
  EXPECT_FALSE(exported("runs", "ema") == exported());
  ASSERT_TRUE(succeeded(run_small({"training.steps=12", "--resume", "auto", "optimizer.moments=bf16"})));
  const std::string events = text_of(dir_ / "runs/latest/events.jsonl");
  for (const char* told : {"average_started", "average_dropped", "moments_converted"})
    EXPECT_THAT(events, ::testing::HasSubstr(told));
}

TEST_F(ResumeTest, ARunWhoseNewestCheckpointIsDamagedGoesOnFromTheOneBefore) {
  ASSERT_TRUE(succeeded(run_small({"job.run_root=whole"})));
  ASSERT_TRUE(succeeded(run_small({"training.steps=8", "checkpoint.interval=4"})));
  const std::string checkpoints = std::filesystem::canonical(dir_ / "runs/latest") / "checkpoints";
  const auto damage = [&](const std::string& step) {
    flip_byte(checkpoints + "/" + step + "/rank-00001-of-00002.safetensors", 20'000);
  };
  damage("step_000008");
  expect_end(run_small({"--resume", "auto", "checkpoint.interval=4"}), 0, {"resuming at step 8"},
             {"the checkpoint of step 8 cannot be read", "rank-00001-of-00002.safetensors", "go back to step 4"});
  expect_verified(80);
  EXPECT_TRUE(exported() == exported("whole"));
  EXPECT_EQ(curve("train/loss"), curve("train/loss", "whole"));
}

TEST_F(ResumeTest, ARunWhoseOnlyCheckpointIsDamagedBeginsAnew) {
  ASSERT_TRUE(succeeded(run_small({"job.run_root=whole"})));
  ASSERT_TRUE(succeeded(run_small({"training.steps=4"})));
  const std::string checkpoint = std::filesystem::canonical(dir_ / "runs/latest/checkpoints/latest");
  flip_byte(checkpoint + "/rank-00000-of-00002.safetensors", 20'000);
  expect_end(run_small({"--resume", "auto"}), 0, {"resuming at step 4"}, {"go back to step 0"});
  expect_verified(80);
  EXPECT_TRUE(exported() == exported("whole"));
}

TEST_F(ResumeTest, ACheckpointOfTwoRanksGoesOnOnOneAndOnThree) {
  const std::vector<std::string> batch = {"training.global_batch_size=12"};
  ASSERT_TRUE(succeeded(run_small(batch + std::vector<std::string>{"training.steps=4"})));
  expect_end(run_small(batch + std::vector<std::string>{"training.steps=8", "--resume", "auto",
                                                        "cluster.component_placement.learner=0"}),
             0, {"resuming at step 4"});
  expect_verified(96);
  expect_end(run_small(batch + std::vector<std::string>{"training.steps=12", "--resume", "auto",
                                                        "cluster.component_placement.learner=0:0-2"}),
             0, {"resuming at step 8"});
  expect_verified(144);
  EXPECT_EQ(curve("train/loss").size(), 12u);
  EXPECT_EQ(nlohmann::json::parse(text_of(dir_ / "runs/latest/plan.json"))["revision"], 2) << "each start has a plan";
}

TEST_F(ResumeTest, AJobThatGoesOnMultipliesInTheFormThatItBeganWith) {
  const std::map<std::string, std::string> env = {{"XDG_CACHE_HOME", dir_ / "cache"}};
  const std::string rates = dir_ / "cache/troupe/product_rates.json";
  const auto form_of = [&](const std::string& file) {
    return nlohmann::json::parse(text_of(file)).value("products", "none");
  };
  const auto set_rates = [&](double native, double widened) {
    auto kept = nlohmann::json::parse(text_of(rates));
    kept["native"] = native, kept["widened"] = widened;
    std::ofstream(rates) << kept.dump();
  };
  const std::string bf16 = "precision.param=bf16";
  // measures, which takes long where all cores are taken, and keeps what it measured
  ProgramOptions patient = options(env);
  patient.deadline = std::chrono::seconds(150);
  ASSERT_TRUE(succeeded(run_program({"plan", small_job(), bf16}, patient)));
  set_rates(1e15, 1e9);
  ASSERT_TRUE(succeeded(run_small({bf16, "training.steps=2"}, env)));
  EXPECT_EQ(form_of(dir_ / "runs/latest/plan.json"), "native");
  set_rates(1e9, 1e15);
  expect_end(troupe({"plan", small_job(), bf16, "--json"}, env), 0, {R"("products": "widened")"});
  expect_end(run_small({bf16, "training.steps=4", "--resume", "auto"}, env), 0, {"resuming at step 2"});
  EXPECT_EQ(form_of(dir_ / "runs/latest/plan.json"), "native");
}

TEST_F(ResumeTest, AFinishedRunShowsItsReportAgain) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=4"})));
  const std::string report = text_of(dir_ / "runs/latest/report.txt");
  expect_end(run_small({"training.steps=4", "--resume", "auto"}), 0, {"RUN COMPLETE small", report});
  EXPECT_EQ(num_runs(), 1u);
  ASSERT_TRUE(succeeded(run_small({"training.steps=4", "--resume", "never"})));
  EXPECT_EQ(num_runs(), 2u);
}

TEST_F(ResumeTest, ANamedRunGoesOn) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=2"})));
  const std::string first = std::filesystem::canonical(dir_ / "runs/latest").filename();
  ASSERT_TRUE(succeeded(run_small({"training.steps=2"})));
  EXPECT_EQ(num_runs(), 2u);
  expect_end(run_small({"training.steps=4", "--resume", "runs/small/" + first}), 0, {"resuming at step 2"});
  EXPECT_EQ(std::filesystem::canonical(dir_ / "runs/latest").filename(), first);
  expect_end(run_small({"--resume", "runs/small/none"}), 2, {}, {"--resume", "runs/small/none"});
}

TEST_F(ResumeTest, ASecondRunOfARunningNameIsRefused) {
  Program job({"run", small_job(), "training.steps=100000", "checkpoint.interval=100000"}, options());
  ASSERT_TRUE(job.wait_for_text("5/100000")) << job.so_far().text();
  const std::string pid = "pid " + std::to_string(job.pid());
  for (const std::string resume : {"never", "auto"}) {
    const auto second = run_small({"training.steps=100000", "checkpoint.interval=100000", "--resume", resume});
    expect_end(second, 2, {}, {"small is running (" + pid + ", step ", " of 100000)", "another job.name"});
  }
  expect_end(run_small({"--dry-run"}), 2, {}, {pid});
  expect_end(troupe({"plan", small_job()}), 0, {"OK (exit 0)"}, {"warning: job.name: small is running"});
  EXPECT_EQ(num_runs(), 1u);
  job.send_signal(SIGKILL);
  job.wait();
  expect_end(troupe({"plan", small_job()}), 0, {"OK (exit 0)"});
  ASSERT_TRUE(succeeded(run_small({"--resume", "never"}))) << "the lock ends with the process";
}

TEST_F(ResumeTest, ARunningRunWithCheckpointsIsSaidToRunAndNotToBeUnfinished) {
  Program job({"run", small_job(), "training.steps=100000", "checkpoint.interval=2"}, options());
  // a checkpoint waits for the one before to be committed
  ASSERT_TRUE(job.wait_for_text("20/100000")) << job.so_far().text();
  const std::string running = "small is running (pid " + std::to_string(job.pid());
  const std::vector<std::vector<std::string>> commands = {{}, {"--dry-run"}, {"optimizer.lr=0.01", "--resume", "auto"}};
  for (const auto& words : commands) expect_end(run_small(words), 2, {}, {running});
  EXPECT_EQ(num_runs(), 1u);
}

TEST_F(ResumeTest, FilesOfTheModelAreRecordedWhereTheyLieAndNotComparedLater) {
  const std::string model = std::string(TROUPE_SOURCE_DIR) + "/tests/golden/encoders/sp_plain.spiece.model";
  const std::string cached = "hf/hub/models--google--tok/snapshots/";
  for (const std::string& folder : {std::string("tokd"), cached + "a", cached + "b"}) {
    std::filesystem::create_directories(dir_ / folder);
    std::filesystem::copy_file(model, dir_ / (folder + "/spiece.model"));
  }
  const std::map<std::string, std::string> env = {{"HF_HOME", dir_ / "hf"}};
  write("hf/hub/models--google--tok/refs/main", "a");
  for (const std::string tokenizer : {"tokd/", "google/tok"}) {
    const std::vector<std::string> words = {"model.text_encoder.vocab=2000",
                                            "model.text_encoder.tokenizer=" + tokenizer, "training.steps=2"};
    ASSERT_TRUE(succeeded(run_small(words + std::vector<std::string>{"--resume", "never"}, env)));
    const std::string recorded = tokenizer == "tokd/" ? dir_ / "tokd" : dir_ / (cached + "a");
    EXPECT_THAT(text_of(dir_ / "runs/latest/config.resolved.yaml"), ::testing::HasSubstr("tokenizer: " + recorded));
    const auto more = words + std::vector<std::string>{"training.steps=3", "--resume", "auto"};
    expect_end(run_small(more, env), 0, {"resuming at step 2"});
  }
  write("hf/hub/models--google--tok/refs/main", "b");
  expect_end(run_small({"model.text_encoder.vocab=2000", "model.text_encoder.tokenizer=google/tok", "training.steps=4",
                        "--resume", "auto"},
                       env),
             0, {"resuming at step 3"},
             {"warning: model.text_encoder.tokenizer: the run goes on with '" + (dir_ / (cached + "a")) + "'"});
  // from another working directory, where a relative path would lead nowhere
  std::filesystem::create_directories(dir_ / "elsewhere");
  ProgramOptions elsewhere = options();
  elsewhere.cwd = dir_ / "elsewhere";
  EXPECT_TRUE(succeeded(run_program({"serve", dir_ / "runs/latest", "--once-selftest"}, elsewhere)));
}

TEST_F(ResumeTest, WhatAnEarlierAttemptReportedIsGoneOnceTheRunGoesOn) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=4"})));
  ASSERT_TRUE(std::filesystem::exists(dir_ / "runs/latest/report.html"));
  Program job({"run", small_job(), "training.steps=100000", "--resume", "auto", "metrics.every=1"}, options());
  ASSERT_TRUE(job.wait_for_text("step ")) << job.so_far().text();
  job.send_signal(SIGKILL);
  job.wait();
  EXPECT_FALSE(std::filesystem::exists(dir_ / "runs/latest/report.html"));
  const auto status = troupe({"status"});
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_THAT(status.text(), ::testing::HasSubstr("ended without a report, at committed step 4"));
}

TEST_F(ResumeTest, TheReportCoversTheWholeRun) {
  const std::vector<std::string> words = {"eval.every=5", "eval.max_samples=2", "optimizer.lr=1e-3"};
  ASSERT_TRUE(succeeded(run_small(words + std::vector<std::string>{"training.steps=10"})));
  const auto end = run_small(words + std::vector<std::string>{"--resume", "auto"});
  expect_end(end, 0, {"resuming at step 10"});
  const auto held_out = curve("eval/loss"), losses = curve("train/loss");
  EXPECT_EQ(held_out.size(), 5u);
  EXPECT_THAT(end.out, ::testing::HasSubstr(fmt::format("held out  {:.4f} -> {:.4f}", held_out.begin()->second,
                                                        held_out.rbegin()->second)));
  double first = 0;
  for (auto it = losses.begin(); it != std::next(losses.begin(), 10); ++it) first += it->second / 10;
  EXPECT_THAT(end.out, ::testing::HasSubstr(fmt::format("loss      {:.4f} -> ", first)));
}

TEST_F(ResumeTest, AReportSaysWhetherARunHasLearntAtAll) {
  const std::vector<std::string> words = {"eval.every=20", "eval.max_samples=2", "--resume", "never"};
  const auto still = run_small(words + std::vector<std::string>{"optimizer.lr=1e-8"});
  expect_end(still, 0, {"the held-out loss fell by less than 2 %: this run has hardly learnt. Raise optimizer.lr"});
  const auto wild = run_small(words + std::vector<std::string>{"optimizer.lr=1"});
  expect_end(wild, 0, {"the held-out loss rose: training diverged. Lower optimizer.lr (1 here), to 0.003"});
  EXPECT_THAT(wild.out, ::testing::Not(::testing::HasSubstr("Raise optimizer.lr")));
}

TEST_F(ResumeTest, ARateThatBreaksTheModelIsToldWithTheRateThatWasSet) {
  const auto end = run_small({"optimizer.lr=1000", "training.steps=60", "lr_scheduler.total_steps=60"});
  expect_end(end, 4, {"RUN FAILED"},
             {"training diverged: 10 steps in a row", "learning rate 1000", "Lower optimizer.lr, to 0.003"});
  EXPECT_THAT(end.out, ::testing::Not(::testing::HasSubstr("loss      nan")));
  const std::string events = text_of(dir_ / "runs/latest/events.jsonl");
  const std::size_t first = events.find("\"void_step\"");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(events.find("\"void_step\"", first + 1), std::string::npos) << "one line for all in a row";
}

TEST_F(ResumeTest, AChangedKeyIsRefusedByName) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=4"})));
  expect_end(run_small({"training.steps=8", "optimizer.lr=0.5", "--resume", "auto"}), 2, {}, {"optimizer.lr"});
  EXPECT_EQ(num_runs(), 1u);
}

TEST_F(ResumeTest, KeysThatErrorsRecommendToChangeMayChange) {
  expect_end(run_small({"training.steps=10"}, {{"TROUPE_FAULT", "decode@episode_000003:fail:100"}}), 4, {},
             {"data.bad_sample: skip"});
  const std::vector<std::string> again = {"--resume", "auto", "data.bad_sample=skip"};
  const std::map<std::string, std::string> fault = {{"TROUPE_FAULT", "decode@episode_000003:fail:2"}};
  expect_end(run_small(again + std::vector<std::string>{"training.steps=10"}, fault), 4, {}, {"data.max_bad_fraction"});
  expect_end(run_small(again + std::vector<std::string>{"training.steps=10", "data.max_bad_fraction=1"}, fault), 0);
  EXPECT_EQ(num_runs(), 1u);
  std::filesystem::rename(dir_ / "data", dir_ / "moved");
  const std::vector<std::string> moved = {"data.sets=moved", "data.max_bad_fraction=1"};
  expect_end(run_small(again + moved), 0, {"resuming at step 10"});
  EXPECT_EQ(num_runs(), 1u);
  EXPECT_THAT(text_of(dir_ / "runs/latest/checkpoints/latest/ledger.json"),
              ::testing::HasSubstr("\"bad_positions\": [\n"))
      << "those of the first half";
}

TEST_F(ResumeTest, ADatasetThatMovedAndIsAnotherIsRefused) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=10"})));
  ASSERT_TRUE(write_toy_dataset(dir_ / "other", {.episodes = kEpisodes + 1, .frames = 32}));
  expect_end(run_small({"--resume", "auto", "data.sets=other"}), 2, {}, {"fingerprint"});
}

TEST_F(ResumeTest, ASignalWritesACheckpointAndTheRunGoesOnFromIt) {
  const std::vector<std::string> words = {"run", small_job(), "training.steps=200", "lr_scheduler.total_steps=200",
                                          "checkpoint.interval=1000"};
  ASSERT_TRUE(succeeded(troupe(words + std::vector<std::string>{"job.run_root=whole"})));
  Program job(words, options());
  ASSERT_TRUE(job.wait_for_text("step   5/200")) << job.so_far().text();
  job.send_signal(SIGINT);
  expect_end(job.wait(), 130, {"SIGINT", "latest -> step_"});
  EXPECT_THAT(text_of(dir_ / "runs/latest/report.html"), ::testing::HasSubstr("RUN STOPPED"));
  expect_end(troupe(words), 2, {}, {"--resume auto"});
  expect_end(troupe(words + std::vector<std::string>{"--resume", "auto"}), 0, {"resuming at step"});
  EXPECT_EQ(num_runs(), 1u);
  expect_verified(800);
  EXPECT_TRUE(exported() == exported("whole"));
}

}  // namespace
}  // namespace troupe::app
