// What `troupe stats` finds where metadata and files do not agree, and how it says it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "data/dataset.h"
#include "data/health/health_check.h"
#include "data/health/html.h"
#include "data/health/report_json.h"
#include "data/health/report_text.h"
#include "tests/support/folder_files.h"
#include "tests/support/lerobot_writer.h"
#include "tests/support/parquet_edit.h"
#include "tests/support/tiny_dataset.h"

namespace troupe::data {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using OrderedJson = nlohmann::ordered_json;
namespace fs = std::filesystem;

class FindingsTest : public ::testing::Test {
 protected:
  static constexpr const char* kLeft = "observation.images.left";

  void write(LerobotSet set) { files_ = std::make_unique<LerobotFolder>(std::move(set)); }
  HealthReport check() const {
    HealthOptions options;
    options.data = files_->root();
    options.window = {.chunks = 2, .macro_stride = 4, .action_horizon = 4, .video_offsets = {0, 2}};
    options.horizon = 4;
    options.probe = TinyDataset::probe;
    options.index.path = index_.path();
    options.threads = 2;
    return check_health(options).value();
  }
  static std::vector<std::string> texts(const HealthReport& r, FindingLevel level, const std::string& code) {
    std::vector<std::string> out;
    for (const HealthFinding& f : r.findings) {
      if (f.level == level && f.code == code) out.push_back(f.sentence());
    }
    return out;
  }
  static std::vector<std::string> problems(const HealthReport& r, const std::string& code) {
    return texts(r, FindingLevel::problem, code);
  }
  static std::vector<std::string> warnings(const HealthReport& r, const std::string& code) {
    return texts(r, FindingLevel::warning, code);
  }
  void edit_info(const std::function<void(OrderedJson&)>& edit) const {
    OrderedJson json = OrderedJson::parse(testing::text_of(files_->root() + "/meta/info.json"));
    edit(json);
    files_->write_text("meta/info.json", json.dump());
  }
  void spoil(const std::string& path, const std::string& bytes) const {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  Result<std::shared_ptr<const Dataset>> open() const {
    DatasetSpec spec;
    spec.path = files_->root();
    spec.embodiment.layout = "horizontal";
    spec.embodiment.prompt = "none";
    spec.window = {.chunks = 2, .macro_stride = 4, .action_horizon = 4, .video_offsets = {0, 2}};
    spec.image.height = 6;
    spec.image.width = 8;
    spec.max_action_dim = 5;
    spec.index.build = "never";
    return Dataset::open(spec, TinyDataset::options());
  }

  std::unique_ptr<LerobotFolder> files_;
  ScratchFolder index_;
};

TEST_F(FindingsTest, ACameraWhoseOnlyFileOfV3IsGoneIsOneProblemThatNamesTheFile) {
  write({.video_episodes = 5});
  fs::remove(files_->video_file(0, 1));
  const HealthReport r = check();
  const auto found = problems(r, "D06");
  ASSERT_EQ(found.size(), 1u) << stats_text(r);
  EXPECT_THAT(found[0], HasSubstr(files_->video_file(0, 1) + " does not exist"));
  EXPECT_THAT(found[0], HasSubstr("episode 0 and 4 more: 1, 2, 3, 4"));
  EXPECT_EQ(r.count(FindingLevel::problem), 1);
  EXPECT_EQ(r.usable_episodes(), 0);
  const OrderedJson json = OrderedJson::parse(report_json(r));
  EXPECT_EQ(json["defects"]["D06"], 1);
  EXPECT_EQ(json["findings"][0]["further_episodes"].size(), 4u);
  const auto refused = open();
  EXPECT_THAT(refused.error().message(), HasSubstr("(the same for 4 more episodes)"));
}

TEST_F(FindingsTest, TablesHaveStatisticsWhereVideosAreAbsent) {
  for (const char* version : {"v2.1", "v3.0"}) {
    SCOPED_TRACE(version);
    write({.version = version});
    const std::string whole = stats_json(check(), true);
    fs::remove_all(files_->root() + "/videos");
    const HealthReport r = check();
    EXPECT_GT(problems(r, "D06").size(), 0u);
    EXPECT_EQ(r.usable_episodes(), 0);
    EXPECT_EQ(r.table_rows, 148);
    EXPECT_EQ(stats_json(r, true), whole);
    EXPECT_EQ(r.view_height, 12) << "as info.json says";
    EXPECT_FALSE(r.episodes[0].content.empty());
  }
}

TEST_F(FindingsTest, WrongTotalsAreNamed) {
  write({.version = "v2.1"});
  edit_info([](OrderedJson& json) {
    json["total_episodes"] = 50;
    json["total_frames"] = 149;
    json["total_tasks"] = 3;
    json["total_videos"] = 9;
    json["total_chunks"] = 7;
  });
  const auto found = warnings(check(), "D02");
  for (const char* text :
       {"total_episodes 50; 5 were found", "total_frames 149; 148 were found", "total_tasks 3; 2 were found",
        "total_videos 9; 10 were found", "total_chunks 7; 1 were found"})
    EXPECT_THAT(found, Contains(HasSubstr(text)));
}

TEST_F(FindingsTest, AGitLfsPointerIsNamedWithTheCommandThatFetchesIt) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d"
      "17e2393\nsize 12345\n";
  write({.version = "v2.1"});
  fs::create_directory(files_->root() + "/.git");
  const auto command = [&](const std::string& path) {
    return path + " is a Git LFS pointer, not the file (12345 bytes): fetch it with git -C '" + files_->root() +
           "' lfs pull --include '" + path.substr(files_->root().size() + 1) + "'";
  };
  spoil(files_->video_file(1, 0), pointer);
  EXPECT_THAT(problems(check(), "D06"), ElementsAre(command(files_->video_file(1, 0))));
  spoil(files_->data_file(2), pointer);
  EXPECT_THAT(problems(check(), "D03"), ::testing::ElementsAre(command(files_->data_file(2))));
  spoil(files_->root() + "/meta/info.json", pointer);
  EXPECT_THAT(problems(check(), "D01"), ::testing::ElementsAre(command(files_->root() + "/meta/info.json")));
  EXPECT_THAT(open().error().message(), HasSubstr("git -C"));
}

TEST_F(FindingsTest, AWrongTemplateIsOneProblemThatSaysTheRightOne) {
  write({.version = "v2.1"});
  edit_info([](OrderedJson& json) { json["data_path"] = "tables/{episode_index:06d}.parquet"; });
  auto r = check();
  EXPECT_EQ(r.count(FindingLevel::problem), 1) << stats_text(r);
  EXPECT_THAT(problems(r, "D01"),
              Contains(HasSubstr("data_path is 'tables/{episode_index:06d}.parquet', by which no table is found; "
                                 "'data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet' finds them")));
  EXPECT_EQ(r.usable_episodes(), 0);

  write({.version = "v3.0"});
  edit_info([](OrderedJson& json) {
    json["video_path"] = "videos/chunk-{chunk_index:03d}/{video_key}/file-{file_index:03d}.mp4";
  });
  r = check();
  EXPECT_EQ(r.count(FindingLevel::problem), 1) << stats_text(r);
  EXPECT_THAT(problems(r, "D01"),
              Contains(HasSubstr("'videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4' finds them")));

  write({.version = "v2.0"});
  edit_info([](OrderedJson& json) { json["chunks_size"] = 2; });
  fs::remove_all(files_->root() + "/data/chunk-001");
  // the first chunk is found by any size: the episodes behind it are missing files
  EXPECT_EQ(problems(check(), "D03").size(), 3u);
}

TEST_F(FindingsTest, ForeignFilesAmongTheTablesOfEpisodesAreIgnoredAndNamed) {
  write({});
  const std::string folder = files_->root() + "/meta/episodes/chunk-000/";
  for (const char* name : {"._file-000.parquet", ".DS_Store", "notes.txt", "copy of file-000.parquet"})
    spoil(folder + name, "\x00\x05\x16\x07");
  const HealthReport r = check();
  EXPECT_EQ(r.count(FindingLevel::problem), 0) << stats_text(r);
  EXPECT_EQ(r.usable_episodes(), 5);
  const auto found = warnings(r, "D02");
  EXPECT_EQ(found.size(), 4u);
  EXPECT_THAT(found, Contains(HasSubstr(folder + "._file-000.parquet")));
  EXPECT_TRUE(open());
}

TEST_F(FindingsTest, NamesOfModalityJsonThatTheDatasetLacksAreNamed) {
  write({.version = "v2.1"});
  files_->write_text("meta/modality.json",
                     R"({"state": {"arm": {"start": 0, "end": 2}}, "action": {"arm": {"start": 0, "end": 2}},)"
                     R"("video": {"left": {}, "wrist": {"original_key": "observation.images.wrist"}},)"
                     R"("annotation": {"human.task": {}, "task": {"original_key": "task_index"}}})");
  const auto found = warnings(check(), "D02");
  EXPECT_THAT(found,
              Contains(HasSubstr("video.wrist is 'observation.images.wrist', which is no camera of info.json; it "
                                 "has observation.images.left, observation.images.right")));
  EXPECT_THAT(found,
              Contains(HasSubstr("annotation.human.task is 'annotation.human.task', a column that info.json does")));
  files_->write_text("meta/modality.json", "[]");
  EXPECT_THAT(problems(check(), "D01"), Contains(HasSubstr("modality.json: it holds no object")));
}

TEST_F(FindingsTest, ADatasetWithoutEpisodesOrFeaturesIsAProblem) {
  write({.version = "v2.1"});
  edit_info([](OrderedJson& json) { json["discarded_episode_indices"] = OrderedJson::parse("[0, 1, 2, 3, 4]"); });
  EXPECT_THAT(problems(check(), "D01"), Contains(HasSubstr("discarded_episode_indices leaves no episode")));
  edit_info([](OrderedJson& json) { json["discarded_episode_indices"] = OrderedJson::array(); });
  files_->write_text("meta/episodes.jsonl", "\n");
  EXPECT_THAT(problems(check(), "D01"), Contains(HasSubstr("meta/episodes.jsonl lists no episode")));
  edit_info([](OrderedJson& json) { json["features"] = OrderedJson::object(); });
  EXPECT_THAT(problems(check(), "D01"), Contains(HasSubstr("info.json: features is empty")));
  write({});
  const std::string table = files_->root() + "/meta/episodes/chunk-000/file-000.parquet";
  testing::write_whole_table(table, *testing::read_whole_table(table)->Slice(0, 0));
  EXPECT_THAT(problems(check(), "D01"), Contains(HasSubstr("meta/episodes lists no episode")));
}

TEST_F(FindingsTest, ATaskWithTwoTextsIsRefused) {
  write({.version = "v2.1"});
  files_->write_text("meta/tasks.jsonl",
                     "{\"task_index\": 0, \"task\": \"a\"}\n{\"task_index\": 0, \"task\": \"b\"}\n");
  EXPECT_THAT(problems(check(), "D01"),
              Contains(HasSubstr("tasks.jsonl line 2: task_index 0 has two texts: 'a' and 'b'")));
  write({});
  testing::set_integer(files_->root() + "/meta/tasks.parquet", "task_index", 1, 0);
  EXPECT_THAT(problems(check(), "D01"), Contains(HasSubstr("task_index 0 has two texts")));
}

TEST_F(FindingsTest, WhatAJobIsRefusedForIsAProblemHereToo) {
  const auto expect_both = [&](const std::string& text) {
    const HealthReport r = check();
    EXPECT_THAT(problems(r, "D01"), ElementsAre(HasSubstr(text))) << stats_text(r);
    ASSERT_FALSE(open());
  };
  write({.version = "v2.1", .dims = 4});
  edit_info([](OrderedJson& json) { json["features"]["action"]["shape"] = {2, 2}; });
  expect_both("meta/info.json says that 'action' has dtype float32 and shape [2, 2]; a state or an action is one list");
  EXPECT_THAT(open().error().message(), HasSubstr("shape [2, 2]: one list of numbers a row is wanted"));

  write({.version = "v2.1"});
  files_->write_text("meta/modality.json", R"({"state": {"arm": {"start": 0, "end": 2}}, "video": {}})");
  expect_both("meta/modality.json: video names no camera; info.json has observation.images.left, ");
  EXPECT_THAT(open().error().message(), HasSubstr("meta/modality.json names no camera under video"));

  write({.version = "v2.1"});
  files_->write_text("meta/step_filter.jsonl", R"({"episode_index": 0, "step_indices": "all"})");
  expect_both("meta/step_filter.jsonl line 1: step_indices is \"all\"; a list of whole numbers is wanted");
  EXPECT_THAT(open().error().message(), HasSubstr("meta/step_filter.jsonl line 1"));
}

TEST_F(FindingsTest, AJobIsToldOfAWrongTemplateOnce) {
  write({.version = "v2.1"});
  edit_info([](OrderedJson& json) {
    json["video_path"] = "clips/{video_key}/{episode_index}.mp4";
    json["data_path"] = "tables/{episode_index:06d}.parquet";
  });
  const std::string refused = open().error().message();
  EXPECT_THAT(refused, HasSubstr("\n  D01 " + files_->root() + "/meta/info.json: data_path is 'tables/"));
  EXPECT_THAT(refused, HasSubstr("\n  D01 " + files_->root() + "/meta/info.json: video_path is 'clips/"));
  EXPECT_EQ(std::count(refused.begin(), refused.end(), '\n'), 3) << "and how to mend it: " << refused;
}

TEST_F(FindingsTest, AFeatureTableWithoutTaskIndexIsTold) {
  write({});
  edit_info([](OrderedJson& json) { json["features"].erase("task_index"); });
  EXPECT_THAT(warnings(check(), "D02"), ElementsAre(HasSubstr("not read, and prompts come from task_index")));
  EXPECT_THAT((*open())->warnings(), Contains(::testing::Field(&DatasetProblem::text, HasSubstr("task_index"))));
}

TEST_F(FindingsTest, NamesThatAreNotOneEachAreANote) {
  write({});
  const auto notes = [&] { return texts(check(), FindingLevel::note, "D02"); };
  edit_info([](OrderedJson& json) { json["features"]["action"]["names"] = {"arm"}; });
  EXPECT_THAT(notes(), IsEmpty()) << "an axis has one name";
  edit_info([](OrderedJson& json) { json["features"]["action"]["names"] = {"pan", "lift"}; });
  EXPECT_THAT(notes(), ElementsAre(HasSubstr("meta/info.json: 'action' has 2 names for 3 numbers; they are not used")));
}

TEST_F(FindingsTest, StatisticsOfEpisodesAreComparedWithTheirTables) {
  write({.version = "v2.1"});
  // row r of episode e has the action 100 e + (r + 1) / 4 - d
  const auto line = [&](std::size_t e, double factor) {
    OrderedJson stats;
    for (std::int64_t d = 0; d < 3; ++d) {
      const double first = files_->set().action(e, 0, d), last = files_->set().action(e, files_->set().rows[e] - 1, d);
      stats["min"].push_back(factor * first);
      stats["max"].push_back(factor * last);
      stats["mean"].push_back(factor * (first + last) / 2);
    }
    stats["count"] = {files_->set().rows[e]};
    return OrderedJson{{"episode_index", e}, {"stats", {{"action", stats}, {"else", {{"min", {7}}}}}}}.dump() + "\n";
  };
  const std::string path = files_->root() + "/meta/episodes_stats.jsonl";
  files_->write_text("meta/episodes_stats.jsonl", line(0, 1) + line(1, 1) + line(4, 1));
  EXPECT_THAT(warnings(check(), "D12"), IsEmpty());
  files_->write_text("meta/episodes_stats.jsonl", line(0, 1) + line(1, 10) + line(3, 10) + "{\n");
  const auto found = warnings(check(), "D12");
  EXPECT_THAT(found, Contains(HasSubstr(path + ": min of 'action'[0] of episode 1 is 1002.5; its table gives 100.25 "
                                               "(and 1 more differ)")));
  EXPECT_THAT(found, Contains(HasSubstr(path + " line 4: ")));

  write({});  // v3.0 has them in the table of episodes
  EXPECT_THAT(warnings(check(), "D12"), IsEmpty());
  const std::string table = files_->root() + "/meta/episodes/chunk-000/file-000.parquet";
  const auto stated = [](std::int64_t row, std::shared_ptr<arrow::Scalar> before) -> std::shared_ptr<arrow::Scalar> {
    if (row != 2) return before;
    arrow::DoubleBuilder numbers;
    testing::must(numbers.AppendValues({200, 1, 2}));
    return std::make_shared<arrow::ListScalar>(testing::must(numbers.Finish()), before->type);
  };
  testing::edit_column(table, "stats/observation.state/min", stated);
  EXPECT_THAT(
      warnings(check(), "D12"),
      ElementsAre(HasSubstr("meta/episodes: min of 'observation.state'[1] of episode 2 is 1; its table gives 201")));
}

TEST_F(FindingsTest, JointsAreCalledByTheirNamesInEveryReport) {
  for (const char* names : {R"(["pan", "lift", "grip"])", R"([["pan", "lift", "grip"]])",
                            R"({"motors": ["pan", "lift", "grip"]})", R"({"lift": 1, "grip": 2, "pan": 0})"}) {
    SCOPED_TRACE(names);
    write({.version = "v2.1"});
    edit_info([&](OrderedJson& json) { json["features"]["action"]["names"] = OrderedJson::parse(names); });
    files_->write_text("meta/modality.json",
                       R"({"state": {"arm": {"start": 1, "end": 3}}, "action": {"arm": {"start": 1, "end": 3}},)"
                       R"("video": {"left": {}}})");
    const HealthReport r = check();
    EXPECT_THAT(stats_text(r), HasSubstr("action[1] lift"));
    EXPECT_THAT(stats_text(r), HasSubstr("relative arm[1] grip"));
    EXPECT_THAT(stats_text(r), HasSubstr("observation.state[1] "));
    EXPECT_THAT(report_html(r), HasSubstr("<figcaption>[0] pan mean"));
    EXPECT_EQ(dimension_labels(r.column("action")->names, {0, 2, 3}), "[0] pan, [2] grip, [3]");
    EXPECT_EQ(OrderedJson::parse(report_json(r))["statistics"]["columns"]["action"]["names"],
              OrderedJson::parse(R"(["pan", "lift", "grip"])"));
  }
  edit_info([&](OrderedJson& json) { json["features"]["action"]["names"] = OrderedJson::parse(R"(["only", "two"])"); });
  EXPECT_THAT(stats_text(check()), ::testing::Not(HasSubstr("only")));
}

}  // namespace
}  // namespace troupe::data
