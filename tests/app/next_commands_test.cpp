// The closing report ends with commands to type next: each runs as it is printed, whatever the run left.
#include <sstream>

#include "tests/app/rl_fixture.h"
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::ElementsAre;

/// The commands of the line "  next   troupe A B     troupe C D", each without its first word.
std::vector<std::vector<std::string>> next_commands(const std::string& output) {
  std::vector<std::vector<std::string>> commands;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  next ")) continue;
    std::istringstream words(line.substr(7));
    for (std::string word; words >> word;) {
      if (word == "troupe")
        commands.emplace_back();
      else if (!commands.empty())
        commands.back().push_back(word);
    }
  }
  return commands;
}

std::vector<std::string> verbs_of(const std::vector<std::vector<std::string>>& commands) {
  std::vector<std::string> verbs;
  for (const auto& command : commands) verbs.push_back(command.front());
  return verbs;
}

class NextCommandsTest : public RunTest {
 protected:
  void expect_that_each_runs(const std::vector<std::vector<std::string>>& commands) const {
    for (const auto& command : commands) EXPECT_TRUE(succeeded(troupe(command)));
  }
};

TEST_F(NextCommandsTest, OfAFineTuningRunVerifyAndExportIt) {
  const ProgramEnd end = run_small({"training.steps=4"});
  ASSERT_TRUE(succeeded(end));
  const auto commands = next_commands(end.out);
  EXPECT_THAT(verbs_of(commands), ElementsAre("verify", "export"));
  expect_that_each_runs(commands);
  // the folder of the first export is taken now
  const ProgramEnd second = run_small({"training.steps=3", "job.name=second"});
  ASSERT_TRUE(succeeded(second));
  expect_that_each_runs(next_commands(second.out));
}

TEST_F(NextCommandsTest, APathWithBlanksIsQuoted) {
  const ProgramEnd end = run_small({"training.steps=2", "job.run_root=my runs"});
  expect_end(end, 0, {"troupe verify 'my runs/small/", "' --format safetensors"});
}

TEST_F(NextCommandsTest, OfARunWithoutACheckpointNeedNone) {
  const ProgramEnd end = run_small({"training.steps=4"}, {{"TROUPE_FAULT", "decode@episode_0000:fail:100"}});
  ASSERT_EQ(end.exit_code, 4) << end.text();
  const auto commands = next_commands(end.out);
  EXPECT_THAT(verbs_of(commands), ElementsAre("verify"));
  expect_that_each_runs(commands);
}

class NextRlCommandsTest : public RlRunTest {};

TEST_F(NextRlCommandsTest, OfReinforcementLearningVerifyAndEvaluateIt) {
  const ProgramEnd end = run("runs", {"training.steps=2"});
  ASSERT_TRUE(succeeded(end));
  const auto commands = next_commands(end.out);
  EXPECT_THAT(verbs_of(commands), ElementsAre("verify", "eval"));
  for (const auto& command : commands) EXPECT_TRUE(succeeded(troupe(command)));
}

TEST_F(NextRlCommandsTest, OfARecordingTrainOnItHoweverFewEpisodesItHas) {
  for (const std::string episodes : {"1", "3", "9"}) {
    const ProgramEnd end = troupe({"record", "arm7/reach-v1", "--out", "demos" + episodes, "--episodes", episodes});
    ASSERT_TRUE(succeeded(end));
    auto commands = next_commands("  " + end.out.substr(end.out.find("next ")));
    ASSERT_EQ(commands.size(), 1u) << end.out;
    for (std::string& word : commands[0]) std::erase(word, '\'');  // what a shell does
    EXPECT_TRUE(succeeded(troupe(commands[0] + Words{"--dry-run"})));
  }
}

}  // namespace
}  // namespace troupe::app
