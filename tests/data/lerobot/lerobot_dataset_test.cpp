#include "data/lerobot/lerobot_dataset.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "data/lerobot/file_checks.h"
#include "data/lerobot/parquet_table.h"
#include "tests/data/data_test_support.h"
#include "tests/support/folder_files.h"
#include "tests/support/lerobot_writer.h"

namespace troupe::data {
namespace {

LerobotDataset must_open(const std::string& root, const VideoProbe& probe = {}) {
  return LerobotDataset::open(root, probe).value();
}

std::string refusal(const std::string& root) {
  const auto set = LerobotDataset::open(root);
  return set ? "opened" : set.error().message();
}

const TableColumns kColumns = {.vectors = {"observation.state", "action", "timestamp"},
                               .integers = {"frame_index", "episode_index", "index", "task_index"},
                               .optional_vectors = {},
                               .optional_integers = {}};

/// Every row of an episode as numbers.
std::vector<double> rows_of(const LerobotDataset& set, std::size_t place, ParquetFiles& files) {
  const auto source = set.rows(place);
  const auto table = files.read(source->path, kColumns, {source->first_row, set.episodes()[place].length});
  std::vector<double> out;
  for (const auto& [name, column] : table->vectors) out.insert(out.end(), column.values.begin(), column.values.end());
  for (const auto& [name, column] : table->integers) out.insert(out.end(), column.begin(), column.end());
  return out;
}

/// What the writer put behind frame `first` of a file, as (episode, row, camera).
using Frame = std::array<std::int64_t, 3>;

class LerobotFormsTest : public ::testing::TestWithParam<std::string> {
 protected:
  /// Writes a set whose video "files" list their frames.
  LerobotFolder write(LerobotSet set) {
    set.version = GetParam();
    set.write_video = [this](const std::string& path, const std::vector<LerobotSet::Clip>& clips) {
      std::ofstream(path) << "0 0 0\n";
      for (const auto& clip : clips) {
        for (std::int64_t r = 0; r < clip.rows; ++r) {
          frames_[path].push_back(
              {static_cast<std::int64_t>(clip.episode), clip.first_row + r, static_cast<std::int64_t>(clip.camera)});
        }
      }
    };
    return LerobotFolder(std::move(set));
  }
  std::map<std::string, std::vector<Frame>> frames_;
};

TEST_P(LerobotFormsTest, EveryEpisodeHasItsRowsTasksAndFrames) {
  const LerobotFolder files = write({});
  const LerobotSet& wrote = files.set();
  const LerobotDataset set = must_open(files.root());
  EXPECT_EQ(set.info().codebase_version, GetParam());
  EXPECT_EQ(set.cameras(), (std::vector<std::string>{"observation.images.left", "observation.images.right"}));
  EXPECT_EQ(set.tasks().at(1), "put it down");
  EXPECT_TRUE(set.findings().empty()) << set.findings()[0].text;
  ASSERT_EQ(set.episodes().size(), wrote.rows.size());
  ParquetFiles tables;
  std::int64_t from = 0;
  for (std::size_t e = 0; e < wrote.rows.size(); ++e) {
    const EpisodeRecord& record = set.episodes()[e];
    EXPECT_EQ(record.index, static_cast<std::int64_t>(e));
    EXPECT_EQ(record.length, wrote.rows[e]);
    EXPECT_EQ(record.dataset_from, from);
    EXPECT_EQ(record.tasks, std::vector<std::string>{set.tasks().at(LerobotSet::task(e))});
    std::vector<double> want;
    for (const bool action : {true, false}) {
      for (std::int64_t r = 0; r < record.length; ++r) {
        for (std::int64_t d = 0; d < wrote.dims; ++d)
          want.push_back(action ? wrote.action(e, r, d) : wrote.state(e, r, d));
      }
    }
    for (std::int64_t r = 0; r < record.length; ++r)
      want.push_back(static_cast<float>(static_cast<double>(r) / wrote.fps));
    for (std::int64_t r = 0; r < record.length; ++r) want.push_back(static_cast<double>(e));
    for (std::int64_t r = 0; r < record.length; ++r) want.push_back(static_cast<double>(r));
    for (std::int64_t r = 0; r < record.length; ++r) want.push_back(static_cast<double>(from + r));
    want.insert(want.end(), static_cast<std::size_t>(record.length), static_cast<double>(LerobotSet::task(e)));
    EXPECT_EQ(rows_of(set, e, tables), want) << "episode " << e;
    from += record.length;
    for (std::size_t camera = 0; camera < 2; ++camera) {
      const auto source = set.images(e, set.cameras()[camera]);
      EXPECT_TRUE(source->is_video());
      ASSERT_EQ(frames_.count(source->path), 1u) << source->path;
      for (std::int64_t r = 0; r < record.length; ++r) {
        EXPECT_EQ(frames_[source->path].at(static_cast<std::size_t>(source->first + r)),
                  (Frame{static_cast<std::int64_t>(e), r, static_cast<std::int64_t>(camera)}));
      }
    }
  }
}

TEST_P(LerobotFormsTest, EpisodesAreKnownByIndexNotByPlace) {
  const LerobotFolder files = write({.indices = {3, 7, 20, 21, 40}, .reversed = true});
  const LerobotDataset set = must_open(files.root());
  ASSERT_EQ(set.episodes().size(), 5u);
  for (std::size_t e = 0; e < 5; ++e) {
    EXPECT_EQ(set.find(files.set().index_of(e)), e);
    EXPECT_EQ(set.rows(e)->path, files.data_file(e));
    const auto left = set.images(e, "observation.images.left");
    EXPECT_EQ(left->path, files.video_file(e, 0));
    EXPECT_EQ(frames_[left->path].at(static_cast<std::size_t>(left->first)),
              (Frame{static_cast<std::int64_t>(e), 0, 0}));
  }
  EXPECT_EQ(set.find(4), std::nullopt);
}

TEST_P(LerobotFormsTest, DiscardedEpisodesAreLeftOutAndTheOthersStayWhereTheyAre) {
  const LerobotFolder files = write({});
  const LerobotDataset before = must_open(files.root());
  auto info = nlohmann::json::parse(before.info().json);
  info["discarded_episode_indices"] = {0, 3};
  files.write_text("meta/info.json", info.dump());
  const LerobotDataset after = must_open(files.root());
  ASSERT_EQ(after.episodes().size(), 3u);
  EXPECT_TRUE(after.findings().empty()) << after.findings()[0].text;
  for (std::size_t place = 0; place < 3; ++place) {
    const std::size_t old = *before.find(after.episodes()[place].index);
    EXPECT_EQ(after.rows(place)->first_row, before.rows(old)->first_row);
    EXPECT_EQ(after.images(place, "observation.images.right")->first,
              before.images(old, "observation.images.right")->first);
  }
}

TEST_P(LerobotFormsTest, ImagesInTheTableAreAnImageSource) {
  const LerobotFolder files = write({.images = true});
  const LerobotDataset set = must_open(files.root());
  EXPECT_EQ(set.cameras().size(), 2u);
  for (std::size_t e = 0; e < set.episodes().size(); ++e) {
    const auto source = set.images(e, "observation.images.right");
    EXPECT_FALSE(source->is_video());
    EXPECT_EQ(source->column, "observation.images.right");
    EXPECT_EQ(source->path, set.rows(e)->path);
    EXPECT_EQ(source->first, set.rows(e)->first_row);
  }
}

TEST_P(LerobotFormsTest, WhatIsNoCameraIsRefusedWithTheCamerasThereAre) {
  const LerobotFolder files = write({});
  const LerobotDataset set = must_open(files.root());
  const auto source = set.images(0, "action");
  EXPECT_EQ(source.error().code(), Errc::invalid_argument);
  EXPECT_THAT(source.error().message(),
              ::testing::HasSubstr("'action' is no camera; the dataset has observation.images.left"));
}

TEST_P(LerobotFormsTest, WrongCountsAreFindings) {
  const LerobotFolder files = write({});
  auto info = nlohmann::json::parse(must_open(files.root()).info().json);
  info["total_frames"] = 5;
  files.write_text("meta/info.json", info.dump());
  const LerobotDataset set = must_open(files.root());
  ASSERT_EQ(set.findings().size(), 1u);
  EXPECT_EQ(set.findings()[0].code, "D02");
  EXPECT_THAT(set.findings()[0].text, ::testing::HasSubstr("total_frames 5; 148 were found"));
}

/// info.json of a set with one text replaced.
void edit_info(const LerobotFolder& files, const std::string& from, const std::string& to) {
  std::string text = testing::text_of(files.root() + "/meta/info.json");
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  files.write_text("meta/info.json", text);
}

TEST_P(LerobotFormsTest, FilesThatAreNotEachOnesOwnAreRefused) {
  const std::string info = "/meta/info.json: ";
  {
    const LerobotFolder files = write({});
    edit_info(files, "{video_key}", "observation.images.left");
    EXPECT_THAT(refusal(files.root()), ::testing::HasSubstr(files.root() + info + "video_path is 'videos/"));
    EXPECT_THAT(refusal(files.root()), ::testing::HasSubstr("of camera 'observation.images.left' and "));
    EXPECT_THAT(refusal(files.root()), ::testing::HasSubstr(": name {video_key} in it"));
  }
  {
    const LerobotFolder files = write({.cameras = {"left"}});
    edit_info(files, "{video_key}", "observation.images.left");
    EXPECT_EQ(refusal(files.root()), "opened") << "one camera needs no name";
  }
  const LerobotFolder files = write({.files_per_chunk = 9});
  const bool v3 = files.set().is_v3();
  edit_info(files, v3 ? "file-{file_index:03d}.parquet" : "{episode_index:06d}.parquet",
            v3 ? "0.parquet" : "0.parquet");
  EXPECT_THAT(
      refusal(files.root()),
      ::testing::HasSubstr(v3 ? "file 0 of chunk 0 and file 1 of chunk 0 are one file, data/chunk-000/0.parquet: "
                                "name {chunk_index} and {file_index} in it"
                              : "episode 0 and episode 1 are one file, data/chunk-000/episode_0.parquet: name "
                                "{episode_index} in it"));
}

TEST_P(LerobotFormsTest, WhatIsWrongWithATemplateNamesItsFile) {
  const LerobotFolder files = write({});
  edit_info(files, "_index:0", "_index:x0");
  const LerobotDataset set = must_open(files.root());
  EXPECT_THAT(set.rows(0).error().message(),
              ::testing::HasSubstr(files.root() + "/meta/info.json: data_path: path template 'data/"));
  EXPECT_THAT(set.images(0, "observation.images.left").error().message(),
              ::testing::HasSubstr(files.root() + "/meta/info.json: video_path: path template 'videos/"));
}

TEST_P(LerobotFormsTest, ColumnsThatFeaturesLackOrCallOtherwiseAreFindings) {
  const LerobotFolder files = write({});
  edit_info(files, "\"task_index\"", "\"other_index\"");
  edit_info(files, R"("action": {"dtype": "float32")", R"("action": {"dtype": "int64")");
  const LerobotDataset set = must_open(files.root());
  ASSERT_EQ(set.findings().size(), 2u);
  const std::string info = files.root() + "/meta/info.json";
  for (const DatasetProblem& finding : set.findings()) {
    EXPECT_EQ(finding.code, "D02");
    EXPECT_EQ(finding.path, info);
  }
  EXPECT_THAT(set.findings()[0].text, ::testing::HasSubstr(info + " says that 'action' is int64; its column in " +
                                                           files.data_file(0) + " is list<"));
  EXPECT_THAT(set.findings()[1].text,
              ::testing::HasSubstr(info + ": features do not list task_index, which " + files.data_file(0) +
                                   " has; what is not listed is not read"));
}

TEST_P(LerobotFormsTest, AStepFilterHoldsWholeNumbers) {
  const LerobotFolder files = write({});
  files.write_text("meta/step_filter.jsonl", "{\"episode_index\": 1, \"step_indices\": [2, 3.5]}\n");
  EXPECT_THAT(read_step_filter(files.root()).error().message(),
              ::testing::HasSubstr("/meta/step_filter.jsonl line 1: step_indices is 3.5; a whole number is wanted"));
}

TEST_P(LerobotFormsTest, AFileOfMetadataHasAnEnd) {
  const LerobotFolder files = write({});
  std::filesystem::resize_file(files.root() + "/meta/info.json", static_cast<std::uintmax_t>(kMostTextBytes) + 1);
  EXPECT_THAT(refusal(files.root()),
              ::testing::HasSubstr("/meta/info.json has 268435457 bytes; of a file of metadata"));
}

TEST_P(LerobotFormsTest, MetadataFilesAreThoseThatExist) {
  const LerobotFolder files = write({});
  files.write_text("meta/step_filter.jsonl", "");
  const auto names = must_open(files.root()).metadata_files();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) EXPECT_TRUE(std::filesystem::exists(files.root() + "/" + name)) << name;
  const bool v3 = files.set().is_v3();
  const std::set<std::string> found(names.begin(), names.end());
  EXPECT_EQ(found.count(v3 ? "meta/episodes/chunk-000/file-000.parquet" : "meta/episodes.jsonl"), 1u);
  EXPECT_EQ(found.count(v3 ? "meta/tasks.parquet" : "meta/tasks.jsonl"), 1u);
  EXPECT_EQ(names.size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(Versions, LerobotFormsTest, ::testing::Values("v2.0", "v2.1", "v3.0"),
                         [](const auto& given) { return given.param.substr(0, 2) + "_" + given.param.substr(3); });

/// A probe that says how many frames every file has.
VideoProbe frames_of(std::int64_t frames) {
  return [frames](const std::string&) {
    return Result<VideoInfo>(VideoInfo{.width = 16, .height = 12, .frames = frames, .fps = 10});
  };
}

std::vector<std::int64_t> first_frames(const LerobotDataset& set) {
  std::vector<std::int64_t> out;
  for (std::size_t e = 0; e < set.episodes().size(); ++e)
    out.push_back(set.images(e, "observation.images.left")->first);
  return out;
}

/// Files hold 40 + 25 + 31 and 40 + 12 frames. `frames` of 25 frames at 10/s, times of 0, 4, 6.5 and 0, 4 s.
class TimesTest : public ::testing::Test {
 protected:
  LerobotDataset open(const std::function<void(std::size_t, double&, double&)>& shift, std::int64_t frames) {
    LerobotSet wanted;
    wanted.cameras = {"left"};
    wanted.shift = [shift](std::size_t e, std::size_t, double& from, double& to) { shift(e, from, to); };
    files_.push_back(std::make_unique<LerobotFolder>(wanted));
    return must_open(files_.back()->root(), frames_of(frames));
  }
  std::vector<std::unique_ptr<LerobotFolder>> files_;
  const std::vector<std::int64_t> by_lengths_ = {0, 40, 65, 0, 40};
};

TEST_F(TimesTest, DriftBelowHalfAFrameIsNothing) {
  const auto set = open([](std::size_t, double& from, double& to) { from += 0.049, to += 0.049; }, 96);
  EXPECT_TRUE(set.findings().empty());
  EXPECT_EQ(first_frames(set), by_lengths_);
}

TEST_F(TimesTest, DriftBeyondThatIsReportedAndTheLengthsCount) {
  const auto set =
      open([](std::size_t e, double& from, double& to) { from += e == 2 ? 0.06 : 0, to += e == 2 ? 0.06 : 0; }, 96);
  ASSERT_EQ(set.findings().size(), 1u);
  EXPECT_EQ(set.findings()[0].code, "D15");
  EXPECT_EQ(set.findings()[0].path, files_[0]->video_file(2, 0));
  EXPECT_THAT(
      set.findings()[0].text,
      ::testing::HasSubstr("episode 2 begins at 6.560000 s, which is frame 65.60; the lengths before it end at 65"));
  EXPECT_THAT(set.findings()[0].text,
              ::testing::HasSubstr("the file has 96 frames, its episodes 96 rows; the lengths are used"));
  EXPECT_EQ(first_frames(set), by_lengths_);
}

TEST_F(TimesTest, FramesThatNoEpisodeClaimsAreSkippedWhenTheFileHasThem) {
  // an episode of 10 frames was deleted from the metadata, but not from the video
  const auto set =
      open([](std::size_t e, double& from, double& to) { from += e == 2 ? 1 : 0, to += e == 2 ? 1 : 0; }, 106);
  ASSERT_EQ(set.findings().size(), 1u);
  EXPECT_THAT(set.findings()[0].text, ::testing::HasSubstr("the times are used"));
  EXPECT_EQ(first_frames(set), (std::vector<std::int64_t>{0, 40, 75, 0, 40}));
}

TEST_F(TimesTest, AMissingLastFrameOfAnEpisodeMovesThoseBehindIt) {
  const auto set = open(
      [](std::size_t e, double& from, double& to) { from -= e == 2 ? 0.1 : 0, to -= e > 0 && e < 3 ? 0.1 : 0; }, 95);
  ASSERT_EQ(set.findings().size(), 1u);
  EXPECT_EQ(first_frames(set), (std::vector<std::int64_t>{0, 40, 64, 0, 40}));
  EXPECT_EQ(set.video_span(1, "observation.images.left")->frames, 24);
  EXPECT_EQ(set.video_span(2, "observation.images.left")->frames, -1);
}

TEST_F(TimesTest, RangesThatOverlapAreReported) {
  const auto set = open([](std::size_t e, double&, double& to) { to += e == 0 ? 0.2 : 0; }, 96);
  ASSERT_EQ(set.findings().size(), 1u);
  EXPECT_THAT(set.findings()[0].text,
              ::testing::HasSubstr("episode 1 begins at 4.000000 s, before the one in front of it ends (4.200000 s)"));
  EXPECT_EQ(first_frames(set), by_lengths_);
}

TEST_F(TimesTest, TimesThatDoNotFitIntoTheFileAreNotUsed) {
  const auto set =
      open([](std::size_t e, double& from, double& to) { from += e == 2 ? 100 : 0, to += e == 2 ? 100 : 0; }, 90);
  ASSERT_EQ(set.findings().size(), 1u);
  EXPECT_EQ(first_frames(set), by_lengths_);
}

TEST(LerobotDatasetTest, TheTaskColumnIsFoundUnderEitherName) {
  for (const char* name : {"task", "__index_level_0__", "anything"}) {
    const LerobotFolder files(LerobotSet{.task_column = name});
    EXPECT_EQ(must_open(files.root()).tasks().at(0), "Lift the Cup") << name;
  }
}

TEST(LerobotDatasetTest, OneRowGroupForAFileIsDecodedOnce) {
  const LerobotSet wanted{.data_episodes = 5, .row_group_per_episode = false};
  const LerobotFolder files(wanted);
  const LerobotDataset set = must_open(files.root());
  ParquetFiles tables;
  for (std::size_t e = 0; e < 5; ++e) {
    const auto rows = set.rows(e);
    const auto table = tables.read(rows->path, kColumns, {rows->first_row, set.episodes()[e].length});
    EXPECT_EQ(table->vectors.at("observation.state").row(3)[1], wanted.state(e, 3, 1));
  }
  EXPECT_EQ(tables.counters().opened, 1);
  EXPECT_EQ(tables.counters().decoded, 7) << "one decoding a column";
}

TEST(LerobotDatasetTest, AReplacedTableIsReadAnew) {
  LerobotSet wanted;
  const LerobotFolder first(wanted);
  wanted.rows[0] = 39;
  const LerobotFolder second(wanted);
  ParquetFiles tables(1);
  EXPECT_EQ(tables.read(first.data_file(0), kColumns)->rows, 65);
  std::filesystem::copy_file(second.data_file(0), first.data_file(0),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(tables.read(first.data_file(0), kColumns)->rows, 64);
  EXPECT_EQ(tables.counters().opened, 2);
}

TEST(LerobotDatasetTest, BrokenMetadataNameTheirFile) {
  const LerobotFolder files{LerobotSet{}};
  const std::string table = files.root() + "/meta/episodes/chunk-000/file-000.parquet";
  const std::string tasks = files.root() + "/meta/tasks.parquet";
  std::filesystem::resize_file(tasks, 40);
  EXPECT_THAT(refusal(files.root()), ::testing::HasSubstr(tasks));
  std::filesystem::remove(tasks);
  EXPECT_THAT(refusal(files.root()), ::testing::HasSubstr(tasks + " does not exist"));
  std::filesystem::resize_file(table, 200);
  EXPECT_THAT(refusal(files.root()), ::testing::HasSubstr(table));
  std::filesystem::remove(table);
  EXPECT_THAT(refusal(files.root()), ::testing::HasSubstr("/meta/episodes holds no Parquet file"));
}

TEST(LerobotDatasetTest, AnEpisodesTableWithoutItsColumnsIsRefused) {
  const LerobotFolder files{LerobotSet{}};
  const std::string table = files.root() + "/meta/episodes/chunk-000/file-000.parquet";
  std::filesystem::copy_file(files.root() + "/meta/tasks.parquet", table,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(files.root()), ::testing::HasSubstr(table + " has no column 'episode_index'"));
}

TEST(LerobotDatasetTest, AnEpisodeListedTwiceIsRefused) {
  const LerobotFolder files(LerobotSet{.indices = {0, 1, 1, 2, 3}});
  EXPECT_THAT(refusal(files.root()), ::testing::HasSubstr("/meta/episodes lists episode 1 twice"));
}

TEST(LerobotDatasetTest, RealRecordingsAreRead) {
  int read = 0;
  for (const char* name : {"gr1-pick-place", "g1-bottle"}) {
    const std::string root = shared_data() + "/" + name;
    if (!std::filesystem::exists(root)) continue;
    const LerobotDataset set = must_open(root + "/");
    EXPECT_EQ(set.root(), root);
    EXPECT_EQ(static_cast<std::int64_t>(set.episodes().size()), set.info().total_episodes);
    for (std::size_t place = 0; place < set.episodes().size(); ++place) {
      EXPECT_TRUE(std::filesystem::exists(set.rows(place)->path));
      EXPECT_EQ(read_parquet_facts(set.rows(place)->path)->rows, set.episodes()[place].length);
    }
    ++read;
  }
  if (read == 0) GTEST_SKIP() << "no datasets in " << shared_data();
}

TEST(LerobotDatasetTest, LerobotsOwnConversionsKeepEveryEpisode) {
  const std::string folder = golden_data() + "/lerobot";
  if (!std::filesystem::exists(folder + "/v21")) GTEST_SKIP() << "no " << folder;
  const LerobotDataset before = must_open(folder + "/v21");
  int converted = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!std::filesystem::exists(entry.path() / "meta/info.json") || entry.path().filename() == "v21") continue;
    SCOPED_TRACE(entry.path().string());
    const LerobotDataset set = must_open(entry.path().string());
    ++converted;
    EXPECT_TRUE(set.findings().empty()) << set.findings()[0].text;
    EXPECT_EQ(set.tasks(), before.tasks());
    ASSERT_EQ(set.episodes().size(), before.episodes().size());
    std::map<std::string, std::int64_t> next_row, next_frame;
    for (std::size_t e = 0; e < set.episodes().size(); ++e) {
      EXPECT_EQ(set.episodes()[e].length, before.episodes()[e].length);
      EXPECT_EQ(set.episodes()[e].tasks, before.episodes()[e].tasks);
      EXPECT_EQ(set.episodes()[e].dataset_from, before.episodes()[e].dataset_from);
      const auto rows = set.rows(e);
      EXPECT_EQ(rows->first_row, next_row[rows->path]);
      next_row[rows->path] += set.episodes()[e].length;
      for (const std::string& camera : set.cameras()) {
        const auto images = set.images(e, camera);
        if (!images) continue;  // info.json lists a camera that was never recorded
        EXPECT_EQ(images->first, next_frame[images->path]);
        next_frame[images->path] += set.episodes()[e].length;
      }
    }
    EXPECT_FALSE(next_frame.empty());
  }
  EXPECT_GT(converted, 0);
}

TEST(LerobotDatasetTest, TablesOfBothVersionsHaveTheSameRows) {
  const std::string folder = golden_data() + "/lerobot";
  if (!std::filesystem::exists(folder + "/v30_default/data")) GTEST_SKIP() << "no " << folder;
  const LerobotDataset before = must_open(folder + "/v21"), after = must_open(folder + "/v30_default");
  TableColumns columns;
  for (const LerobotFeature& f : before.info().features) {
    if (f.is_camera() || f.dtype == "string") continue;
    (f.is_vector() ? columns.vectors : columns.integers).push_back(f.name);
  }
  ASSERT_GE(columns.vectors.size(), 2u);
  ParquetFiles tables;
  for (std::size_t e = 0; e < before.episodes().size(); ++e) {
    const auto a = tables.read(before.rows(e)->path, columns);
    const auto b = tables.read(after.rows(e)->path, columns, {after.rows(e)->first_row, after.episodes()[e].length});
    for (const auto& [name, column] : a->vectors) EXPECT_EQ(column.values, b->vectors.at(name).values) << name;
    for (const auto& [name, column] : a->integers) EXPECT_EQ(column, b->integers.at(name)) << name;
  }
}

}  // namespace
}  // namespace troupe::data
