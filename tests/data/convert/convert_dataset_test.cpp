// What a conversion writes, carries, splits, merges, refuses and leaves out.
#include <arrow/builder.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cmath>

#include "data/convert/episode_stats.h"
#include "data/convert/frame_encoder.h"
#include "data/convert/plan.h"
#include "data/video/clip_decoder.h"
#include "tests/data/convert/convert_test_support.h"

namespace troupe::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;
using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

class ConvertDatasetTest : public ::testing::Test {
 protected:
  void SetUp() override { make_toy(toy_); }

  /// One column of the episodes table.
  Json episodes(const std::string& column) const {
    const auto table = table_of(out_ + "/meta/episodes/chunk-000/file-000.parquet");
    Json out = Json::array();
    const auto values = table->GetColumnByName(column);
    for (std::int64_t r = 0; values && r < table->num_rows(); ++r) out.push_back(json_value(*values->chunk(0), r));
    return out;
  }
  Error refused(const ConvertDatasetRequest& request) const {
    const auto report = convert_dataset(request);
    EXPECT_FALSE(report) << "was not refused";
    return report ? Error{Errc::internal, "nothing"} : report.error();
  }

  ScratchFolder scratch_;
  const std::string toy_ = scratch_ / "toy", out_ = scratch_ / "out";
};

TEST(JsonValueTest, ColumnsOfOtherWritersKeepTheirValues) {
  arrow::UInt16Builder small;
  arrow::StringDictionaryBuilder coded;
  arrow::TimestampBuilder time(arrow::timestamp(arrow::TimeUnit::SECOND), arrow::default_memory_pool());
  ASSERT_TRUE(small.Append(65535).ok());
  for (const char* text : {"a", "b", "a"}) ASSERT_TRUE(coded.Append(text).ok());
  ASSERT_TRUE(time.Append(86400).ok());
  EXPECT_EQ(json_value(**small.Finish(), 0), 65535);
  const auto texts = *coded.Finish();
  EXPECT_EQ(json_value(*texts, 1), "b");
  EXPECT_EQ(json_value(*texts, 2), "a");
  EXPECT_EQ(json_value(**time.Finish(), 0), "1970-01-02 00:00:00");
}

TEST(PackFilesTest, LeRobotClosesAFileThatWouldReachTheLimit) {
  const std::vector<bool> none(4, false);
  EXPECT_EQ(pack_files({3, 3, 3, 3}, none, {.bytes = 6, .lerobot = true}), (Ranges{{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
  EXPECT_EQ(pack_files({3, 3, 3, 3}, none, {.bytes = 7, .lerobot = true}), (Ranges{{0, 2}, {2, 4}}));
  EXPECT_EQ(pack_files({9, 1, 1, 9}, none, {.bytes = 6, .lerobot = true}), (Ranges{{0, 1}, {1, 3}, {3, 4}}));
}

TEST(PackFilesTest, OurLimitIsReachedAndNotPassed) {
  const std::vector<bool> none(4, false);
  EXPECT_EQ(pack_files({3, 3, 3, 3}, none, {.bytes = 6}), (Ranges{{0, 2}, {2, 4}}));
  EXPECT_EQ(pack_files({3, 3, 3, 3}, none, {.episodes = 3, .bytes = 100}), (Ranges{{0, 3}, {3, 4}}));
  EXPECT_EQ(pack_files({3, 3, 3, 3}, {false, false, true, false}, {.bytes = 100}), (Ranges{{0, 2}, {2, 4}}));
}

TEST(PackFilesTest, TheFileAfter999OpensTheNextChunk) {
  EXPECT_EQ(place_of_file(0), (std::pair<std::int64_t, std::int64_t>{0, 0}));
  EXPECT_EQ(place_of_file(999), (std::pair<std::int64_t, std::int64_t>{0, 999}));
  EXPECT_EQ(place_of_file(1000), (std::pair<std::int64_t, std::int64_t>{1, 0}));
}

TEST(ByteSizeTest, SuffixesArePowersOf1000Or1024) {
  EXPECT_EQ(parse_byte_size("1GB").value(), 1'000'000'000);
  EXPECT_EQ(parse_byte_size("1.5 MiB").value(), 1'572'864);
  EXPECT_EQ(parse_byte_size("12").value(), 12);
  EXPECT_EQ(parse_byte_size("2kib").value(), 2048);
  for (const char* bad : {"", "GB", "-1MB", "0", "1XB", "nan", "1e300"}) EXPECT_FALSE(parse_byte_size(bad)) << bad;
}

TEST(EpisodeStatsTest, SampledFramesAreLeRobots) {
  EXPECT_EQ(sampled_frames(40).size(), 40U);
  EXPECT_EQ(sampled_frames(416).size(), 100U);  // 416^0.75 = 92.1
  EXPECT_EQ(sampled_frames(1000).size(), 177U);
  const auto places = sampled_frames(416);
  EXPECT_EQ(places.front(), 0);
  EXPECT_EQ(places.back(), 415);
  EXPECT_EQ(places[1], 4);  // 4.19
}

TEST(EpisodeStatsTest, SumIsThatOfAllRows) {
  StatsSum sum;
  // {0, 2} and {4, 4, 10}
  ASSERT_TRUE(sum.add({{"x",
                        {{"min", {0}},
                         {"max", {2}},
                         {"mean", {1.0}},
                         {"std", {1.0}},
                         {"count", {2}},
                         {"q01", {0.5}},
                         {"q99", {1.5}}}}}));
  ASSERT_TRUE(sum.add({{"x",
                        {{"min", {4}},
                         {"max", {10}},
                         {"mean", {6.0}},
                         {"std", {std::sqrt(8.0)}},
                         {"count", {3}},
                         {"q01", {4.0}},
                         {"q99", {9.0}}}}}));
  const Json x = sum.finish()["x"];
  EXPECT_EQ(x["min"], Json({0}));
  EXPECT_EQ(x["max"], Json({10}));
  EXPECT_EQ(x["count"], Json({5}));
  EXPECT_NEAR(x["mean"][0].get<double>(), 4.0, 1e-12);
  EXPECT_NEAR(x["std"][0].get<double>(), std::sqrt((16 + 4 + 0 + 0 + 36) / 5.0), 1e-12);
  EXPECT_EQ(x["q01"], Json({0.5}));
  EXPECT_EQ(x["q99"], Json({9.0}));
}

TEST_F(ConvertDatasetTest, EpisodeSizeLimitsEveryKindOfFile) {
  auto request = request_for(toy_, out_);
  request.episode_size = 2;
  const auto report = converted(request);
  EXPECT_EQ(report.data_files, 2);
  EXPECT_EQ(report.video_files, 4);
  EXPECT_EQ(episodes("data/file_index"), Json({0, 0, 1}));
  EXPECT_EQ(episodes("videos/observation.images.side/file_index"), Json({0, 0, 1}));
  const Json length = episodes("length");
  const Json from = episodes("videos/observation.images.side/from_timestamp");
  EXPECT_EQ(from, Json({0.0, length[0].get<double>() / 10.0, 0.0}));
}

TEST_F(ConvertDatasetTest, ShardSizeIsTheLargestSumOfSources) {
  auto request = request_for(toy_, out_);
  request.shard_bytes = 1;
  EXPECT_EQ(converted(request).video_files, 6) << "a file holds one episode at least";
}

TEST_F(ConvertDatasetTest, OneRowGroupAnEpisodeUnlessRowsAreAsked) {
  converted(request_for(toy_, out_));
  EXPECT_EQ((*open_parquet(out_ + "/data/chunk-000/file-000.parquet"))->num_row_groups(), 3);
  auto request = request_for(toy_, scratch_ / "rows");
  request.row_group = 10;
  converted(request);
  const auto file = open_parquet(scratch_ / "rows/data/chunk-000/file-000.parquet");
  const std::int64_t rows = (*file)->parquet_reader()->metadata()->num_rows();
  EXPECT_EQ((*file)->num_row_groups(), (rows + 9) / 10);
}

TEST_F(ConvertDatasetTest, ResultDoesNotDependOnJobs) {
  auto one = request_for(toy_, scratch_ / "one"), four = request_for(toy_, scratch_ / "four");
  one.jobs = 1;
  four.jobs = 4;
  one.episode_size = four.episode_size = 1;
  converted(one);
  converted(four);
  EXPECT_EQ(files_below(scratch_ / "one"), files_below(scratch_ / "four"));
}

TEST_F(ConvertDatasetTest, V20GetsStatisticsPerEpisode) {
  const auto before = json_of(toy_ + "/meta/info.json");
  auto info = before;
  info["codebase_version"] = "v2.0";
  write_text(toy_ + "/meta/info.json", info.dump());
  std::istringstream lines(text_of(toy_ + "/meta/episodes_stats.jsonl"));
  fs::remove(toy_ + "/meta/episodes_stats.jsonl");
  converted(request_for(toy_, out_));
  std::string line;
  for (std::size_t e = 0; std::getline(lines, line); ++e) {
    const Json want = Json::parse(line)["stats"];
    for (const char* feature : {"observation.state", "action", "timestamp", "index"}) {
      for (const char* stat : {"min", "max", "mean", "std", "count"}) {
        const Json got = episodes("stats/" + std::string(feature) + "/" + stat).at(e);
        ASSERT_EQ(got.size(), want[feature][stat].size());
        for (std::size_t d = 0; d < got.size(); ++d)
          EXPECT_NEAR(got[d].get<double>(), want[feature][stat][d].get<double>(), 1e-6) << feature << " " << stat;
      }
    }
    const Json mean = episodes("stats/observation.images.front/mean").at(e);
    ASSERT_EQ(mean.size(), 3U);
    // toy statistics are of the drawing, ours of the coded frames
    for (std::size_t c = 0; c < 3; ++c)
      EXPECT_NEAR(mean[c][0][0].get<double>(), want["observation.images.front"]["mean"][c][0][0].get<double>(), 0.05);
  }
  EXPECT_EQ(episodes("stats/action/q50").size(), 3U);
}

TEST_F(ConvertDatasetTest, QuantilesThatTheSourceLacksAreComputed) {
  converted(request_for(toy_, scratch_ / "whole"));
  take_quantiles(toy_);
  converted(request_for(toy_, out_));
  const Json stats = json_of(out_ + "/meta/stats.json");
  for (const char* column : {"observation.state", "action"}) {
    for (std::size_t d = 0; d < 4; ++d) {
      const double low = stats[column]["min"][d], q01 = stats[column]["q01"][d], q99 = stats[column]["q99"][d];
      EXPECT_LE(low, q01);
      EXPECT_LE(q01, q99);
      // the envelope of the episodes' quantiles encloses those of the whole
      const Json whole = json_of(scratch_ / "whole/meta/stats.json");
      EXPECT_GE(q01, whole[column]["q01"][d].get<double>() - 1e-6);
      EXPECT_LE(q99, whole[column]["q99"][d].get<double>() + 1e-6);
    }
  }
}

TEST_F(ConvertDatasetTest, MergeRenumbersEpisodesRowsAndTasks) {
  make_toy(scratch_ / "other", 2, 16, 9);
  std::string tasks = text_of(scratch_ / "other/meta/tasks.jsonl");
  const auto at = tasks.find("pick up the red ball");
  ASSERT_NE(at, std::string::npos);
  tasks.replace(at, 20, "do something else");
  write_text(scratch_ / "other/meta/tasks.jsonl", tasks);
  write_text(scratch_ / "other/meta/step_filter.jsonl", "{\"episode_index\": 1, \"step_indices\": [2]}\n");
  auto request = request_for(toy_, out_);
  request.sources.push_back(scratch_ / "other");
  request.verify = ConvertVerify::full;
  const auto report = converted(request);
  EXPECT_EQ(report.episodes, 5);
  EXPECT_EQ(episodes("episode_index"), Json({0, 1, 2, 3, 4}));
  const auto table = table_of(out_ + "/data/chunk-000/file-000.parquet");
  const auto index = number_column(*table->GetColumnByName("index")).values;
  for (std::size_t i = 0; i < index.size(); ++i) ASSERT_EQ(index[i], static_cast<double>(i));
  EXPECT_EQ(static_cast<std::int64_t>(index.size()), report.frames);
  EXPECT_EQ(table_of(out_ + "/meta/tasks.parquet")->num_rows(), 9) << "eight of the toy's, one of the other's";
  EXPECT_EQ(text_of(out_ + "/meta/step_filter.jsonl"), "{\"episode_index\":4,\"step_indices\":[2]}\n");
  // statistics of renumbered columns are those of the new numbers
  const Json largest = episodes("stats/episode_index/max");
  for (std::size_t e = 0; e < 5; ++e) EXPECT_EQ(largest[e][0].get<double>(), static_cast<double>(e));
  EXPECT_EQ(episodes("stats/index/max").back()[0].get<std::int64_t>(), report.frames - 1);
}

TEST_F(ConvertDatasetTest, DatasetsThatDoNotMatchAreNotMerged) {
  make_toy(scratch_ / "large", 1, 16, 9, 48);
  auto request = request_for(toy_, out_);
  request.sources.push_back(scratch_ / "large");
  const Error error = refused(request);
  EXPECT_EQ(error.code(), Errc::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("feature 'observation.images.front'"));
}

TEST_F(ConvertDatasetTest, AnotherCodecBeginsANewFile) {
  const std::string name = "/videos/chunk-000/observation.images.front/episode_000001.mp4";
  // the same number of frames in another codec
  auto request = request_for(toy_, scratch_ / "mpeg4", DatasetVersion::v21);
  request.video = ConvertVideo::reencode;
  request.encoding = {.codec = "mpeg4", .crf = 10};
  converted(request);
  fs::copy_file(scratch_ / "mpeg4" + name, toy_ + name, fs::copy_options::overwrite_existing);
  auto joined = request_for(toy_, out_);
  joined.verify = ConvertVerify::full;
  EXPECT_EQ(converted(joined).encoded_files, 0);
  EXPECT_EQ(episodes("videos/observation.images.front/file_index"), Json({0, 1, 2}));
  EXPECT_EQ(episodes("videos/observation.images.side/file_index"), Json({0, 0, 0}));
}

TEST_F(ConvertDatasetTest, SettingsThatTheEncoderRefusesLeaveNothingBehind) {
  auto request = request_for(toy_, out_);
  request.video = ConvertVideo::reencode;
  request.encoding = {.codec = "mpeg4", .crf = 10, .pix_fmt = "rgb24"};
  const Error error = refused(request);
  EXPECT_EQ(error.code(), Errc::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("--pix_fmt rgb24"));
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(ConvertDatasetTest, EveryCodecThatMp4HoldsIsCopied) {
  for (const char* codec : {"mpeg4", "libvpx-vp9", "h264", "hevc", "av1"}) {
    SCOPED_TRACE(codec);
    auto request = request_for(toy_, scratch_ / codec + "_v21", DatasetVersion::v21);
    request.video = ConvertVideo::reencode;
    request.encoding = {.codec = codec, .gop = 8, .crf = 20};
    converted(request);
    auto copy = request_for(request.out, scratch_ / codec + "_v30");
    copy.verify = ConvertVerify::full;
    const auto report = converted(copy);
    EXPECT_EQ(report.encoded_files, 0);
    EXPECT_TRUE(report.verify_failures.empty()) << report.verify_failures.front();
    // and training reads it without an index
    ClipDecoder decoder;
    const std::string path = copy.out + "/videos/observation.images.front/chunk-000/file-000.mp4";
    const std::vector<std::int64_t> frames = {0, 3};
    std::size_t seen = 0;
    const auto count = [&](std::size_t, const Yuv420View& frame) -> Result<void> {
      seen += frame.width > 0;
      return {};
    };
    decoder.read_yuv(path, frames, count, std::chrono::steady_clock::now() + std::chrono::minutes(1)).value();
    EXPECT_EQ(seen, frames.size());
  }
}

TEST_F(ConvertDatasetTest, ReencodingHonoursGopAndSize) {
  auto request = request_for(toy_, out_);
  request.video = ConvertVideo::reencode;
  request.encoding = {.codec = "mpeg4", .gop = 4, .crf = 10, .width = 16, .height = 24};
  request.verify = ConvertVerify::full;
  EXPECT_EQ(converted(request).encoded_files, 2);
  const auto table = video_packets(out_ + "/videos/observation.images.front/chunk-000/file-000.mp4");
  EXPECT_EQ((*table)->codec->width, 16);
  EXPECT_EQ((*table)->codec->height, 24);
  const Json length = episodes("length");
  std::int64_t start = 0;
  for (const Json& l : length) {
    for (std::int64_t k = 0; k < l.get<std::int64_t>(); ++k) {
      const auto& sample = (*table)->samples[static_cast<std::size_t>(start + k)];
      EXPECT_EQ(sample.key, k % 4 == 0) << start << " + " << k;
    }
    start += l.get<std::int64_t>();
  }
  EXPECT_EQ(json_of(out_ + "/meta/info.json")["features"]["observation.images.front"]["shape"], Json({24, 16, 3}));
}

TEST_F(ConvertDatasetTest, AnEpisodeThatBeginsWithoutAKeyFrameIsCodedAnewOrRefused) {
  const std::string v30 = scratch_ / "v30";
  converted(request_for(toy_, v30));
  // the same frames with one key frame at the begin of the file
  const std::string path = v30 + "/videos/observation.images.side/chunk-000/file-000.mp4";
  const auto table = video_packets(path);
  const auto frames = static_cast<std::int64_t>((*table)->decode_of_rank.size());
  auto reader = FrameReader::open(path, *table, 0, frames);
  std::unique_ptr<FrameEncoder> encoder;
  for (std::int64_t k = 0; k < frames; ++k) {
    const auto frame = reader->next();
    if (k == 0) {
      auto opened =
          FrameEncoder::open(scratch_ / "one.mp4", {.codec = "mpeg4", .gop = 500, .crf = 10}, **frame, {10, 1});
      encoder = std::move(*opened);
    }
    ASSERT_TRUE(encoder->write(**frame, k == 0));
  }
  ASSERT_TRUE(encoder->finish());
  fs::copy_file(scratch_ / "one.mp4", path, fs::copy_options::overwrite_existing);

  auto request = request_for(v30, out_, DatasetVersion::v21);
  request.encoding.codec = "mpeg4";
  request.verify = ConvertVerify::full;
  EXPECT_EQ(converted(request).encoded_files, 2) << "the first episode begins with a key frame";
  request.out = scratch_ / "copied";
  request.video = ConvertVideo::copy;
  const Error error = refused(request);
  EXPECT_EQ(error.code(), Errc::failed_precondition);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("episode 1"), HasSubstr("no key frame"), HasSubstr("file-000.mp4")));
}

TEST_F(ConvertDatasetTest, UnreadableEpisodesAreLeftOutOrStrictlyRefused) {
  write_text(toy_ + "/data/chunk-000/episode_000001.parquet", "PAR1 and nothing more");
  write_text(toy_ + "/meta/step_filter.jsonl",
             "{\"episode_index\": 1, \"step_indices\": [2]}\n{\"episode_index\": 2, \"step_indices\": [3]}\n");
  const auto report = converted(request_for(toy_, out_));
  EXPECT_EQ(report.episodes, 2);
  ASSERT_EQ(report.left_out.size(), 1U);
  EXPECT_EQ(report.left_out[0].code, "D03");
  EXPECT_THAT(report.left_out[0].text, HasSubstr("episode 1"));
  EXPECT_EQ(episodes("episode_index"), Json({0, 1}));
  EXPECT_EQ(text_of(out_ + "/meta/step_filter.jsonl"), "{\"episode_index\":1,\"step_indices\":[3]}\n");
  auto strict = request_for(toy_, scratch_ / "strict");
  strict.strict = true;
  EXPECT_EQ(refused(strict).code(), Errc::data_loss);
}

TEST_F(ConvertDatasetTest, AVideoOfAnotherLengthIsLeftOut) {
  fs::copy_file(toy_ + "/videos/chunk-000/observation.images.side/episode_000000.mp4",
                toy_ + "/videos/chunk-000/observation.images.side/episode_000001.mp4",
                fs::copy_options::overwrite_existing);
  const auto lengths = DatasetSource::open(toy_);
  ASSERT_GT(std::abs(lengths->episodes[0].length - lengths->episodes[1].length), 1) << "pick another seed";
  const auto report = converted(request_for(toy_, out_));
  ASSERT_EQ(report.left_out.size(), 1U);
  EXPECT_EQ(report.left_out[0].code, "D07");
}

TEST_F(ConvertDatasetTest, AnOutputThatHoldsSomethingIsRefused) {
  write_text(out_ + "/mine.txt", "dear to me");
  EXPECT_EQ(refused(request_for(toy_, out_)).code(), Errc::failed_precondition);
  auto resumed = request_for(toy_, out_);
  resumed.resume = true;
  EXPECT_EQ(refused(resumed).code(), Errc::failed_precondition);
  EXPECT_EQ(text_of(out_ + "/mine.txt"), "dear to me");
  EXPECT_EQ(refused(request_for(toy_, toy_ + "/inside")).code(), Errc::invalid_argument);
  EXPECT_EQ(refused(request_for(scratch_ / "nowhere", out_)).code(), Errc::not_found);
}

TEST_F(ConvertDatasetTest, ResumeWithOtherOptionsOrInputsIsRefused) {
  converted(request_for(toy_, out_));
  auto request = request_for(toy_, out_);
  request.resume = true;
  EXPECT_TRUE(converted(request).already_finished);
  request.episode_size = 2;
  EXPECT_EQ(refused(request).code(), Errc::failed_precondition);
  request.episode_size = 1000;
  write_text(toy_ + "/meta/modality.json", "{}");
  EXPECT_EQ(refused(request).code(), Errc::failed_precondition);
}

TEST_F(ConvertDatasetTest, VerificationFindsWhatIsNotThere) {
  auto request = request_for(toy_, out_);
  converted(request);
  // exchange two frames' bytes of the copy: only full verification reads them
  const std::string path = out_ + "/videos/observation.images.front/chunk-000/file-000.mp4";
  const auto table = video_packets(path);
  std::string bytes = text_of(path);
  bytes[static_cast<std::size_t>((*table)->samples[3].offset) + 8] ^= 0x55;
  write_text(path, bytes);
  request.resume = true;
  request.verify = ConvertVerify::counts;
  EXPECT_TRUE(convert_dataset(request)->verify_failures.empty());
  request.verify = ConvertVerify::full;
  EXPECT_FALSE(convert_dataset(request)->verify_failures.empty());
}

TEST_F(ConvertDatasetTest, GearMetadataStandBesideLeRobots) {
  fs::remove(toy_ + "/meta/modality.json");
  for (const auto to : {DatasetVersion::v30, DatasetVersion::v21}) {
    const std::string out = out_ + (to == DatasetVersion::v30 ? "3" : "2");
    auto request = request_for(toy_, out, to);
    request.gear = true;
    request.embodiment_tag = "toy";
    converted(request);
    const auto modality = json_of(out + "/meta/modality.json");
    EXPECT_EQ(modality["state"].size(), 1U);
    EXPECT_EQ(modality["action"].size(), 1U);
    EXPECT_EQ(json_of(out + "/meta/embodiment.json")["embodiment_tag"], "toy");
    const auto stats = json_of(out + "/meta/stats.json");
    for (const char* stat : {"mean", "std", "min", "max", "q01", "q99"})
      EXPECT_EQ(stats["action"][stat].size(), 4U) << stat;
  }
}

}  // namespace
}  // namespace troupe::data
