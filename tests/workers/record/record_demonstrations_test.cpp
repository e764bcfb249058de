#include "workers/record/record_demonstrations.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/parquet_table.h"
#include "data/video/video_file.h"
#include "env/episode_seed.h"
#include "tests/env/solo_env.h"
#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"
#include "workers/record/demonstration.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RecordDemonstrationsTest : public ::testing::Test {
 protected:
  RecordingRequest request(const std::string& name) const {
    return {.env = "arm7/reach-v1", .out = folder_ / name, .episodes = 3, .is_v30 = false};
  }
  RecordingReport record(const RecordingRequest& r) const { return record_demonstrations(r).value(); }
  Error refused(const RecordingRequest& r) const {
    const auto report = record_demonstrations(r);
    return report ? Error{Errc::internal, "was recorded"} : report.error();
  }
  EpisodeTable episode(const std::string& name, std::size_t place) const {
    const auto dataset = LerobotDataset::open(folder_ / name).value();
    const RowSource rows = dataset.rows(place).value();
    return read_parquet(rows.path,
                        {.vectors = {"observation.state", "action", "next.reward"},
                         .integers = {"next.done", "next.success", "next.terminated"},
                         .optional_vectors = {},
                         .optional_integers = {}},
                        {.first = rows.first_row, .count = dataset.episodes()[place].length})
        .value();
  }
  std::int64_t try_of(const std::string& name, std::size_t place) const {
    std::ifstream in(folder_ / (name + "/meta/recording.json"));
    return nlohmann::json::parse(in)["tries"][place];
  }
  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(folder_.path()), {}); }
  ScratchFolder folder_;
};

TEST_F(RecordDemonstrationsTest, TheRecordedActionsGiveTheRecordedEpisodeAgain) {
  record(request("data"));
  for (std::size_t e = 0; e < 3; ++e) {
    const EpisodeTable table = episode("data", e);
    testing::SoloEnv env("arm7/reach-v1");
    ASSERT_TRUE(env.reset(demonstration_seed(1, try_of("data", e))));
    for (std::int64_t row = 0; row < table.rows; ++row) {
      const auto state = table.vectors.at("observation.state").row(row), action = table.vectors.at("action").row(row);
      for (std::size_t d = 0; d < state.size(); ++d)
        ASSERT_EQ(state[d], env.element(0, d)) << "row " << row << ", number " << d;
      ASSERT_TRUE(env.step(std::vector<float>(action.begin(), action.end())));
      EXPECT_EQ(table.vectors.at("next.reward").values[static_cast<std::size_t>(row)],
                static_cast<double>(static_cast<float>(env.reward())));
      EXPECT_EQ(table.integers.at("next.success")[static_cast<std::size_t>(row)], env.success() ? 1 : 0);
    }
  }
}

TEST_F(RecordDemonstrationsTest, AnEpisodeEndsAFewStepsAfterItWasSolvedForGood) {
  record(request("data"));
  for (std::size_t e = 0; e < 3; ++e) {
    const EpisodeTable table = episode("data", e);
    const auto& success = table.integers.at("next.success");
    const auto& done = table.integers.at("next.done");
    const auto hold = static_cast<std::size_t>(kHoldSteps);
    ASSERT_GT(success.size(), hold + 1);
    for (std::size_t i = success.size() - hold - 1; i < success.size(); ++i) EXPECT_EQ(success[i], 1);
    EXPECT_EQ(success[success.size() - hold - 2], 0);
    for (std::size_t i = 0; i < done.size(); ++i) EXPECT_EQ(done[i], i + 1 == done.size() ? 1 : 0);
  }
}

TEST_F(RecordDemonstrationsTest, AnEpisodeThatTheEnvironmentEndsSaysSo) {
  record(request("held"));
  RecordingRequest ends = request("ended");
  ends.env_options.options = {{"terminate_on_success", "true"}};
  record(ends);
  for (std::size_t e = 0; e < 3; ++e) {
    EXPECT_THAT(episode("held", e).integers.at("next.terminated"), ::testing::Each(0));
    const auto terminated = episode("ended", e).integers.at("next.terminated");
    EXPECT_EQ(terminated.back(), 1);
    EXPECT_EQ(std::count(terminated.begin(), terminated.end(), 1), 1);
  }
}

TEST_F(RecordDemonstrationsTest, EpisodesAreThoseOfNoTrainingAndNoEvaluation) {
  std::set<std::uint64_t> others;
  for (std::int64_t env = 0; env < 50; ++env) {
    for (std::int64_t e = 0; e < 50; ++e) others.insert(episode_seed(1, env, e));
  }
  for (std::uint64_t k = 0; k < 1000; ++k) others.insert(episode_seed(1'000'000 + k, 0, 0));
  for (std::int64_t k = 0; k < 1000; ++k) EXPECT_TRUE(others.insert(demonstration_seed(1, k)).second) << k;
}

TEST_F(RecordDemonstrationsTest, WhatIsNotSolvedIsKeptOnlyWhenAsked) {
  RecordingRequest short_time = request("data");
  short_time.env_options.max_steps = 8;
  const Error error = refused(short_time);
  EXPECT_EQ(error.code(), Errc::failed_precondition);
  EXPECT_THAT(error.message(), HasSubstr("0 of 12 tries were solved within 8 steps, 3 episodes are wanted"));
  EXPECT_EQ(entries(), 0);
  short_time.keeps_all = true;
  const RecordingReport report = record(short_time);
  EXPECT_EQ(report.solved, 0);
  EXPECT_EQ(report.tried, 3);
  EXPECT_EQ(report.frames, 24);
}

TEST_F(RecordDemonstrationsTest, BothVersionsHoldTheSameEpisodes) {
  RecordingRequest v30 = request("v30");
  v30.is_v30 = true;
  record(request("v21"));
  record(v30);
  EXPECT_EQ(entries(), 2);
  EXPECT_TRUE(LerobotDataset::open(folder_ / "v30").value().info().is_v3());
  EXPECT_FALSE(fs::exists(folder_ / "v30/.troupe"));
  for (std::size_t e = 0; e < 3; ++e) {
    const EpisodeTable a = episode("v21", e), b = episode("v30", e);
    for (const char* column : {"observation.state", "action", "next.reward"})
      EXPECT_EQ(a.vectors.at(column).values, b.vectors.at(column).values);
    EXPECT_EQ(a.integers, b.integers);
    EXPECT_EQ(try_of("v21", e), try_of("v30", e));
  }
}

TEST_F(RecordDemonstrationsTest, EqualRequestsGiveEqualBytesAndAnotherSeedOthers) {
  for (const bool is_v30 : {false, true}) {
    RecordingRequest first = request(is_v30 ? "a3" : "a2"), second = request(is_v30 ? "b3" : "b2"),
                     other = request(is_v30 ? "c3" : "c2");
    first.is_v30 = second.is_v30 = other.is_v30 = is_v30;
    other.seed = 2;
    for (const auto& r : {first, second, other}) record(r);
    const std::string v = is_v30 ? "3" : "2";
    EXPECT_TRUE(files_below(folder_ / ("a" + v)) == files_below(folder_ / ("b" + v)));
    EXPECT_FALSE(files_below(folder_ / ("a" + v)) == files_below(folder_ / ("c" + v)));
  }
}

TEST_F(RecordDemonstrationsTest, CamerasAreVideosOfAsManyFramesAsRows) {
  RecordingRequest r = request("data");
  r.cameras = {"front", "wrist"};
  r.episodes = 1;
  r.image_size = 64;
  const RecordingReport report = record(r);
  for (const char* camera : {"front", "wrist"}) {
    const auto video = probe_video(
        folder_ / (std::string("data/videos/chunk-000/observation.images.") + camera + "/episode_000000.mp4"));
    EXPECT_EQ(video->frames, report.frames);
    EXPECT_EQ(video->height, 64);
    EXPECT_DOUBLE_EQ(video->fps, 20);
  }
}

TEST_F(RecordDemonstrationsTest, ATextOfTheEnvironmentIsTheTask) {
  RecordingRequest telling = request("telling");
  telling.env_options.options = {{"instruction", "true"}};
  record(telling);
  record(request("silent"));
  const auto told = LerobotDataset::open(folder_ / "telling").value(),
             expert = LerobotDataset::open(folder_ / "silent").value();
  EXPECT_GT(told.tasks().size(), 1u);
  EXPECT_EQ(told.tasks(), expert.tasks()) << "what the environment tells is what the controller is asked";
  EXPECT_EQ(told.info().find("observation.state")->width(), expert.info().find("observation.state")->width());
}

TEST_F(RecordDemonstrationsTest, LiftAndPlaceAreRecordedToo) {
  for (const char* id : {"arm7/lift-v1", "arm7/pick_place-v1"}) {
    RecordingRequest r = request("data");
    r.env = id;
    r.out = folder_ / (std::string("data-") + (r.env == "arm7/lift-v1" ? "lift" : "place"));
    r.episodes = 2;
    const RecordingReport report = record(r);
    EXPECT_EQ(report.episodes, 2);
    EXPECT_LE(report.tried, 4) << id;
  }
}

TEST_F(RecordDemonstrationsTest, WrongRequestsSayWhatThereIs) {
  const auto with = [&](auto change) {
    RecordingRequest r = request("data");
    change(r);
    return refused(r);
  };
  const Error unknown = with([](auto& r) { r.env = "arm7/reach-v2"; });
  EXPECT_EQ(unknown.code(), Errc::not_found);
  EXPECT_THAT(unknown.message(), HasSubstr("did you mean 'arm7/reach-v1'"));
  EXPECT_THAT(with([](auto& r) { r.env = "Pendulum-v1"; }).message(), HasSubstr("those that have one: arm7/reach-v1"));
  EXPECT_THAT(with([](auto& r) { r.cameras = {"above"}; }).message(), HasSubstr("has no camera 'above'; it has front"));
  EXPECT_THAT(with([](auto& r) { r.cameras = {"front", "front"}; }).message(), HasSubstr("named twice"));
  EXPECT_THAT(with([](auto& r) { r.env_options.profile = "droid"; }).message(), HasSubstr("leave `profile` out"));
  EXPECT_THAT(with([](auto& r) { r.image_size = 65; }).message(), HasSubstr("an even side of 16 to 1024"));
  EXPECT_EQ(with([](auto& r) { r.episodes = 0; }).code(), Errc::invalid_argument);
  EXPECT_EQ(entries(), 0);
}

}  // namespace
}  // namespace troupe::workers
