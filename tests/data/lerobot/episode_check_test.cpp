#include "data/lerobot/episode_check.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "data/lerobot/probe_cache.h"
#include "tests/data/data_test_support.h"
#include "tests/support/folder_files.h"
#include "tests/support/lerobot_writer.h"
#include "tests/support/parquet_edit.h"
#include "tests/support/tiny_dataset.h"

namespace troupe::data {
namespace {

using ::testing::HasSubstr;

class EpisodeCheckTest : public ::testing::Test {
 protected:
  void write(LerobotSet set, VideoProbe with = TinyDataset::probe) {
    folder_ = std::make_unique<LerobotFolder>(std::move(set));
    open(std::move(with));
  }
  /// Opens what is on disk now.
  void open(VideoProbe with = TinyDataset::probe) {
    auto files = LerobotDataset::open(folder_->root(), with);
    const auto modality = read_modality(files->root(), files->info());
    auto columns = resolve_columns(*modality, files->info(), embodiment_);
    source_ = EpisodeSource::make(std::make_shared<const LerobotDataset>(std::move(*files)), std::move(*columns),
                                  std::move(with));
  }
  std::string codes(std::size_t place) {
    std::string out;
    const EpisodeCheck check = check_episode(source_, place);
    for (const auto& p : check.problems) out += p.code + " ";
    for (const auto& p : check.warnings) out += "(" + p.code + ") ";
    return out;
  }
  void expect_problem(std::size_t place, const char* code, const std::string& text, bool alone = true) {
    const EpisodeCheck check = check_episode(source_, place);
    ASSERT_FALSE(check.problems.empty());
    EXPECT_TRUE(!alone || check.problems.size() == 1u);
    EXPECT_EQ(check.problems[0].code, code);
    EXPECT_THAT(check.problems[0].text, HasSubstr(text));
  }
  /// Lists the episodes of another set in the metadata of the one that is open, and opens it again.
  void list_episodes_of(const LerobotSet& set) {
    const LerobotFolder other(set);
    const std::string table = "/meta/episodes/chunk-000/file-000.parquet";
    std::filesystem::copy_file(other.root() + table, folder_->root() + table,
                               std::filesystem::copy_options::overwrite_existing);
    open();
  }
  void set_video(std::size_t e, std::size_t camera, std::int64_t frames, std::int64_t height = 12) {
    std::ofstream(folder_->video_file(e, camera)) << frames << " " << height << " 16\n";
  }

  EmbodimentConfig embodiment_;
  std::unique_ptr<LerobotFolder> folder_;
  EpisodeSource source_;
};

TEST_F(EpisodeCheckTest, EveryVersionGivesTheSameEpisodes) {
  for (const bool images : {false, true}) {
    for (const char* version : {"v2.0", "v2.1", "v3.0"}) {
      SCOPED_TRACE(std::string(version) + (images ? " images" : " videos"));
      const LerobotSet set{.version = version, .images = images};
      write(set);
      for (std::size_t e = 0; e < set.rows.size(); ++e) {
        const EpisodeCheck check = check_episode(source_, e);
        ASSERT_TRUE(check.problems.empty()) << check.problems[0].text;
        EXPECT_TRUE(check.warnings.empty()) << check.warnings[0].text;
        EXPECT_EQ(check.episode.index, static_cast<std::int64_t>(e));
        EXPECT_EQ(check.episode.place, e);
        EXPECT_EQ(check.episode.rows, set.rows[e]);
        EXPECT_EQ(check.episode.length, set.rows[e]);
        EXPECT_EQ(check.episode.view_height, 12);
        EXPECT_EQ(check.episode.view_width, 16);
        ASSERT_EQ(check.episode.labels.size(), 1u);
        EXPECT_EQ(check.episode.labels[0].label, LerobotSet::task(e));
        const auto table = source_.read_table(check.episode, source_.sample_table());
        EXPECT_EQ(table->rows, set.rows[e]);
        EXPECT_EQ(table->vectors.at("action").row(5)[2], set.action(e, 5, 2));
      }
    }
  }
}

TEST_F(EpisodeCheckTest, AVideoOfManyEpisodesIsProbedOnce) {
  std::atomic<int> probes{0};
  write({.video_episodes = 5}, [&](const std::string& path) {
    ++probes;
    return TinyDataset::probe(path);
  });
  std::vector<std::jthread> threads;
  for (std::size_t e = 0; e < 5; ++e) threads.emplace_back([&, e] { EXPECT_EQ(codes(e), ""); });
  threads.clear();
  EXPECT_EQ(probes, 2) << "one for each camera";
}

TEST_F(EpisodeCheckTest, ADefectOfASharedFileIsReportedForEachOfItsEpisodes) {
  write({});
  std::ofstream(folder_->video_file(0, 1)) << "junk\n";
  std::filesystem::resize_file(folder_->data_file(4), 100);
  EXPECT_EQ(codes(0), "D06 ");
  EXPECT_EQ(codes(1), "D06 ");
  EXPECT_EQ(codes(2), "D06 ");
  EXPECT_EQ(codes(3), "");
  EXPECT_EQ(codes(4), "D03 ");
}

TEST_F(EpisodeCheckTest, TheFramesOfAnEpisodeMustExist) {
  write({});
  set_video(0, 0, 94);  // of 96: two short at the end
  EXPECT_EQ(codes(0), "");
  EXPECT_EQ(codes(1), "");
  expect_problem(2, "D07", "29 frames, the episode has 31 rows (episode 2 from frame 65 on; the file has 94)");
}

TEST_F(EpisodeCheckTest, OneMissingFrameAtTheTailShortensTheLastEpisode) {
  write({});
  set_video(0, 0, 95);
  const EpisodeCheck check = check_episode(source_, 2);
  EXPECT_TRUE(check.problems.empty());
  EXPECT_EQ(check.episode.rows, 31);
  EXPECT_EQ(check.episode.length, 30);
}

TEST_F(EpisodeCheckTest, TheRowsOfAnotherEpisodeAreNotTaken) {
  write({});
  list_episodes_of({.indices = {0, 2, 1, 3, 4}});  // the rows have episodes 1 and 2 the other way round
  EXPECT_EQ(codes(0), "");
  expect_problem(1, "D04", "column 'episode_index' is 2 in row 0; 1 is wanted");
}

TEST_F(EpisodeCheckTest, RowsBeyondTheFileAreWrongContents) {
  LerobotSet set;
  write(set);
  set.rows[1] = 30;
  list_episodes_of(set);
  expect_problem(1, "D04", "has 65 rows; 30 rows from row 40 on are wanted", false);
}

TEST_F(EpisodeCheckTest, ACounterThatIsNullOrTextIsFoundWithFileAndRow) {
  for (const char* version : {"v2.1", "v3.0"}) {
    for (const char* column : {"frame_index", "index", "episode_index"}) {
      SCOPED_TRACE(std::string(version) + " " + column);
      write({.version = version});
      const std::string path = folder_->data_file(1);
      const std::int64_t row = folder_->set().is_v3() ? 43 : 3;
      testing::set_null(path, column, row);
      open();
      expect_problem(1, "D04", path + ": column '" + column + "' is null in row " + std::to_string(row));
      testing::set_texts(path, column);
      open();
      expect_problem(1, "D04", path + ": column '" + column + "' has type string, which is no number (row ", false);
      EXPECT_EQ(codes(3), "");
    }
  }
}

TEST_F(EpisodeCheckTest, APageWhoseChecksumIsWrongIsFoundWithFileAndColumn) {
  write({.version = "v2.1"});
  const std::string path = folder_->data_file(1);
  testing::write_whole_table(path, *testing::read_whole_table(path), /*checksums=*/true);
  open();
  EXPECT_EQ(codes(1), "");
  const float value = 104.25F;  // in a page of observation.state, which comes first, and of action
  std::string bytes = testing::text_of(path);
  const std::string wanted(reinterpret_cast<const char*>(&value), sizeof value);
  const auto at = bytes.find(wanted);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
  open();
  expect_problem(1, "D03", path);
  expect_problem(1, "D03", "CRC");
  expect_problem(1, "D03", "column 'observation.state'");
}

TEST_F(EpisodeCheckTest, AWrongLengthLosesItsEpisodeAlone) {
  for (const std::int64_t wrong : {2, 30, 400}) {
    for (const bool images : {false, true}) {
      SCOPED_TRACE(std::to_string(wrong) + (images ? " images" : " videos"));
      write({.rows = {40, 25, 31, 40, 12}, .images = images, .data_episodes = 5, .video_episodes = 5});
      testing::set_integer(folder_->root() + "/meta/episodes/chunk-000/file-000.parquet", "length", 1, wrong);
      open();
      EXPECT_EQ(codes(0), "");
      EXPECT_EQ(codes(1).substr(0, 3), "D04");
      for (const std::size_t e : {2, 3, 4}) EXPECT_EQ(codes(e), "") << e;
      for (const std::size_t e : {2, 3, 4}) {
        const EpisodeCheck check = check_episode(source_, e);
        const auto table = source_.read_table(check.episode, source_.sample_table());
        EXPECT_EQ(table->vectors.at("action").row(5)[2], folder_->set().action(e, 5, 2));
        EXPECT_EQ(source_.images(check.episode, source_.columns.views[0])->first, e == 2 ? 65 : e == 3 ? 96 : 136);
      }
    }
  }
}

TEST_F(EpisodeCheckTest, UnevenAndHiddenFramesAreOnlyAWarning) {
  write({}, [](const std::string& path) {
    auto info = TinyDataset::probe(path);
    if (info && path.find("left") != std::string::npos) {
      info->uneven = true;
      info->hidden = 3;
      info->first_seconds = -0.2;
    }
    return info;
  });
  const EpisodeCheck check = check_episode(source_, 0);
  EXPECT_TRUE(check.problems.empty());
  ASSERT_EQ(check.warnings.size(), 1u);
  EXPECT_EQ(check.warnings[0].code, "D10");
  EXPECT_THAT(check.warnings[0].text,
              HasSubstr("not equally spaced in time, its edit list hides 3 frames, its first frame is shown "
                        "at -0.200000 s"));
}

TEST_F(EpisodeCheckTest, FramesThatTheDecoderRefusesAreFoundBeforehand) {
  for (const auto& [format, expected] : {std::pair{"yuv420p", ""}, std::pair{"yuvj420p", ""}, std::pair{"", ""},
                                         std::pair{"unknown", ""}, std::pair{"yuv444p", "D06 D06 "}}) {
    write({}, [name = std::string(format)](const std::string& path) {
      auto info = TinyDataset::probe(path);
      if (info) info->pix_fmt = name;
      return info;
    });
    EXPECT_EQ(codes(0), expected) << format;
  }
}

TEST_F(EpisodeCheckTest, ACodecWithoutADecoderIsFoundBeforehand) {
  write({}, [](const std::string& path) {
    auto info = TinyDataset::probe(path);
    if (info) info->codec = path.find("left") != std::string::npos ? "none" : "h264";
    return info;
  });
  expect_problem(0, "D06", folder_->video_file(0, 0) + ": it is coded as none, which nothing here decodes");
}

TEST_F(EpisodeCheckTest, TasksOfTheMetadataThatTheRowsContradictAreAWarning) {
  for (const char* version : {"v2.1", "v3.0"}) {
    SCOPED_TRACE(version);
    write({.version = version});
    const std::string path = folder_->data_file(1);
    const std::int64_t row = folder_->set().is_v3() ? 43 : 3;
    testing::set_integer(path, "task_index", row, 0);  // the episode lists the task 1 alone
    open();
    const EpisodeCheck check = check_episode(source_, 1);
    EXPECT_TRUE(check.problems.empty());
    ASSERT_EQ(check.warnings.size(), 1u);
    EXPECT_EQ(check.warnings[0].code, "D02");
    EXPECT_THAT(check.warnings[0].text, HasSubstr(folder_->root() + "/meta/episodes"));
    EXPECT_THAT(check.warnings[0].text, HasSubstr("the tasks of episode 1 lack that of its rows, task_index 0"));
    EXPECT_EQ(codes(2), "");
  }
}

TEST_F(EpisodeCheckTest, ImagesInATableMustBeThereAndTheFirstReadable) {
  LerobotSet set;
  set.images = true;
  set.edit_image = [](std::size_t e, std::int64_t row, std::size_t camera, std::string& png) {
    if (e == 1 && row == 0 && camera == 0) png.resize(png.size() / 2);
    if (e == 2 && row == 7 && camera == 1) png.clear();
  };
  write(set);
  EXPECT_EQ(codes(0), "");
  expect_problem(1, "D06", "column 'observation.images.left' row 40: the image is damaged");
  expect_problem(2, "D06", "column 'observation.images.right' holds no bytes in row 7, only the path 'frame.png'");
  EXPECT_EQ(codes(3), "");
}

TEST_F(EpisodeCheckTest, FilesHashesTellEpisodesOfOneFileApart) {
  write({});
  std::set<std::uint64_t> hashes;
  for (std::size_t e = 0; e < 5; ++e) hashes.insert(check_episode(source_, e).episode.files_hash);
  EXPECT_EQ(hashes.size(), 5u);
}

TEST_F(EpisodeCheckTest, ParaphraseColumnsAreCheckedToo) {
  embodiment_.paraphrase_keys = {"index"};  // a column of integers that are no tasks
  write({});
  EXPECT_EQ(source_.sample_table().integers, (std::vector<std::string>{"task_index", "index"}));
  expect_problem(1, "D11", "column 'index' holds 40, which tasks.parquet does not list", false);
}

TEST(ProbeCacheTest, TheOldestFileIsForgotten) {
  std::map<std::string, int> asked;
  const VideoProbe cached = cached_probe(
      [&](const std::string& path) -> Result<VideoInfo> {
        ++asked[path];
        if (path == "bad") return Error{Errc::data_loss, "bad"};
        return VideoInfo{.frames = 7};
      },
      2);
  for (const char* path : {"a", "bad", "a", "bad", "b", "a"}) (void)cached(path);
  EXPECT_EQ(asked, (std::map<std::string, int>{{"a", 2}, {"b", 1}, {"bad", 1}}));
  EXPECT_EQ(cached("b")->frames, 7);
  EXPECT_EQ(cached("bad").error().code(), Errc::data_loss);
}

TEST(RealEpisodesTest, RecordingsHaveNoProblems) {
  int checked = 0;
  for (const char* name : {"gr1-pick-place", "g1-bottle"}) {
    if (!std::filesystem::exists(shared_data() + "/" + name)) continue;
    auto files = LerobotDataset::open(shared_data() + "/" + name);
    const auto modality = read_modality(files->root(), files->info());
    auto columns = resolve_columns(*modality, files->info(), EmbodimentConfig{});
    const auto source = EpisodeSource::make(std::make_shared<const LerobotDataset>(std::move(*files)), *columns);
    for (std::size_t e = 0; e < source.files->episodes().size(); ++e) {
      const EpisodeCheck check = check_episode(source, e);
      EXPECT_TRUE(check.problems.empty()) << check.problems[0].text;
      for (const auto& w : check.warnings) EXPECT_NE(w.code, "D10") << w.text;
      EXPECT_EQ(check.episode.length, source.files->episodes()[e].length);
      ++checked;
    }
  }
  if (checked == 0) GTEST_SKIP() << "no datasets in " << shared_data();
}

}  // namespace
}  // namespace troupe::data
