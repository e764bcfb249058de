// What `troupe stats` finds in a source, a conversion finds too: problems are left out or refused, warnings are told.
#include <gmock/gmock.h>

#include "tests/data/convert/convert_test_support.h"
#include "tests/support/lerobot_writer.h"
#include "tests/support/parquet_edit.h"

namespace troupe::data {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

class SourceCheckTest : public ::testing::Test {
 protected:
  void SetUp() override { make_toy(toy_); }

  std::string table(int episode) const {
    return toy_ + "/data/chunk-000/episode_00000" + std::to_string(episode) + ".parquet";
  }
  std::string video(const std::string& camera, int episode) const {
    return toy_ + "/videos/chunk-000/" + camera + "/episode_00000" + std::to_string(episode) + ".mp4";
  }
  void change_json(const std::string& name, const std::function<void(Json&)>& change) const {
    Json json = json_of(toy_ + "/" + name);
    change(json);
    write_text(toy_ + "/" + name, json.dump());
  }
  /// The report of a conversion into a folder of its own.
  Result<ConvertDatasetReport> convert(const std::string& source, bool strict = false) {
    auto request = request_for(source, scratch_ / "out" + std::to_string(outputs_++));
    request.strict = strict;
    return convert_dataset(request);
  }
  std::vector<std::string> notes_of(const std::string& source) { return convert(source).value().notes; }

  /// Episode `left_out` alone is missing from the result, and the conversion refused with --strict.
  void expect_left_out(const std::string& source, int left_out, const std::string& code, const std::string& why) {
    const auto report = convert(source).value();
    ASSERT_EQ(report.left_out.size(), 1U);
    EXPECT_EQ(report.left_out[0].code, code);
    EXPECT_THAT(report.left_out[0].text,
                AllOf(HasSubstr("episode " + std::to_string(left_out) + ": " + source), HasSubstr(why)));
    EXPECT_EQ(report.episodes, 2);
    const auto strict = convert(source, true);
    ASSERT_FALSE(strict);
    EXPECT_EQ(strict.error().code(), Errc::data_loss);
    EXPECT_THAT(strict.error().message(), HasSubstr(why));
  }
  Error refused(const std::string& source) {
    const auto report = convert(source);
    EXPECT_FALSE(report) << "was not refused";
    return report ? Error{Errc::internal, "nothing"} : report.error();
  }

  ScratchFolder scratch_;
  const std::string toy_ = scratch_ / "toy";
  int outputs_ = 0;
};

TEST_F(SourceCheckTest, ColumnsThatTrainingDoesNotTakeLeaveTheEpisodeOut) {
  const auto with = [](const char* column, std::int64_t row, double value) {
    return [=](const std::string& path) {
      const auto type = testing::read_whole_table(path)->GetColumnByName(column)->type();
      testing::edit_column(path, column, [&](std::int64_t r, std::shared_ptr<arrow::Scalar> before) {
        if (r != row) return before;
        arrow::FloatBuilder values;
        testing::must(values.AppendValues({1.F, static_cast<float>(value), 1.F, 1.F}));
        return testing::must(arrow::MakeScalar(type, testing::must(values.Finish())));
      });
    };
  };
  struct Damage {
    const char *code, *why;
    std::function<void(const std::string& path)> change;
  };
  const std::vector<Damage> all = {
      {"D04", "frame_index", [](const auto& p) { testing::set_null(p, "frame_index", 3); }},
      {"D04", "'index'", [](const auto& p) { testing::set_texts(p, "index"); }},
      {"D04", "'index'", [](const auto& p) { testing::set_integer(p, "index", 3, 7777); }},
      {"D04", "episode_index", [](const auto& p) { testing::set_integer(p, "episode_index", 0, 2); }},
      {"D04", "observation.state", [](const auto& p) { testing::set_null(p, "observation.state", 2); }},
      {"D04", "nan", with("action", 4, std::nan(""))},
      {"D04", "inf", with("action", 4, INFINITY)},
      {"D04", "task_index", [](const auto& p) { testing::set_null(p, "task_index", 0); }},
      {"D11", "99", [](const auto& p) { testing::set_integer(p, "task_index", 0, 99); }},
      {"D04", "'action'", [](const auto& p) {
         const auto table = testing::read_whole_table(p);
         testing::write_whole_table(p, *testing::must(table->RemoveColumn(table->schema()->GetFieldIndex("action"))));
       }}};
  const std::string before = text_of(table(1));
  for (const Damage& damage : all) {
    SCOPED_TRACE(damage.why);
    damage.change(table(1));
    expect_left_out(toy_, 1, damage.code, damage.why);
    write_text(table(1), before);
  }
  EXPECT_TRUE(convert(toy_, true).value().left_out.empty());
}

TEST_F(SourceCheckTest, PagesWithAWrongChecksumAreNotRead) {
  testing::write_whole_table(table(1), *testing::read_whole_table(table(1)), /*checksums=*/true);
  std::string bytes = text_of(table(1));
  const auto file = open_parquet(table(1)).value();
  const auto metadata = file->parquet_reader()->metadata();
  int column = 0;
  while (!metadata->schema()->Column(column)->path()->ToDotString().starts_with("observation.state")) ++column;
  const auto pages = metadata->RowGroup(0)->ColumnChunk(column);
  bytes[static_cast<std::size_t>(pages->data_page_offset() + pages->total_compressed_size() - 5)] ^= 1;
  write_text(table(1), bytes);
  expect_left_out(toy_, 1, "D03", "episode_000001.parquet");
  EXPECT_EQ(RowReader().read(table(1), 0, metadata->num_rows()).error().code(), Errc::data_loss)
      << "columns that nothing checks are read by this";
}

TEST_F(SourceCheckTest, AShapeThatTheColumnHasNotIsFound) {
  fs::remove(toy_ + "/meta/modality.json");
  change_json("meta/info.json", [](Json& info) { info["features"]["action"]["shape"] = {3}; });
  EXPECT_THAT(refused(toy_).message(), AllOf(HasSubstr("no episode can be read"), HasSubstr("'action' has 4 values")));
}

TEST_F(SourceCheckTest, ALengthThatIsTooSmallIsFound) {
  const std::string v30 = scratch_ / "v30";
  converted(request_for(toy_, v30));
  const std::string list = v30 + "/meta/episodes/chunk-000/file-000.parquet";
  const auto lengths = number_column(*table_of(list)->GetColumnByName("length")).values;
  testing::set_integer(list, "length", 2, static_cast<std::int64_t>(lengths[2]) - 3);
  expect_left_out(v30, 2, "D04", "belongs to episode 2 too");
}

TEST_F(SourceCheckTest, AMergeGivesNoTextToALabelWithout) {
  const std::string other = scratch_ / "other";
  make_toy(other, 2, 16, 9);
  // the first source has a text of this number
  const std::string path = other + "/data/chunk-000/episode_000001.parquet";
  const auto label = static_cast<std::int64_t>(number_column(*table_of(path)->GetColumnByName("task_index")).values[0]);
  std::istringstream lines(text_of(other + "/meta/tasks.jsonl"));
  std::string line, kept;
  while (std::getline(lines, line)) {
    if (Json::parse(line)["task_index"] != label) kept += line + "\n";
  }
  write_text(other + "/meta/tasks.jsonl", kept);
  auto request = request_for(toy_, scratch_ / "merged");
  request.sources.push_back(other);
  const auto report = converted(request);
  ASSERT_GE(report.left_out.size(), 1U);
  EXPECT_EQ(report.left_out.back().code, "D11");
  EXPECT_THAT(report.left_out.back().text, HasSubstr(path));
}

TEST_F(SourceCheckTest, CamerasThatInfoJsonMistypesOrLacksAreNotLostInSilence) {
  const std::string info = text_of(toy_ + "/meta/info.json");
  struct Change {
    std::function<void(Json& features)> change;
    std::string why;
  };
  const std::vector<Change> all = {{[](Json& f) { f[kSide]["dtype"] = "image"; }, table(0)},
                                   {[](Json& f) { f[kSide]["dtype"] = "float32"; }, video(kSide, 0)},
                                   {[](Json& f) { f.erase(kSide); }, video(kSide, 0)},
                                   {[](Json& f) {
                                      f["observation.images.ghost"] = {{"dtype", "image"}, {"shape", {32, 32, 3}}};
                                    },
                                    table(0)}};
  for (const Change& c : all) {
    change_json("meta/info.json", [&](Json& json) { c.change(json["features"]); });
    const Error error = refused(toy_);
    EXPECT_EQ(error.code(), Errc::data_loss);
    const bool ghost = json_of(toy_ + "/meta/info.json")["features"].contains("observation.images.ghost");
    const std::string camera = ghost ? "observation.images.ghost" : kSide;
    EXPECT_THAT(error.message(), AllOf(HasSubstr(c.why), HasSubstr("--drop-camera " + camera)));
    auto request = request_for(toy_, scratch_ / "dropped" + std::to_string(outputs_++));
    request.drop_cameras = {camera};
    EXPECT_EQ(converted(request).episodes, 3);
    EXPECT_FALSE(json_of(request.out + "/meta/info.json")["features"].contains(camera));
    write_text(toy_ + "/meta/info.json", info);
  }
}

TEST_F(SourceCheckTest, AModalityThatCannotBeUsedIsRefused) {
  const std::string path = toy_ + "/meta/modality.json";
  for (const char* text : {"{", R"({"action": {"arm": {"start": 0, "end": 99}}})",
                           R"({"state": {"arm": {"start": 0, "end": 1, "original_key": "nothing"}}})"}) {
    write_text(path, text);
    const Error error = refused(toy_);
    EXPECT_EQ(error.code(), Errc::data_loss);
    EXPECT_THAT(error.message(), HasSubstr(path));
  }
}

TEST_F(SourceCheckTest, AVideoThatNothingDecodesIsNamed) {
  std::string bytes = text_of(video(kSide, 1));
  const auto box = bytes.find("stsd");
  ASSERT_NE(box, std::string::npos);
  bytes.replace(box + 16, 4, "zzzz");  // the kind of its frames
  write_text(video(kSide, 1), bytes);
  expect_left_out(toy_, 1, "D06", video(kSide, 1));
}

TEST_F(SourceCheckTest, MetadataThatCannotBeReadAreDamage) {
  const std::string v30 = scratch_ / "v30";
  converted(request_for(toy_, v30));
  write_text(v30 + "/meta/tasks.parquet", "PAR1 and nothing more");
  fs::remove(toy_ + "/meta/tasks.jsonl");
  for (const auto& [source, name] : {std::pair{v30, "tasks.parquet"}, std::pair{toy_, "tasks.jsonl"}}) {
    const Error error = refused(source);
    EXPECT_EQ(error.code(), Errc::data_loss) << error.message();
    EXPECT_THAT(error.message(), HasSubstr(name));
  }
}

TEST_F(SourceCheckTest, WarningsAreNotesOneForEachCause) {
  EXPECT_THAT(notes_of(toy_), Each(Not(HasSubstr("D0"))));
  change_json("meta/info.json", [](Json& info) {
    info["fps"] = 20;
    info["features"][kSide]["shape"] = {64, 64, 3};
  });
  write_text(toy_ + "/meta/modality.json", R"({"video": {"top": {}}})");
  const auto notes = notes_of(toy_);
  EXPECT_THAT(notes, Contains(AllOf(HasSubstr("D05 " + table(0)), HasSubstr("(and 2 more of this kind)"))));
  EXPECT_THAT(notes, Contains(HasSubstr("D08 " + toy_)));
  EXPECT_THAT(notes, Contains(AllOf(HasSubstr("D02 " + video(kSide, 0)), HasSubstr("64x64"))));
  EXPECT_THAT(notes, Contains(AllOf(HasSubstr("D02"), HasSubstr("modality.json: video.top"))));
}

TEST_F(SourceCheckTest, StatisticsOfOtherDataAreTold) {
  const std::string v30 = scratch_ / "v30";
  converted(request_for(toy_, v30));
  EXPECT_THAT(notes_of(v30), Each(Not(HasSubstr("D12"))));
  Json stats = json_of(v30 + "/meta/stats.json");
  stats["action"]["mean"][0] = 1000;
  write_text(v30 + "/meta/stats.json", stats.dump());
  EXPECT_THAT(notes_of(v30), Contains(AllOf(HasSubstr("D12 " + v30 + "/meta/stats.json"), HasSubstr("'action'"))));
}

TEST_F(SourceCheckTest, StatisticsOfEpisodesOfOtherDataAreTold) {
  const std::string path = toy_ + "/meta/episodes_stats.jsonl";
  std::istringstream lines(text_of(path));
  std::string line, changed;
  while (std::getline(lines, line)) {
    Json json = Json::parse(line);
    if (json["episode_index"] == 1) json["stats"]["action"]["mean"][0] = 1000;
    changed += json.dump() + "\n";
  }
  write_text(path, changed);
  EXPECT_THAT(notes_of(toy_), Contains(AllOf(HasSubstr("D12 " + path), HasSubstr("mean of 'action'[0] of episode 1"))));
}

TEST_F(SourceCheckTest, ColumnsThatNoSampleUsesAreCarriedAndNamed) {
  for (int e = 0; e < 3; ++e) {
    const auto before = testing::read_whole_table(table(e));
    arrow::DoubleBuilder force;
    for (std::int64_t r = 0; r < before->num_rows(); ++r) testing::must(force.Append(r == 1 ? std::nan("") : 0.5));
    testing::write_whole_table(table(e), *testing::must(before->AddColumn(
                                             0, arrow::field("force", arrow::float64()),
                                             std::make_shared<arrow::ChunkedArray>(testing::must(force.Finish())))));
  }
  change_json("meta/info.json", [](Json& info) {
    info["features"]["force"] = {{"dtype", "float64"}, {"shape", {1}}};
    info["features"]["ghost"] = {{"dtype", "float32"}, {"shape", {2}}};
  });
  const auto report = convert(toy_).value();
  EXPECT_EQ(report.episodes, 3);
  EXPECT_THAT(report.notes, Contains(AllOf(HasSubstr("D04 " + table(0)), HasSubstr("'force' holds nan"))));
  EXPECT_THAT(report.notes, Contains(AllOf(HasSubstr("no column 'ghost'"), HasSubstr("(and 2 more of this kind)"))));
}

TEST_F(SourceCheckTest, FramesOfAnotherFormatAreCarriedAndNamed) {
  auto request = request_for(toy_, scratch_ / "wide", DatasetVersion::v21);
  request.video = ConvertVideo::reencode;
  request.encoding = {.codec = "h264", .pix_fmt = "yuv444p"};
  converted(request);
  const auto report = convert(scratch_ / "wide").value();
  EXPECT_EQ(report.episodes, 3);
  EXPECT_THAT(report.notes, Contains(AllOf(HasSubstr("D06"), HasSubstr("yuv444p"))));
}

TEST_F(SourceCheckTest, DiscardedEpisodesAreExaminedToo) {
  change_json("meta/info.json", [](Json& info) { info["discarded_episode_indices"] = {1}; });
  EXPECT_EQ(convert(toy_, true).value().episodes, 3);
  testing::set_null(table(1), "index", 0);
  expect_left_out(toy_, 1, "D04", "'index'");
}

class QuantilesTest : public SourceCheckTest {
 protected:
  static void expect_quantiles(const Json& stats) {
    EXPECT_GT(stats.size(), 5U);
    for (const auto& [name, values] : stats.items()) {
      SCOPED_TRACE(name);
      ASSERT_TRUE(values.contains("q01") && values.contains("q99"));
      const Json low = values["min"].flatten(), q01 = values["q01"].flatten(), q99 = values["q99"].flatten(),
                 high = values["max"].flatten();
      ASSERT_EQ(q01.size(), low.size());
      for (const auto& [place, value] : q01.items()) {
        EXPECT_LE(low[place].get<double>(), value.get<double>() + 0.05);
        EXPECT_LE(value.get<double>(), q99[place].get<double>());
        EXPECT_LE(q99[place].get<double>(), high[place].get<double>() + 0.05);
      }
    }
  }
};

TEST_F(QuantilesTest, EveryColumnAndCameraOfTheResultHasThem) {
  take_quantiles(toy_);
  const std::string out = scratch_ / "out";
  const auto report = converted(request_for(toy_, out));
  const Json stats = json_of(out + "/meta/stats.json");
  expect_quantiles(stats);
  EXPECT_TRUE(stats.contains(kFront) && stats.contains("frame_index"));
  EXPECT_NEAR(stats["index"]["q99"][0].get<double>(), 0.99 * static_cast<double>(report.frames - 1), 1e-9);
  EXPECT_EQ(stats[kFront]["q01"].size(), 3U);
}

TEST_F(QuantilesTest, TheyAreOfTheNewNumbers) {
  take_quantiles(toy_);
  auto request = request_for(toy_, scratch_ / "out");
  request.episodes = {{1, 2}};
  const auto report = converted(request);
  const Json stats = json_of(request.out + "/meta/stats.json");
  expect_quantiles(stats);
  EXPECT_NEAR(stats["index"]["q99"][0].get<double>(), 0.99 * static_cast<double>(report.frames - 1), 1e-9);
  EXPECT_EQ(stats["episode_index"]["q99"], Json({1.0}));
}

TEST_F(QuantilesTest, ImagesInTablesHaveThem) {
  const LerobotFolder files(LerobotSet{.version = "v2.1", .rows = {12, 9}, .images = true});
  Json stated;
  for (const char* stat : {"min", "max", "mean", "std"})
    stated["observation.images.left"][stat] = Json::parse("[[[0.0]], [[0.1]], [[0.0]]]");
  files.write_text("meta/stats.json", stated.dump());
  const std::string out = scratch_ / "out";
  converted(request_for(files.root(), out));
  const Json left = json_of(out + "/meta/stats.json")["observation.images.left"];
  // a pixel is (episode, row, camera)
  EXPECT_EQ(left["q99"][0][0][0], 1 / 255.0);
  EXPECT_NEAR(left["q99"][1][0][0].get<double>(), 11 / 255.0, 1e-9);
  EXPECT_EQ(left["q01"][2][0][0], 0.0);
}

}  // namespace
}  // namespace troupe::data
