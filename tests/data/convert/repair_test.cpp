// What a repair mends, what it names, and that sound files are copied.
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <parquet/arrow/writer.h>

#include <functional>

#include "tests/data/convert/convert_test_support.h"

namespace troupe::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

class RepairTest : public ::testing::TestWithParam<DatasetVersion> {
 protected:
  void SetUp() override {
    make_toy(toy_);
    if (v3()) {
      converted(request_for(toy_, scratch_ / "source"));
      source_ = scratch_ / "source";
      fs::remove_all(source_ + "/.troupe");
    }
    auto request = request_for(source_, scratch_ / "want", GetParam());
    request.repair = true;
    converted(request);
  }
  bool v3() const { return GetParam() == DatasetVersion::v30; }
  std::string table(std::int64_t episode) const {
    return source_ +
           (v3() ? "/data/chunk-000/file-000.parquet" : fmt::format("/data/chunk-000/episode_{:06d}.parquet", episode));
  }
  std::string video(const char* camera, std::int64_t episode) const {
    return source_ + (v3() ? fmt::format("/videos/{}/chunk-000/file-000.mp4", camera)
                           : fmt::format("/videos/chunk-000/{}/episode_{:06d}.mp4", camera, episode));
  }
  void change_info(const Json& changes) const {
    Json info = json_of(source_ + "/meta/info.json");
    info.update(changes);
    write_text(source_ + "/meta/info.json", info.dump());
  }
  ConvertDatasetRequest repair() const {
    auto request = request_for(source_, out_, GetParam());
    request.repair = true;
    request.verify = ConvertVerify::full;
    return request;
  }
  Error refused() const {
    const auto report = convert_dataset(repair());
    EXPECT_FALSE(report) << "was not refused";
    return report ? Error{Errc::internal, "nothing"} : report.error();
  }
  /// The repaired dataset is that of the sound one, byte for byte.
  void expect_repaired(const std::vector<std::string>& but = {}) {
    const auto report = converted(repair());
    EXPECT_EQ(report.encoded_files, 0);
    auto got = files_below(out_), want = files_below(scratch_ / "want");
    for (auto* tree : {&got, &want}) {
      std::erase_if(*tree, [](const auto& file) { return file.first.starts_with(".troupe/"); });
      for (const std::string& name : but) tree->erase(name);
    }
    EXPECT_EQ(names_of(got), names_of(want));
    for (const auto& [name, bytes] : want) EXPECT_TRUE(got[name] == bytes) << name;
  }
  /// Writes a table's file anew with other columns.
  void replace_table(const std::string& path,
                     const std::function<std::shared_ptr<arrow::Table>(const arrow::Table&)>& change) const {
    const auto changed = change(*table_of(path));
    auto stream = arrow::io::FileOutputStream::Open(path).ValueOrDie();
    ASSERT_TRUE(parquet::arrow::WriteTable(*changed, arrow::default_memory_pool(), stream, 1 << 20).ok());
    ASSERT_TRUE(stream->Close().ok());
  }

  ScratchFolder scratch_;
  const std::string toy_ = scratch_ / "toy", out_ = scratch_ / "out";
  std::string source_ = toy_;
};

TEST_P(RepairTest, ASoundDatasetStaysWhatItIs) {
  auto plain = request_for(source_, scratch_ / "plain", GetParam());
  converted(plain);
  for (const auto& [name, bytes] : files_below(scratch_ / "plain")) {
    if (name.ends_with(".mp4")) {
      EXPECT_TRUE(bytes == text_of(scratch_ / "want/" + name)) << name;
    }
    if (!name.ends_with(".parquet") || name.starts_with("meta/")) continue;
    EXPECT_TRUE(table_of(scratch_ / "plain/" + name)->Equals(*table_of(scratch_ / "want/" + name))) << name;
  }
}

TEST_P(RepairTest, EpisodesAndTotalsComeFromTheTables) {
  if (v3()) {
    fs::remove_all(source_ + "/meta/episodes");
  } else {
    write_text(
        source_ + "/meta/episodes.jsonl",
        "{\"episode_index\": 0, \"length\": 9999, \"tasks\": [\"pick up the red ball\"]}\n{\"episode_index\": 1, ");
  }
  change_info({{"total_episodes", 77}, {"total_frames", -3}, {"chunks_size", 0}, {"codebase_version", nullptr}});
  expect_repaired();
}

TEST_P(RepairTest, FilesAreFoundWhereTheTemplatesDoNotLead) {
  change_info({{"data_path", "tables/{episode_index}.parquet"}, {"video_path", "/somewhere/{else}.mp4"}});
  if (v3()) change_info({{"data_path", "tables/{file_index}.parquet"}});
  expect_repaired();
}

TEST_P(RepairTest, OfTwoFilesWithOneNumberTheNamedOneCounts) {
  write_text(source_ + "/backup/" + fs::path(table(0)).filename().string(), "an old copy");
  write_text(source_ + "/data/chunk-000/._" + fs::path(table(0)).filename().string(), "of another system");
  expect_repaired();
}

TEST_P(RepairTest, CountersAreWrittenAnewWhateverTheyHeld) {
  const auto spoil = [&](const std::string& path) {
    replace_table(path, [&](const arrow::Table& before) {
      arrow::StringBuilder texts;
      arrow::Int64Builder nulls;
      for (std::int64_t r = 0; r < before.num_rows(); ++r) {
        EXPECT_TRUE(texts.Append("x").ok());
        EXPECT_TRUE(nulls.AppendNull().ok());
      }
      const auto set = [](const std::shared_ptr<arrow::Table>& t, const char* name,
                          const std::shared_ptr<arrow::Array>& values) {
        return t
            ->SetColumn(t->schema()->GetFieldIndex(name), arrow::field(name, values->type()),
                        std::make_shared<arrow::ChunkedArray>(values))
            .ValueOrDie();
      };
      auto out = set(before.ReplaceSchemaMetadata(before.schema()->metadata()), "index", *nulls.Finish());
      return set(out, "frame_index", *texts.Finish());
    });
  };
  if (v3()) {
    spoil(table(0));
  } else {
    for (int e = 0; e < 3; ++e) spoil(table(e));
  }
  converted(repair());
  for (const auto& [name, bytes] : files_below(out_)) {
    if (!name.starts_with("data/")) continue;
    const auto got = table_of(out_ + "/" + name), want = table_of(scratch_ / "want/" + name);
    for (const char* column : {"index", "frame_index", "episode_index", "action", "timestamp"})
      EXPECT_TRUE(got->GetColumnByName(column)->Equals(*want->GetColumnByName(column))) << column;
  }
  EXPECT_TRUE(json_of(out_ + "/meta/info.json")["features"] == json_of(scratch_ / "want/meta/info.json")["features"]);
}

TEST_P(RepairTest, LostTasksAreThoseOfTheEpisodes) {
  fs::remove(source_ + (v3() ? "/meta/tasks.parquet" : "/meta/tasks.jsonl"));
  // texts that no episode uses are gone for good
  converted(repair());
  const auto got = DatasetSource::open(out_).value(), want = DatasetSource::open(scratch_ / "want").value();
  for (std::size_t e = 0; e < want.episodes.size(); ++e) EXPECT_EQ(got.episodes[e].tasks, want.episodes[e].tasks);
  for (const auto& [index, text] : got.tasks) EXPECT_EQ(want.tasks.at(index), text);
  EXPECT_FALSE(got.tasks.empty());
}

TEST_P(RepairTest, WrongStatisticsAreComputedAnew) {
  write_text(source_ + "/meta/stats.json", "{\"action\": {\"mean\": [NaN]}}");
  if (!v3()) write_text(source_ + "/meta/episodes_stats.jsonl", "nothing\n");
  expect_repaired({"meta/stats.json"});
}

TEST_P(RepairTest, FeaturesAreThoseOfTheFiles) {
  Json features = json_of(source_ + "/meta/info.json")["features"];
  features["action"]["shape"] = {7};
  features["action"]["dtype"] = "float64";
  features["observation.torque"] = {{"dtype", "float32"}, {"shape", {3}}, {"names", nullptr}};
  features[kSide]["shape"] = {480, 640, 3};
  features.erase("timestamp");
  change_info({{"features", features}});
  converted(repair());
  const Json got = json_of(out_ + "/meta/info.json")["features"];
  const Json want = json_of(scratch_ / "want/meta/info.json")["features"];
  EXPECT_EQ(got.size(), want.size());
  for (const auto& [name, feature] : want.items()) {
    EXPECT_EQ(got[name]["dtype"], feature["dtype"]) << name;
    EXPECT_EQ(got[name]["shape"], feature["shape"]) << name;
  }
}

TEST_P(RepairTest, OnlyFilesThatTrainingRefusesAreCodedAnew) {
  // every frame of one camera as 4:4:4; the other camera is sound
  auto other = request_for(source_, scratch_ / "wide", GetParam());
  other.video = ConvertVideo::reencode;
  other.encoding = {.codec = "h264", .crf = 10, .preset = "ultrafast", .pix_fmt = "yuv444p"};
  converted(other);
  const std::string bad = video(kSide, 1).substr(source_.size());
  fs::copy_file(scratch_ / "wide" + bad, source_ + bad, fs::copy_options::overwrite_existing);
  const auto report = converted(repair());
  EXPECT_EQ(report.encoded_files, 1);
  EXPECT_EQ((*inspected_packets(out_ + bad))->pix_fmt, "yuv420p");
  for (const auto& [name, bytes] : files_below(out_)) {
    if (!name.ends_with(".mp4") || "/" + name == bad) continue;
    EXPECT_TRUE(bytes == text_of(scratch_ / "want/" + name)) << name;
  }
}

TEST_P(RepairTest, WhatCannotBeMendedIsNamedAndLeftOutOnlyWhenTold) {
  if (v3()) GTEST_SKIP() << "one file holds every episode";
  write_text(table(0), "PAR1 and nothing more");
  fs::remove(video(kFront, 2));
  const Error error = refused();
  EXPECT_EQ(error.code(), Errc::data_loss);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("2 episodes"), HasSubstr("D03 episode 0"), HasSubstr("D06 episode 2"),
                                     HasSubstr("--skip-bad")));
  EXPECT_FALSE(fs::exists(out_));
  auto request = repair();
  request.skip_bad = true;
  const auto report = converted(request);
  EXPECT_EQ(report.episodes, 1);
  EXPECT_EQ(report.left_out.size(), 2U);
}

TEST_P(RepairTest, DamagedFramesAreFound) {
  const std::string path = video(kSide, 1);
  const auto packets = video_packets(path).value();
  std::string bytes = text_of(path);
  const VideoSample& hit = packets->samples[packets->samples.size() / 2];
  for (std::int64_t i = 4; i < hit.size; ++i) bytes[static_cast<std::size_t>(hit.offset + i)] ^= 0x5A;
  write_text(path, bytes);
  EXPECT_THAT(refused().message(), AllOf(HasSubstr("D13 episode"), HasSubstr(path)));
}

TEST_P(RepairTest, RatesAndLostTextsAreNotGuessed) {
  const Json before = json_of(source_ + "/meta/info.json");
  change_info({{"fps", nullptr}});
  EXPECT_THAT(refused().message(), AllOf(HasSubstr("info.json"), HasSubstr("fps")));
  write_text(source_ + "/meta/info.json", before.dump());
  if (v3()) return;
  fs::remove(source_ + "/meta/tasks.jsonl");
  fs::remove(source_ + "/meta/episodes.jsonl");
  EXPECT_THAT(refused().message(), AllOf(HasSubstr("D11 episode 0"), HasSubstr("task_index")));
}

TEST_P(RepairTest, KeysOfColumnsThatAreNotThereLeaveModality) {
  write_text(source_ + "/meta/modality.json",
             R"({"state": {"arm": {"start": 0, "end": 3}}, "action": {"hand": {"start": 0, "end": 1, "original_key":
                 "action.hand"}}, "video": {"front": {}, "top": {}}})");
  converted(repair());
  const Json got = json_of(out_ + "/meta/modality.json");
  EXPECT_EQ(got["state"].size(), 1U);
  EXPECT_EQ(got["action"].size(), 0U);
  EXPECT_EQ(got["video"], Json({{"front", Json::object()}}));
}

INSTANTIATE_TEST_SUITE_P(Versions, RepairTest, ::testing::Values(DatasetVersion::v21, DatasetVersion::v30),
                         [](const auto& version) { return version.param == DatasetVersion::v21 ? "v21" : "v30"; });

}  // namespace
}  // namespace troupe::data
