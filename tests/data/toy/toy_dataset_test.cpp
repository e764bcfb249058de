#include "data/toy/toy_dataset.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <gtest/gtest.h>
#include <parquet/arrow/reader.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "data/toy/toy_arm.h"
#include "data/video/clip_decoder.h"
#include "data/video/video_file.h"
#include "image/raster.h"
#include "tests/data/video/video_test_support.h"

namespace troupe::data {
namespace {

using Json = nlohmann::json;

std::vector<Json> json_lines(const std::string& path) {
  std::ifstream in(path);
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::shared_ptr<arrow::Table> read_table(const std::string& path) {
  auto file = arrow::io::ReadableFile::Open(path).ValueOrDie();
  auto reader = parquet::arrow::OpenFile(file, arrow::default_memory_pool()).ValueOrDie();
  std::shared_ptr<arrow::Table> table;
  EXPECT_TRUE(reader->ReadTable(&table).ok());
  return table;
}

std::vector<float> floats_of(const arrow::Table& table, const std::string& column) {
  const auto list = std::static_pointer_cast<arrow::FixedSizeListArray>(table.GetColumnByName(column)->chunk(0));
  const auto values = std::static_pointer_cast<arrow::FloatArray>(list->values());
  return {values->raw_values(), values->raw_values() + values->length()};
}

class ToyDatasetTest : public ::testing::Test {
 protected:
  static constexpr ToyDatasetOptions kOptions{.episodes = 6, .frames = 40, .seed = 11};
  ScratchFolder folder_;
};

TEST_F(ToyDatasetTest, EveryEpisodeHasAsManyFramesAndRowsAsItsLength) {
  const std::string dir = folder_ / "toy";
  write_toy_dataset(dir, kOptions).value();
  std::ifstream in(dir + "/meta/info.json");
  const Json info = Json::parse(in);
  const auto episodes = json_lines(dir + "/meta/episodes.jsonl");
  ASSERT_EQ(episodes.size(), 6u);
  std::int64_t total = 0;
  for (std::size_t e = 0; e < episodes.size(); ++e) {
    SCOPED_TRACE(e);
    const std::int64_t length = episodes[e]["length"];
    EXPECT_GE(length, 35);
    EXPECT_LE(length, 45);
    const std::string name = "episode_00000" + std::to_string(e);
    for (const char* view : {"front", "side"}) {
      const auto video = probe_video(dir + "/videos/chunk-000/observation.images." + view + "/" + name + ".mp4");
      EXPECT_EQ(video->frames, length);
      EXPECT_DOUBLE_EQ(video->fps, 10);
      EXPECT_EQ(video->height, 64);
      EXPECT_FALSE(video->has_b_frames);
    }
    const auto table = read_table(dir + "/data/chunk-000/" + name + ".parquet");
    EXPECT_EQ(table->num_rows(), length);
    for (const auto& [key, feature] : info["features"].items()) {
      if (feature["dtype"] == "video") continue;
      EXPECT_NE(table->GetColumnByName(key), nullptr) << key;
    }
    const auto index = std::static_pointer_cast<arrow::Int64Array>(table->GetColumnByName("index")->chunk(0));
    EXPECT_EQ(index->Value(0), total);
    total += length;
  }
  EXPECT_EQ(info["total_frames"], total);
  EXPECT_EQ(json_lines(dir + "/meta/tasks.jsonl").size(), 8U) << "four colours, two sides";
}

TEST_F(ToyDatasetTest, ActionsAreTheNextStatesAndTheStatisticsAreThoseOfTheTable) {
  const std::string dir = folder_ / "toy";
  ASSERT_TRUE(write_toy_dataset(dir, kOptions));
  const auto stats = json_lines(dir + "/meta/episodes_stats.jsonl");
  for (std::size_t e = 0; e < 6; ++e) {
    const auto table = read_table(dir + "/data/chunk-000/episode_00000" + std::to_string(e) + ".parquet");
    const auto state = floats_of(*table, "observation.state"), action = floats_of(*table, "action");
    ASSERT_EQ(state.size(), action.size());
    for (std::size_t i = 4; i < state.size(); ++i) ASSERT_EQ(action[i - 4], state[i]);
    for (std::size_t d = 0; d < 4; ++d) {
      float low = state[d];
      double sum = 0, largest_step = 0;
      for (std::size_t i = d; i < state.size(); i += 4) {
        low = std::min(low, state[i]);
        sum += static_cast<double>(state[i]);
        if (i >= 4) largest_step = std::max(largest_step, std::abs(static_cast<double>(state[i] - state[i - 4])));
      }
      EXPECT_FLOAT_EQ(stats[e]["stats"]["observation.state"]["min"][d].get<float>(), low);
      EXPECT_NEAR(stats[e]["stats"]["observation.state"]["mean"][d].get<double>(),
                  sum / (static_cast<double>(state.size()) / 4), 1e-9);
      EXPECT_LT(largest_step, 0.55) << "the motion is not smooth in dimension " << d;
      EXPECT_GT(largest_step, 0.01) << "dimension " << d << " does not move";
    }
  }
}

TEST_F(ToyDatasetTest, TheTaskNamesTheBallThatIsPickedUp) {
  for (std::int64_t e = 0; e < 12; ++e) {
    const ToyEpisode episode = plan_toy_episode(5, e, 60);
    EXPECT_EQ(episode.task(), std::string("pick up the ") + kToyColors[static_cast<std::size_t>(e % 4)] +
                                  " ball on the " + (episode.target.x < 0 ? "left" : "right"));
    EXPECT_LT(episode.target.x * episode.other.x, 0) << "the other ball lies on the other side";
    EXPECT_NE(episode.target_color, episode.other_color);
    // shortly before the grasp the fingers' middle is where the target lies
    const auto points = toy_arm_points(episode.states[static_cast<std::size_t>(episode.grasped_at - 1)]);
    EXPECT_NEAR(points[3].x, episode.target.x, 0.02);
    EXPECT_NEAR(points[3].y - 0.14, episode.target.y, 0.02);
    EXPECT_GT(toy_arm_points(episode.states.back())[3].y, points[3].y + 0.2);
    EXPECT_LT(episode.states.back()[3], 0.01f);
  }
}

TEST_F(ToyDatasetTest, TheArmReachesEveryBallOfALargeDataset) {
  for (std::int64_t e = 0; e < 2000; ++e) {
    const ToyEpisode episode = plan_toy_episode(1, e, 32);
    const auto points = toy_arm_points(episode.states[static_cast<std::size_t>(episode.grasped_at)]);
    ASSERT_NEAR(points[3].x, episode.target.x, 0.02) << "episode " << e;
  }
}

TEST_F(ToyDatasetTest, TheSameSeedGivesTheSameBytesAndAnotherSeedOthers) {
  auto other = kOptions;
  other.seed = 12;
  ASSERT_TRUE(write_toy_dataset(folder_ / "a", kOptions));
  ASSERT_TRUE(write_toy_dataset(folder_ / "b", kOptions));
  ASSERT_TRUE(write_toy_dataset(folder_ / "c", other));
  const auto files = files_below(folder_ / "a");
  for (const auto& [name, bytes] : files) EXPECT_TRUE(text_of(folder_ / "b/" + name) == bytes) << name;
  EXPECT_EQ(files.size(), 6u + 6 * 3);
  const std::string table = "/data/chunk-000/episode_000000.parquet";
  EXPECT_NE(text_of((folder_ / "a") + table), text_of((folder_ / "c") + table));
}

TEST_F(ToyDatasetTest, EveryEpisodeThatIsWrittenIsTold) {
  std::vector<std::int64_t> told;
  ASSERT_TRUE(write_toy_dataset(folder_ / "a", {.episodes = 2, .frames = 8, .height = 16, .width = 16},
                                [&](std::int64_t done, std::int64_t of) {
                                  told.insert(told.end(), {done, of});
                                }));
  EXPECT_EQ(told, (std::vector<std::int64_t>{1, 2, 2, 2}));
}

TEST_F(ToyDatasetTest, ASecondCallChangesNothingAndAForeignFolderIsLeftAlone) {
  const std::string dir = folder_ / "toy";
  ASSERT_TRUE(write_toy_dataset(dir, kOptions));
  const auto written = std::filesystem::last_write_time(dir + "/meta/info.json");
  ASSERT_TRUE(write_toy_dataset(dir + "/", kOptions));
  EXPECT_EQ(std::filesystem::last_write_time(dir + "/meta/info.json"), written);
  auto other = kOptions;
  other.seed = 12;
  EXPECT_EQ(write_toy_dataset(dir, other).error().code(), Errc::failed_precondition);
  // no temporary folder stays behind
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
  EXPECT_EQ(write_toy_dataset(folder_ / "odd", {.height = 63}).error().code(), Errc::invalid_argument);
}

TEST_F(ToyDatasetTest, DecodedFramesAreTheDrawnOnes) {
  const std::string dir = folder_ / "toy";
  ASSERT_TRUE(write_toy_dataset(dir, kOptions));
  const auto episodes = json_lines(dir + "/meta/episodes.jsonl");
  const ToyEpisode episode = plan_toy_episode(kOptions.seed, 2, episodes[2]["length"]);
  ClipDecoder decoder;
  const std::int64_t frames[] = {0, 20, 34};
  decoder
      .read(
          dir + "/videos/chunk-000/observation.images.side/episode_000002.mp4", frames,
          [&](std::size_t i, const Rgb8View& got) -> Result<void> {
            Raster raster(64, 64);
            draw_toy_scene(episode, frames[i], ToyCamera::side, 64, 64, raster);
            const auto want = packed(raster.bytes()), have = packed(got);
            double apart = 0;
            for (std::size_t k = 0; k < want.size(); ++k) apart += std::abs(int{want[k]} - int{have[k]});
            EXPECT_LT(apart / static_cast<double>(want.size()), 4.0) << "mean levels apart at frame " << frames[i];
            return {};
          },
          soon())
      .value();
}

}  // namespace
}  // namespace troupe::data
