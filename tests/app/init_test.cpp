// `troupe init`: what it writes for datasets that lack something, and what it refuses. Each file it writes is planned,
// and trained for a step or two.
#include <fmt/format.h>

#include <functional>

#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

class InitTest : public RunTest {
 protected:
  void change_info(const std::function<void(Json&)>& change) const {
    Json info = Json::parse(testing::text_of(dir_ / "data/meta/info.json"));
    change(info);
    write("data/meta/info.json", info.dump(1));
  }
  ProgramEnd init() const { return troupe({"init", "data", "--out", "first"}); }
  std::string written(const std::string& name) const { return testing::text_of(dir_ / ("first/" + name)); }

  /// Its job is written, planned, and trains.
  void expect_job_trains() const {
    expect_end(init(), 0, {"wrote ", "first/robot.yaml", "first/job.yaml", "troupe plan ", "troupe run "});
    const std::string job = dir_ / "first/job.yaml";
    expect_end(troupe({"plan", job}), 0, {"OK (exit 0)"});
    EXPECT_TRUE(succeeded(troupe({"run", job, "training.steps=2", "training.global_batch_size=2",
                                  "training.micro_batch_size=1", "cluster.component_placement.learner=0:0-1"})));
  }
};

TEST_F(InitTest, ADatasetBecomesARobotAndAJobThatTrains) {
  expect_job_trains();
  const std::string robot = written("robot.yaml"), job = written("job.yaml");
  EXPECT_THAT(robot, HasSubstr("views: [front, side]"));
  EXPECT_THAT(robot, HasSubstr("layout: horizontal"));
  EXPECT_THAT(job, HasSubstr("sets: [{path: " + fs::canonical(dir_ / "data").string() + "}]"));
  EXPECT_THAT(job, HasSubstr("eval_episodes: [4]"));
  EXPECT_THAT(job, HasSubstr("pick up the"));
}

TEST_F(InitTest, TheSameDatasetInV30IsTheSameRobot) {
  ASSERT_TRUE(succeeded(init()));
  const std::string robot = written("robot.yaml");
  ASSERT_TRUE(succeeded(troupe({"convert", "dataset", "data", "--to", "v3.0", "--out", "v30"})));
  fs::remove_all(dir_ / "first");
  fs::remove_all(dir_ / "data");
  fs::rename(dir_ / "v30", dir_ / "data");
  expect_job_trains();
  const auto values = [](const std::string& yaml) { return yaml.substr(yaml.find("\ntag:")); };
  EXPECT_EQ(values(written("robot.yaml")), values(robot));
}

TEST_F(InitTest, WithoutModalityStateAndInstructionsItTrains) {
  fs::remove(dir_ / "data/meta/modality.json");
  change_info([](Json& info) {
    info["features"].erase("observation.state");
    info["features"].erase("task_index");
  });
  expect_job_trains();
  EXPECT_THAT(written("robot.yaml"), HasSubstr("state_keys: [time]"));
  EXPECT_THAT(written("robot.yaml"), Not(HasSubstr("language_key")));
}

TEST_F(InitTest, ACameraWithoutFilesIsLeftOutAndNamed) {
  fs::remove(dir_ / "data/meta/modality.json");
  fs::remove_all(dir_ / "data/videos/chunk-000/observation.images.side");
  expect_job_trains();
  EXPECT_THAT(written("robot.yaml"), HasSubstr("views: [front]"));
  EXPECT_THAT(written("robot.yaml"), HasSubstr("Left out: side (no episode has its file)"));
}

TEST_F(InitTest, OfFourAndFiveCamerasThreeAreTaken) {
  fs::remove(dir_ / "data/meta/modality.json");
  const fs::path videos = dir_ / "data/videos/chunk-000";
  const auto add_camera = [&](const std::string& name) {
    fs::copy(videos / "observation.images.side", videos / ("observation.images." + name));
    change_info([&](Json& info) {
      Json& features = info["features"];
      features["observation.images." + name] = Json(features["observation.images.side"]);
    });
  };
  add_camera("top");
  for (const char* last : {"left_wrist", "right_wrist"}) {
    add_camera(last);
    ASSERT_TRUE(succeeded(init()));
    expect_end(troupe({"plan", dir_ / "first/job.yaml"}), 0, {"OK (exit 0)"});
    EXPECT_THAT(written("robot.yaml"), HasSubstr("Left out: top (a canvas shows three views at most)"));
    fs::remove_all(dir_ / "first");
  }
}

TEST_F(InitTest, OfOneEpisodeNothingIsHeldOut) {
  change_info([](Json& info) { info["total_episodes"] = 1; });
  const std::string episodes = testing::text_of(dir_ / "data/meta/episodes.jsonl");
  write("data/meta/episodes.jsonl", episodes.substr(0, episodes.find('\n') + 1));
  expect_job_trains();
  EXPECT_THAT(written("job.yaml"), HasSubstr("eval: {every: 0}"));
}

TEST_F(InitTest, EpisodesWithBadFilesAreLeftOut) {
  fs::resize_file(dir_ / "data/videos/chunk-000/observation.images.front/episode_000002.mp4", 100);
  expect_job_trains();
  EXPECT_THAT(written("job.yaml"), HasSubstr("bad_sample: skip"));
  EXPECT_THAT(written("job.yaml"), HasSubstr("1 of 5 episodes have bad files"));
}

TEST_F(InitTest, NothingIsOverwritten) {
  ASSERT_TRUE(succeeded(init()));
  write("first/job.yaml", "mine");
  expect_end(init(), 2, {}, {"first/robot.yaml is there already"});
  fs::remove(dir_ / "first/robot.yaml");
  expect_end(init(), 2, {}, {"first/job.yaml is there already", "another --out"});
  EXPECT_EQ(written("job.yaml"), "mine");
  EXPECT_FALSE(fs::exists(dir_ / "first/robot.yaml"));
}

TEST_F(InitTest, WhatItCannotDoIsSaid) {
  expect_end(troupe({"init", "--out", "a"}), 2, {}, {"give either a dataset"});
  expect_end(troupe({"init", "data", "--env", "CartPole-v1", "--out", "a"}), 2, {}, {"give either a dataset"});
  expect_end(troupe({"init", "data"}), 2, {}, {"--out is required"});
  expect_end(troupe({"init", "absent", "--out", "a"}), 2, {}, {"absent"});
  expect_end(troupe({"init", "--env", "CartPole-v2", "--out", "a"}), 2, {},
             {"no environment is called 'CartPole-v2'; environments, nearest first:\n", "CartPole-v1\n"});
  change_info([](Json& info) {
    info["features"].erase("observation.images.front");
    info["features"].erase("observation.images.side");
  });
  fs::remove(dir_ / "data/meta/modality.json");
  expect_end(troupe({"init", "data", "--out", "a"}), 2, {}, {"the dataset has none"});
  EXPECT_FALSE(fs::exists(dir_ / "a"));
}

TEST_F(InitTest, AnEnvironmentBecomesAJobThatTrains) {
  expect_end(troupe({"init", "--env", "CartPole-v1", "--out", "cart"}), 0, {"cart/job.yaml", "troupe run "});
  const std::string job = dir_ / "cart/job.yaml";
  expect_end(troupe({"plan", job}), 0, {"OK (exit 0)"});
  EXPECT_TRUE(succeeded(troupe({"run", job, "training.steps=1", "eval.episodes=2"})));
}

}  // namespace
}  // namespace troupe::app
