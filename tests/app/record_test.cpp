// `troupe record` as a user calls it: what it prints, writes, refuses, and what others find in it.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "app/commands.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/parquet_table.h"
#include "tests/support/folder_files.h"
#include "tests/support/program.h"

namespace troupe::app {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

class RecordCommandTest : public ::testing::Test {
 protected:
  ProgramOptions options() const { return {.cwd = folder_.path(), .env = {{"XDG_CACHE_HOME", folder_ / "cache"}}}; }
  ProgramEnd troupe(const Words& words) const { return run_program(words, options()); }
  ProgramEnd record(const std::string& out, Words words = {}) const {
    const Words common = {"record", "arm7/reach-v1", "--episodes", "5", "--out", out};
    words.insert(words.begin(), common.begin(), common.end());
    return troupe(words);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_.path())) all.push_back(entry.path().filename().string());
    return all;
  }
  ScratchFolder folder_;
};

TEST_F(RecordCommandTest, WritesADatasetThatTheReaderTakes) {
  expect_end(record("demos", {"max_episode_steps=40"}), 0, {"demos: LeRobot v3.0, 5 episodes of ", "data.sets=demos"});
  const auto dataset = LerobotDataset::open(folder_ / "demos");
  ASSERT_TRUE(dataset) << dataset.error().message();
  EXPECT_TRUE(dataset->findings().empty());
  EXPECT_EQ(dataset->info().robot_type, "arm7");
  EXPECT_EQ(dataset->info().fps, 20);
  ASSERT_EQ(dataset->episodes().size(), 5u);
  for (std::size_t e = 0; e < 5; ++e) {
    const RowSource rows = dataset->rows(e).value();
    const std::int64_t length = dataset->episodes()[e].length;
    const auto table = read_parquet(rows.path,
                                    {.vectors = {"observation.state", "action"},
                                     .integers = {"next.success"},
                                     .optional_vectors = {},
                                     .optional_integers = {}},
                                    {.first = rows.first_row, .count = length});
    ASSERT_TRUE(table) << table.error().message();
    EXPECT_EQ(table->vectors.at("observation.state").width, 31u);
    EXPECT_EQ(table->vectors.at("action").width, 8u);
    EXPECT_EQ(table->integers.at("next.success").back(), 1);
    EXPECT_LE(length, 40);
    EXPECT_THAT(dataset->episodes()[e].tasks.front(), HasSubstr("green"));
  }
}

TEST_F(RecordCommandTest, StatisticsFindNothingWrong) {
  for (const char* version : {"v2.1", "v3.0"}) {
    ASSERT_TRUE(succeeded(record(version, {"--version", version, "--cameras", "front", "sparse=false"})));
    expect_end(troupe({"stats", version, "--verify", "full"}), 0, {"OK: 0 problems", "observation.images.front"});
  }
}

TEST_F(RecordCommandTest, TheSameCommandGivesTheSameBytes) {
  ASSERT_TRUE(succeeded(record("a", {"--seed", "3"})));
  ASSERT_TRUE(succeeded(record("b", {"--seed", "3"})));
  EXPECT_TRUE(files_below(folder_ / "a") == files_below(folder_ / "b"));
}

TEST_F(RecordCommandTest, AFolderThatHoldsSomethingIsLeftAlone) {
  ASSERT_TRUE(succeeded(record("a")));
  const auto before = files_below(folder_ / "a");
  expect_end(record("a"), kUsage, {}, {"a exists and is not an empty folder; remove it or name another one"});
  EXPECT_TRUE(files_below(folder_ / "a") == before);
}

TEST_F(RecordCommandTest, RefusesWithTheUsageCodeAndWritesNothing) {
  const std::vector<std::pair<Words, std::string>> wrong = {
      {{"record", "arm7/reach-v9", "--out", "a"}, "did you mean 'arm7/reach-v1'"},
      {{"record", "arm7/push-v1", "--out", "a"},
       "those that have one: arm7/reach-v1, arm7/lift-v1, arm7/pick_place-v1"},
      {{"record", "arm7/reach-v1"}, "--out is required"},
      {{"record", "arm7/reach-v1", "sparse", "--out", "a"},
       "'sparse'; wanted an option of the environment as name=value"},
      {{"record", "arm7/reach-v1", "sprase=true", "--out", "a"}, "sparse"},
      {{"record", "arm7/reach-v1", "max_episode_steps=many", "--out", "a"}, "max_episode_steps is 'many'"},
      {{"record", "arm7/reach-v1", "--keep", "best", "--out", "a"}, "--keep"},
      {{"record", "arm7/reach-v1", "--episodes", "0", "--out", "a"}, "--episodes"},
      {{"record", "arm7/reach-v1", "--cameras", "above", "--out", "a"}, "has no camera 'above'"}};
  for (const auto& [words, said] : wrong) {
    expect_end(troupe(words), kUsage, {}, {said});
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(RecordCommandTest, AnInterruptLeavesNothingOfThatName) {
  Program program({"record", "arm7/reach-v1", "--episodes", "100000", "--out", "a"}, options());
  ASSERT_TRUE(program.wait_for_text("episodes")) << program.so_far().text();
  program.send_signal(SIGINT);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.signal, SIGINT) << end.text();
  EXPECT_FALSE(fs::exists(folder_ / "a"));
}

TEST_F(RecordCommandTest, AnEnvironmentInPythonIsPlayedByItsOwnExpert) {
  const std::string root = TROUPE_SOURCE_DIR;
  ProgramOptions with_python = options();
  with_python.env["TROUPE_PYTHON"] = "python3";
  with_python.env["PYTHONPATH"] = root + "/tests/python:" + root + "/.deps/clients";
  const auto record = [&](const std::string& env) {
    return run_program({"record", env, "--episodes", "3", "--out", "demos"}, with_python);
  };
  expect_end(record("python:toy_envs:Line"), 0, {"3 episodes of 3 tried", "at 10 Hz"});
  const auto dataset = LerobotDataset::open(folder_ / "demos");
  ASSERT_TRUE(dataset) << dataset.error().message();
  EXPECT_EQ(dataset->info().robot_type, "python:toy_envs:Line");
  EXPECT_EQ(dataset->episodes()[0].tasks.front(), "Line");
  const RowSource rows = dataset->rows(0).value();
  const auto table = read_parquet(rows.path,
                                  {.vectors = {"observation.state", "action"},
                                   .integers = {"next.success"},
                                   .optional_vectors = {},
                                   .optional_integers = {}},
                                  {.first = rows.first_row, .count = dataset->episodes()[0].length});
  ASSERT_TRUE(table) << table.error().message();
  for (std::int64_t row = 0; row < table->rows; ++row) {
    const auto x = static_cast<float>(table->vectors.at("observation.state").row(row)[0]);
    EXPECT_EQ(static_cast<float>(table->vectors.at("action").row(row)[0]), std::clamp(-5 * x, -1.0F, 1.0F)) << row;
  }
  std::filesystem::remove_all(folder_ / "demos");
  expect_end(record("python:toy_envs:CutLine"), 0, {"3 episodes"});
  const auto cut = LerobotDataset::open(folder_ / "demos");
  ASSERT_TRUE(cut) << cut.error().message();
  for (const auto& episode : cut->episodes()) EXPECT_LE(episode.length, 6) << "nothing behind the cut";
  std::filesystem::remove_all(folder_ / "demos");
  const ProgramEnd none = record("python:toy_envs:NoExpert");
  expect_end(none, 2);
  EXPECT_THAT(none.text(), HasSubstr("python:toy_envs:NoExpert has no expert to record: its class has no method"));
  EXPECT_THAT(names(), Not(Contains("demos")));
}

}  // namespace
}  // namespace troupe::app
