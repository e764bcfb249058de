// `troupe convert dataset` as a user calls it: what it prints, writes, refuses and exits with, and what a kill leaves.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "app/commands.h"
#include "base/file_lock.h"
#include "data/toy/toy_dataset.h"
#include "tests/support/folder_files.h"
#include "tests/support/program.h"

namespace troupe::app {
namespace {

namespace fs = std::filesystem;

class ConvertDatasetCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        write_toy_dataset(folder_ / "toy", {.episodes = 2, .frames = 16, .height = 32, .width = 32, .seed = 3}));
  }
  ProgramEnd convert(std::vector<std::string> words, std::map<std::string, std::string> env = {}) const {
    words.insert(words.begin(), {"convert", "dataset"});
    return run_program(words, {.cwd = folder_.path(), .env = std::move(env)});
  }
  ScratchFolder folder_;
};

TEST_F(ConvertDatasetCommandTest, SaysWhatItDidAndVerified) {
  expect_end(convert({"toy", "--out", "v30", "--verify", "full", "--no-index"}), kOk,
             {"v3.0, 2 episodes", "verify full: 1 tables are equal by value and type"});
  EXPECT_TRUE(fs::exists(folder_ / "v30/meta/info.json"));
}

TEST_F(ConvertDatasetCommandTest, RefusesWithTheUsageCode) {
  EXPECT_EQ(convert({"nowhere", "--out", "x"}).exit_code, kUsage);
  EXPECT_EQ(convert({"toy", "--out", "x", "--shard_size", "much"}).exit_code, kUsage);
  EXPECT_EQ(convert({"toy", "--out", "x", "--video_mode", "copy", "--gop", "8"}).exit_code, kUsage);
  EXPECT_EQ(convert({"toy", "--out", "toy"}).exit_code, kUsage);
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

TEST_F(ConvertDatasetCommandTest, ADamagedEpisodeIsADataProblemWhereStrict) {
  std::ofstream(folder_ / "toy/data/chunk-000/episode_000000.parquet", std::ios::binary) << "nothing";
  EXPECT_EQ(convert({"toy", "--out", "strict", "--strict"}).exit_code, kDataProblem);
  expect_end(convert({"toy", "--out", "rest", "--no-index"}), kOk, {"left out: D03 episode 0"});
}

TEST_F(ConvertDatasetCommandTest, AFullDiskFailsAndAKillIsResumed) {
  ASSERT_EQ(convert({"toy", "--out", "whole", "--no-index"}).exit_code, kOk);
  expect_end(convert({"toy", "--out", "full", "--no-index"}, {{"TROUPE_FAULT", "convert.packet:enospc:1:5"}}), kFailed,
             {}, {"No space left on device"});
  const auto killed = convert({"toy", "--out", "out", "--no-index"}, {{"TROUPE_FAULT", "convert.journal:kill:1:1"}});
  EXPECT_EQ(killed.signal, SIGKILL) << killed.text();
  EXPECT_EQ(convert({"toy", "--out", "out", "--no-index"}).exit_code, kUsage) << "goes on only when told";
  expect_end(convert({"toy", "--out", "out", "--no-index", "--resume"}), kOk);
  EXPECT_TRUE(files_below(folder_ / "out") == files_below(folder_ / "whole"));
}

TEST_F(ConvertDatasetCommandTest, TwoOnOneOutputDoNotMix) {
  // the other process is us
  fs::create_directories(folder_ / "out/.troupe/convert");
  {
    const auto lock = base::FileLock::acquire(folder_ / "out/.troupe/convert/lock").value();
    expect_end(convert({"toy", "--out", "out", "--no-index"}), kUsage, {}, {fmt::format("process {}", ::getpid())});
  }
  // and a program that stands before its plan; a kill frees the folder at once
  Program first({"convert", "dataset", "toy", "--out", "out", "--no-index"},
                {.cwd = folder_.path(), .env = {{"TROUPE_FAULT", "convert.plan:stall"}}});
  ASSERT_TRUE(first.wait_for_text("convert.plan")) << first.so_far().text();
  for (const char* resume : {"", "--resume"}) {
    std::vector<std::string> words = {"toy", "--out", "out", "--no-index"};
    if (*resume != 0) words.emplace_back(resume);
    expect_end(convert(words), kUsage, {}, {"is locked by process "});  // the child that does the work
  }
  first.send_signal(SIGKILL);
  EXPECT_EQ(first.wait().signal, SIGKILL);
  expect_end(convert({"toy", "--out", "out", "--no-index", "--verify", "full"}), kOk, {"v3.0, 2 episodes"});
}

TEST_F(ConvertDatasetCommandTest, WhatReadsTheDatasetIsConfinedAndItsCrashIsSaid) {
  Program program({"convert", "dataset", "toy", "--out", "out", "--no-index"},
                  {.cwd = folder_.path(), .env = {{"TROUPE_FAULT", "convert.plan:stall"}}});
  ASSERT_TRUE(program.wait_for_text("convert.plan")) << program.so_far().text();
  pid_t child = 0;
  std::ifstream(fmt::format("/proc/{0}/task/{0}/children", program.pid())) >> child;
  ASSERT_GT(child, 0);
  const std::string status = text_of(fmt::format("/proc/{}/status", child));
  EXPECT_THAT(status, ::testing::HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(status, ::testing::HasSubstr("Seccomp:\t2"));
  ASSERT_EQ(::kill(child, SIGSEGV), 0);
  expect_end(program.wait(), kFailed, {}, {"the confined process that read toy was ended by signal 11"});
}

TEST_F(ConvertDatasetCommandTest, ALostCameraIsADataProblemUnlessItIsDropped) {
  fs::remove_all(folder_ / "toy/videos/chunk-000/observation.images.side");
  expect_end(convert({"toy", "--out", "out", "--verify", "full"}), kDataProblem, {},
             {"D06", "--drop-camera observation.images.side"});
  expect_end(convert({"toy", "--drop-camera", "observation.images.side", "--out", "out", "--no-index"}), kOk,
             {"2 episodes", "1 tables, 1 videos"});
}

TEST_F(ConvertDatasetCommandTest, ARepairMendsMetadataAndNamesWhatItCannot) {
  fs::remove(folder_ / "toy/meta/episodes.jsonl");
  expect_end(convert({"toy", "--out", "out"}), kDataProblem, {}, {"toy/meta/episodes.jsonl"});
  EXPECT_EQ(convert({"toy", "--out", "out", "--skip-bad"}).exit_code, kUsage) << "of a repair alone";
  expect_end(convert({"toy", "--out", "out", "--repair", "--verify", "full", "--no-index"}), kOk,
             {"v3.0, 2 episodes", "note: 2 episodes are not in the metadata and are taken: 0, 1"});
  std::ofstream(folder_ / "toy/data/chunk-000/episode_000000.parquet", std::ios::binary) << "nothing";
  expect_end(convert({"toy", "--out", "bad", "--repair"}), kDataProblem, {}, {"D03 episode 0", "--skip-bad"});
  expect_end(convert({"toy", "--out", "bad", "--repair", "--skip-bad", "--no-index"}), kOk,
             {"1 episodes", "left out: D03 episode 0"});
}

TEST_F(ConvertDatasetCommandTest, EpisodesAreNumbersAndRanges) {
  for (const char* wrong : {"x", "1..", "2..1", "-1", "0,,1", "0;1"})
    expect_end(convert({"toy", "--out", "out", std::string("--episodes=") + wrong}), kUsage, {}, {"--episodes"});
  expect_end(convert({"toy", "--out", "out", "--episodes", "1", "--no-index"}), kOk, {"1 episodes"});
  expect_end(convert({"toy", "--out", "both", "--episodes", "0..1", "--no-index"}), kOk, {"2 episodes"});
}

}  // namespace
}  // namespace troupe::app
