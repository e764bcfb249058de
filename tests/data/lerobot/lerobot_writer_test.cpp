#include "data/lerobot/lerobot_writer.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/parquet_table.h"
#include "data/video/video_file.h"
#include "tests/support/scratch_folder.h"

namespace troupe::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

LerobotDescription description(std::vector<std::string> cameras = {}) {
  return {.robot_type = "plotter",
          .fps = 20,
          .columns = {{.name = "observation.state", .width = 2, .names = {"x", "y"}},
                      {.name = "next.reward"},
                      {.name = "next.done", .type = LerobotColumn::Type::boolean}},
          .cameras = std::move(cameras),
          .height = 16,
          .width = 32};
}

class LerobotWriterTest : public ::testing::Test {
 protected:
  LerobotWriter begin(LerobotDescription d = description()) const {
    return LerobotWriter::begin(folder_.path(), std::move(d)).value();
  }
  std::vector<nlohmann::json> lines(const std::string& name) const {
    std::ifstream in(folder_ / name);
    std::vector<nlohmann::json> all;
    for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }
  nlohmann::json info() const {
    std::ifstream in(folder_ / "meta/info.json");
    return nlohmann::json::parse(in);
  }

  /// Two episodes, three rows and one, of the tasks "b" and "a".
  void write_two() const {
    LerobotWriter writer = begin();
    const std::int64_t b = writer.task_index("draw b"), a = writer.task_index("draw a");
    ASSERT_TRUE(writer.append({.length = 3, .task_index = b, .columns = {states_, rewards_, done_}}));
    ASSERT_TRUE(writer.append(
        {.length = 1,
         .task_index = a,
         .columns = {std::span(states_).first(2), std::span(rewards_).first(1), std::span(done_).first(1)}}));
    ASSERT_TRUE(writer.finish());
    EXPECT_EQ(writer.frames(), 4);
  }

  Floats states_ = {0, 1, 0.25F, 2, 0.5F, 3}, rewards_ = {1, 2, 6}, done_ = {0, 0, 1};
  ScratchFolder folder_;
};

TEST_F(LerobotWriterTest, TheReaderFindsWhatWasWritten) {
  write_two();
  const auto dataset = LerobotDataset::open(folder_.path());
  EXPECT_TRUE(dataset->findings().empty());
  EXPECT_EQ(dataset->info().robot_type, "plotter");
  ASSERT_EQ(dataset->episodes().size(), 2u);
  EXPECT_THAT(dataset->episodes()[0].tasks, ElementsAre("draw b"));
  EXPECT_EQ(dataset->tasks().at(1), "draw a");
  const auto table =
      read_parquet(dataset->rows(0)->path, {.vectors = {"observation.state", "next.reward", "timestamp"},
                                            .integers = {"next.done", "frame_index", "index", "task_index"},
                                            .optional_vectors = {},
                                            .optional_integers = {}});
  EXPECT_THAT(table->vectors.at("observation.state").values, ElementsAre(0, 1, 0.25, 2, 0.5, 3));
  EXPECT_THAT(table->vectors.at("next.reward").values, ElementsAre(1, 2, 6));
  EXPECT_EQ(table->vectors.at("timestamp").values.back(), static_cast<double>(2 / 20.0F));
  EXPECT_THAT(table->integers.at("next.done"), ElementsAre(0, 0, 1));
  EXPECT_THAT(table->integers.at("index"), ElementsAre(0, 1, 2));
}

TEST_F(LerobotWriterTest, RowsAreNumberedThroughTheDataset) {
  write_two();
  const auto table = read_parquet(folder_ / "data/chunk-000/episode_000001.parquet",
                                  {.vectors = {},
                                   .integers = {"frame_index", "episode_index", "index", "task_index"},
                                   .optional_vectors = {},
                                   .optional_integers = {}});
  EXPECT_THAT(table->integers.at("frame_index"), ElementsAre(0));
  EXPECT_THAT(table->integers.at("episode_index"), ElementsAre(1));
  EXPECT_THAT(table->integers.at("index"), ElementsAre(3));
  EXPECT_THAT(table->integers.at("task_index"), ElementsAre(1));
}

TEST_F(LerobotWriterTest, StatisticsAreThoseOfTheEpisode) {
  write_two();
  const nlohmann::json stats = lines("meta/episodes_stats.jsonl").at(0).at("stats");
  EXPECT_EQ(stats["observation.state"]["max"], nlohmann::json({0.5, 3}));
  EXPECT_EQ(stats["next.reward"]["mean"], nlohmann::json({3.0}));
  EXPECT_NEAR(stats["next.reward"]["std"][0].get<double>(), std::sqrt(14.0 / 3), 1e-12);
  EXPECT_EQ(stats["next.done"]["max"], nlohmann::json::array({true}));
  EXPECT_EQ(stats["next.done"]["count"], nlohmann::json({3}));
  // 1, 2, 6 (mean 3, std as above): positions p * 2
  EXPECT_NEAR(stats["next.reward"]["q01"][0].get<double>(), 1.02, 1e-6);
  EXPECT_NEAR(stats["next.reward"]["q50"][0].get<double>(), 2, 1e-6);
  EXPECT_NEAR(stats["next.reward"]["q99"][0].get<double>(), 5.92, 1e-6);
  for (const char* q : {"q01", "q10", "q90", "q99"}) EXPECT_EQ(stats["observation.state"][q].size(), 2u);
}

TEST_F(LerobotWriterTest, WithoutCamerasNoVideoIsNamed) {
  write_two();
  EXPECT_EQ(info()["video_path"], nullptr);
  EXPECT_EQ(info()["total_videos"], 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "videos"));
}

TEST_F(LerobotWriterTest, FeaturesSayTypesAndNames) {
  write_two();
  const nlohmann::json features = info()["features"];
  EXPECT_EQ(features["observation.state"]["names"]["motors"], nlohmann::json({"x", "y"}));
  EXPECT_EQ(features["next.reward"], (nlohmann::json{{"dtype", "float32"}, {"shape", {1}}, {"names", nullptr}}));
  EXPECT_EQ(features["next.done"]["dtype"], "bool");
}

TEST_F(LerobotWriterTest, EveryCameraIsAVideoOfAsManyFramesAsRows) {
  LerobotWriter writer = begin(description({"observation.images.front", "observation.images.top"}));
  const std::vector<std::uint8_t> grey(16 * 32 * 3, 128);
  writer.task_index("draw");
  ASSERT_TRUE(writer.append(
      {.length = 3, .columns = {states_, rewards_, done_}, .image = [&](std::size_t, std::int64_t) -> Result<Rgb8View> {
         return Rgb8View{.data = grey.data(), .height = 16, .width = 32, .stride = 96};
       }}));
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(info()["total_videos"], 2);
  for (const char* camera : {"front", "top"}) {
    const auto video =
        probe_video(folder_ / (std::string("videos/chunk-000/observation.images.") + camera + "/episode_000000.mp4"));
    EXPECT_EQ(video->frames, 3);
    EXPECT_EQ(video->width, 32);
  }
  const nlohmann::json stats = lines("meta/episodes_stats.jsonl").at(0).at("stats");
  EXPECT_NEAR(stats["observation.images.top"]["mean"][0][0][0].get<double>(), 128 / 255.0, 1e-9);
}

TEST_F(LerobotWriterTest, AnImageOfAnotherSizeIsRefused) {
  LerobotWriter writer = begin(description({"observation.images.front"}));
  const std::vector<std::uint8_t> grey(16 * 16 * 3, 128);
  writer.task_index("draw");
  const auto appended = writer.append(
      {.length = 3, .columns = {states_, rewards_, done_}, .image = [&](std::size_t, std::int64_t) -> Result<Rgb8View> {
         return Rgb8View{.data = grey.data(), .height = 16, .width = 16, .stride = 48};
       }});
  EXPECT_THAT(appended.error().message(), HasSubstr("16x16 pixels; the dataset has 32x16"));
}

TEST_F(LerobotWriterTest, AnEpisodeThatDoesNotFitTheDescriptionIsRefused) {
  LerobotWriter writer = begin();
  const auto no_task = writer.append({.length = 3, .columns = {states_, rewards_, done_}});
  EXPECT_THAT(no_task.error().message(), HasSubstr("task 0; there are 0"));
  writer.task_index("draw");
  const auto uneven = writer.append({.length = 2, .columns = {states_, rewards_, done_}});
  EXPECT_THAT(uneven.error().message(), HasSubstr("column observation.state has 6 numbers for 2 rows; wanted 4"));
  EXPECT_FALSE(writer.append({.length = 3, .columns = {states_, rewards_}}));
  EXPECT_FALSE(writer.append({.length = 0, .columns = {{}, {}, {}}}));
}

TEST_F(LerobotWriterTest, ADatasetWithoutEpisodesIsRefused) {
  EXPECT_EQ(begin().finish().error().code(), Errc::failed_precondition);
}

TEST_F(LerobotWriterTest, ADescriptionThatCannotBeIsRefused) {
  auto odd = description({"observation.images.front"});
  odd.height = 15;
  auto unnamed = description();
  unnamed.columns[0].names.pop_back();
  auto still = description();
  still.fps = 0;
  for (const auto& d : {odd, unnamed, still}) {
    EXPECT_EQ(LerobotWriter::begin(folder_.path(), d).error().code(), Errc::invalid_argument);
  }
}

}  // namespace
}  // namespace troupe::data
