// Robots guessed from facts that are made here: what real datasets are like, one oddity a test.
#include "data/init/robot_guess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/init/job_guess.h"

namespace troupe::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LerobotFeature numbers(const std::string& name, std::int64_t width, std::vector<std::string> names = {},
                       const std::string& dtype = "float32") {
  return {.name = name, .dtype = dtype, .shape = {width}, .is_depth = false, .names = std::move(names)};
}

CameraFacts camera(const std::string& name, std::int64_t height = 480, std::int64_t width = 640,
                   std::int64_t episodes = 5) {
  return {
      .name = name, .feature = "observation.images." + name, .height = height, .width = width, .episodes = episodes};
}

DatasetFacts arm_facts() {
  DatasetFacts facts;
  facts.root = "/data/My Robot!";
  facts.info.fps = 30;
  facts.info.features = {numbers("observation.state", 7), numbers("action", 7), numbers("task_index", 1, {}, "int64")};
  facts.modality.state = {{"state", "observation.state", 0, 7}};
  facts.modality.action = {{"action", "action", 0, 7}};
  facts.cameras = {camera("top")};
  facts.episodes = 5;
  return facts;
}

RobotGuess guessed(const DatasetFacts& facts) {
  auto guess = guess_robot(facts);
  EXPECT_TRUE(guess) << guess.error().message();
  return guess ? *guess : RobotGuess{};
}

TEST(RobotGuessTest, UnnamedColumnsOfOneWidthAreOneKeyThatMayBeRelative) {
  const auto e = guessed(arm_facts()).embodiment;
  EXPECT_EQ(e.tag, "my_robot");
  EXPECT_THAT(e.state_keys, ElementsAre("joints"));
  EXPECT_THAT(e.action_keys, ElementsAre("joints"));
  EXPECT_THAT(e.relative_action_keys, ElementsAre("joints"));
  EXPECT_EQ(e.slices.at("action.joints"), "action[0:7]");
  EXPECT_EQ(e.language_key, "task_index");
}

TEST(RobotGuessTest, GrippersAreKeysThatStayAbsolute) {
  DatasetFacts facts = arm_facts();
  const std::vector<std::string> names = {"j1", "elbow_1", "elbow_2", "wrist_1", "wrist_2", "wrist_3", "gripper"};
  facts.info.features[0].names = facts.info.features[1].names = names;
  const auto e = guessed(facts).embodiment;
  EXPECT_THAT(e.action_keys, ElementsAre("first", "arm", "gripper"));
  EXPECT_THAT(e.relative_action_keys, ElementsAre("first", "arm"));
}

TEST(RobotGuessTest, AGripperOfBytesIsAnAbsoluteKey) {
  DatasetFacts facts = arm_facts();
  facts.info.features.push_back(numbers("action.gripper", 1, {}, "uint8"));
  facts.info.features.push_back(numbers("observation.state.gripper", 1, {}, "uint8"));
  facts.modality.state.push_back({"gripper", "observation.state.gripper", 0, 1});
  facts.modality.action.push_back({"gripper", "action.gripper", 0, 1});
  const auto e = guessed(facts).embodiment;
  EXPECT_THAT(e.action_keys, ElementsAre("action", "gripper"));
  EXPECT_THAT(e.relative_action_keys, IsEmpty());
}

TEST(RobotGuessTest, WithoutAStateTimeStandsIn) {
  DatasetFacts facts = arm_facts();
  facts.info.features.erase(facts.info.features.begin());
  facts.modality.state.clear();
  const auto guess = guessed(facts);
  EXPECT_EQ(guess.embodiment.slices.at("state.time"), "timestamp[0:1]");
  EXPECT_THAT(guess.embodiment.relative_action_keys, IsEmpty());
  EXPECT_THAT(guess.why.at("state_keys"), HasSubstr("has no state"));
}

TEST(RobotGuessTest, ColumnsThatSoundRightStandInForTheUsualNames) {
  DatasetFacts facts = arm_facts();
  facts.info.features = {numbers("observation.qpos", 6), numbers("arm_action", 6), numbers("next.reward", 1)};
  facts.modality = {};
  const auto e = guessed(facts).embodiment;
  EXPECT_EQ(e.slices.at("state.joints"), "observation.qpos[0:6]");
  EXPECT_EQ(e.slices.at("action.joints"), "arm_action[0:6]");
  EXPECT_EQ(e.language_key, "");
}

TEST(RobotGuessTest, WithoutAnActionItIsRefusedWithWhatThereIs) {
  DatasetFacts facts = arm_facts();
  facts.info.features.erase(facts.info.features.begin() + 1);
  facts.modality.action.clear();
  const auto guess = guess_robot(facts);
  ASSERT_FALSE(guess);
  EXPECT_THAT(guess.error().message(), HasSubstr("it has observation.state, task_index"));
}

TEST(RobotGuessTest, ViewsDecideTheLayout) {
  DatasetFacts facts = arm_facts();
  facts.cameras = {camera("left"), camera("right")};
  EXPECT_EQ(guessed(facts).embodiment.layout, "horizontal");
  facts.cameras = {camera("wrist"), camera("left"), camera("right")};
  const auto three = guessed(facts).embodiment;
  EXPECT_EQ(three.layout, "droid");
  EXPECT_THAT(three.views, ElementsAre("left", "right", "wrist"));
  facts.cameras = {camera("a"), camera("b"), camera("c"), camera("d"), camera("e")};
  const auto five = guessed(facts);
  EXPECT_EQ(five.embodiment.layout, "grid2x2");
  EXPECT_THAT(five.embodiment.views, ElementsAre("a", "b", "c"));
  EXPECT_THAT(five.why.at("views"), HasSubstr("Left out: d (a canvas shows three views at most). Left out: e"));
}

TEST(RobotGuessTest, OfManyCamerasTheMainOneAndTheWristsStay) {
  DatasetFacts facts = arm_facts();
  facts.cameras = {camera("left_wrist"), camera("front"), camera("side"), camera("right_wrist")};
  const auto two_hands = guessed(facts).embodiment;
  EXPECT_EQ(two_hands.layout, "grid2x2");
  EXPECT_THAT(two_hands.views, ElementsAre("left_wrist", "front", "right_wrist"));
  facts.cameras = {camera("front"), camera("side"), camera("top"), camera("wrist")};
  const auto one_hand = guessed(facts).embodiment;
  EXPECT_EQ(one_hand.layout, "droid");
  EXPECT_THAT(one_hand.views, ElementsAre("front", "side", "wrist"));
}

TEST(RobotGuessTest, AKeyThatModalityNamedKeepsItsName) {
  DatasetFacts facts = arm_facts();
  facts.has_modality = true;
  facts.modality.state[0].name = "proprio";
  const auto e = guessed(facts).embodiment;
  EXPECT_THAT(e.state_keys, ElementsAre("proprio"));
  EXPECT_THAT(e.action_keys, ElementsAre("action"));
}

TEST(RobotGuessTest, CamerasOfAnotherSizeOrWithoutFilesAreLeftOutAndNamed) {
  DatasetFacts facts = arm_facts();
  facts.cameras = {camera("big", 720, 1280), camera("a"), camera("b"), camera("part", 480, 640, 3), camera("gone")};
  facts.cameras.back().trouble = "no episode has its file";
  const auto guess = guessed(facts);
  EXPECT_THAT(guess.embodiment.views, ElementsAre("a", "b"));
  for (const char* part : {"big (its frames are 1280x720", "part (3 of 5 episodes", "gone (no episode"})
    EXPECT_THAT(guess.why.at("views"), HasSubstr(part));
}

TEST(RobotGuessTest, WithoutACameraItIsRefusedWithTheReasons) {
  DatasetFacts facts = arm_facts();
  facts.cameras[0].trouble = "it shows distances, not colours";
  const auto guess = guess_robot(facts);
  ASSERT_FALSE(guess);
  EXPECT_THAT(guess.error().message(), HasSubstr("observation.images.top: it shows distances"));
}

/// What check_health would say of `facts`: values from -1 to 1, and differences to the state of `spread` times that.
HealthReport report_of(const RobotGuess& guess, double spread, std::vector<double> lengths = {100, 100}) {
  HealthReport report;
  report.root = "/data/My Robot!";
  report.fps = 30;
  FeatureStatistics s;
  s.q01.assign(7, -1);
  s.q99.assign(7, 1);
  report.columns = {
      {.name = "action", .dtype = "float32", .statistics = s, .histograms = {}, .constant = {}, .near_constant = {}}};
  for (const std::string& key : guess.embodiment.relative_action_keys) {
    RelativeReport r;
    r.action = r.state = {key, "action", 0, 7};
    r.statistics.pooled.q01.assign(7, -spread);
    r.statistics.pooled.q99.assign(7, spread);
    report.relative.push_back(r);
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    EpisodeReport e;
    e.index = static_cast<std::int64_t>(i);
    e.rows = static_cast<std::int64_t>(lengths[i]);
    report.episodes.push_back(e);
  }
  report.span_lengths = std::move(lengths);
  return report;
}

TEST(RobotGuessTest, CommandsThatAreNoPositionsStayAbsolute) {
  RobotGuess positions = guessed(arm_facts()), commands = positions;
  judge_by_statistics(report_of(positions, 0.2), positions);
  EXPECT_THAT(positions.embodiment.relative_action_keys, ElementsAre("joints"));
  judge_by_statistics(report_of(commands, 1.4), commands);
  EXPECT_THAT(commands.embodiment.relative_action_keys, IsEmpty());
  EXPECT_THAT(commands.why.at("relative_action_keys"), HasSubstr("joints 1.40"));
}

TEST(RobotGuessTest, RareMotionIsNotCutOffByQuantiles) {
  RobotGuess guess = guessed(arm_facts());
  HealthReport report = report_of(guess, 0.2);
  report.keys.action = {{.key = {"joints", "action", 0, 7}, .relative = false, .reference = {}}};
  judge_by_statistics(report, guess);
  EXPECT_EQ(guess.embodiment.normalization, "q99");
  report.columns[0].near_constant = {6};
  judge_by_statistics(report, guess);
  EXPECT_EQ(guess.embodiment.normalization, "min_max");
}

JobGuess job_of(const std::vector<double>& lengths,
                const MachineFacts& machine = {.cores = 2, .memory_bytes = 8LL << 30}) {
  const RobotGuess robot = guessed(arm_facts());
  auto job = guess_job(report_of(robot, 0.2, lengths), robot, machine);
  EXPECT_TRUE(job) << job.error().message();
  return job ? *job : JobGuess{};
}

TEST(JobGuessTest, WindowsFitTheEpisodes) {
  const JobGuess usual = job_of({300, 300});
  EXPECT_EQ(usual.window.macro_stride, 24);  // 0.8 s at 30 rows/s
  EXPECT_EQ(usual.window.action_horizon, 24);
  EXPECT_THAT(usual.window.video_offsets, ElementsAre(0, 12));
  EXPECT_EQ(job_of({20, 20}).window.macro_stride, 8) << "two windows an episode";
  EXPECT_EQ(job_of({10, 10}).window.macro_stride, 4);
  EXPECT_EQ(job_of({5, 5}).window.macro_stride, 4) << "one, where two would leave no motion";
  const RobotGuess robot = guessed(arm_facts());
  const auto none = guess_job(report_of(robot, 0.2, {2, 1}), robot, {});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message(), HasSubstr("has 2 rows, and the shortest window wants 3"));
}

TEST(JobGuessTest, ATenthIsHeldOutAndNothingOfOneEpisode) {
  EXPECT_THAT(job_of({300}).eval_episodes, IsEmpty());
  EXPECT_THAT(job_of({300, 300}).eval_episodes, ElementsAre(1));
  EXPECT_THAT(job_of({300, 10, 300, 12}).eval_episodes, ElementsAre(2));
  EXPECT_THAT(job_of(std::vector<double>(30, 300)).eval_episodes, ElementsAre(9, 19, 29));
}

TEST(JobGuessTest, TheBatchFitsTheMachine) {
  for (const std::int64_t cores : {1, 2, 3, 4, 64}) {
    const JobGuess job = job_of({300, 300}, {.cores = cores, .memory_bytes = 64LL << 30});
    EXPECT_EQ(job.ranks, std::min<std::int64_t>(cores, 4));
    EXPECT_EQ(job.global_batch, job.ranks * job.micro_batch);
    EXPECT_GE(job.global_batch, 8);
  }
  EXPECT_EQ(job_of({300, 300}, {.cores = 8, .memory_bytes = 2LL << 30}).ranks, 2);
}

TEST(JobGuessTest, TheCanvasKeepsTheShapeOfTheViews) {
  const JobGuess job = job_of({300, 300});
  EXPECT_EQ(job.canvas_height, 64);
  EXPECT_EQ(job.canvas_width, 96);
}

TEST(JobGuessTest, ADatasetWithoutAUsableEpisodeIsRefused) {
  const RobotGuess robot = guessed(arm_facts());
  HealthReport report = report_of(robot, 0.2);
  for (EpisodeReport& e : report.episodes) e.problems = 1;
  const auto job = guess_job(report, robot, {});
  ASSERT_FALSE(job);
  EXPECT_THAT(job.error().message(), HasSubstr("none of 2 episodes can be trained on"));
}

}  // namespace
}  // namespace troupe::data
