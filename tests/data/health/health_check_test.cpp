#include "data/health/health_check.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/dataset.h"
#include "data/health/html.h"
#include "data/health/metadata_files.h"
#include "data/health/png.h"
#include "data/health/report_json.h"
#include "data/health/report_text.h"
#include "data/toy/toy_dataset.h"
#include "data/video/still_image.h"
#include "data/video/video_encoder.h"
#include "tests/data/data_test_support.h"
#include "tests/data/golden_dataset.h"
#include "tests/support/folder_files.h"
#include "tests/support/lerobot_writer.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_dataset.h"

namespace troupe::data {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
namespace fs = std::filesystem;

/// A toy dataset with real videos: 4 episodes, two cameras.
class HealthCheckTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kEpisodes = 4;

  void SetUp() override {
    write_toy_dataset(folder_ / "toy", {.episodes = kEpisodes, .frames = 32, .height = 32, .width = 32}).value();
    options_.data = folder_ / "toy";
    options_.index.path = folder_ / "index";
    options_.window = {.chunks = 2, .macro_stride = 4, .action_horizon = 4, .video_offsets = {0, 2}};
    options_.horizon = 4;
    options_.threads = 2;
  }
  std::string video(int episode, const std::string& view = "front") const {
    return options_.data + "/videos/chunk-000/observation.images." + view + "/episode_00000" + std::to_string(episode) +
           ".mp4";
  }
  HealthReport check() const { return check_health(options_).value(); }
  /// Encodes a video again: `shade` gives the grey of frame i.
  void write_video(const std::string& path, std::int64_t frames,
                   const std::function<std::uint8_t(std::int64_t)>& shade) const {
    auto encoder = VideoEncoder::open(path, {.width = 32, .height = 32});
    for (std::int64_t i = 0; i < frames; ++i) {
      const std::vector<std::uint8_t> rgb(3 * 32 * 32, shade(i));
      ASSERT_TRUE((*encoder)->write({rgb.data(), 32, 32, 96}));
    }
    ASSERT_TRUE((*encoder)->finish());
  }
  static std::vector<std::string> of_code(const HealthReport& r, const std::string& code, FindingLevel level) {
    std::vector<std::string> out;
    for (const HealthFinding& f : r.findings) {
      if (f.code == code && f.level == level) out.push_back(f.text);
    }
    return out;
  }

  ScratchFolder folder_;
  HealthOptions options_;
};

TEST_F(HealthCheckTest, ASoundDatasetIsDescribed) {
  const HealthReport r = check();
  EXPECT_EQ(r.count(FindingLevel::problem), 0) << stats_text(r);
  EXPECT_EQ(r.episodes.size(), 4u);
  EXPECT_EQ(r.usable_episodes(), 4);
  std::int64_t rows = 0;
  for (const EpisodeReport& e : r.episodes) rows += e.rows;
  EXPECT_EQ(r.frames, rows);
  ASSERT_EQ(r.cameras.size(), 2u);
  for (const CameraReport& c : r.cameras) {
    EXPECT_EQ(c.files, 4);
    EXPECT_EQ(c.frames, rows);
    EXPECT_EQ(c.sizes.begin()->first, "32x32");
    EXPECT_EQ(c.rates.begin()->first, "10");
    EXPECT_EQ(c.gop.max, 12);
    EXPECT_FALSE(c.codecs.empty());
  }
  ASSERT_NE(r.column("observation.state"), nullptr);
  EXPECT_NE(r.column("timestamp"), nullptr);
  const ColumnReport& state = *r.column("observation.state");
  EXPECT_EQ(state.statistics.width(), 4u);
  ASSERT_EQ(state.histograms.size(), 4u);
  std::int64_t counted = 0;
  for (std::int64_t n : state.histograms[0].counts) counted += n;
  EXPECT_EQ(counted, rows);
  EXPECT_EQ(r.label_rows.size(), r.span_lengths.size() > 0 ? r.label_rows.size() : 1);
}

TEST_F(HealthCheckTest, ThreadsAndMemoryDoNotChangeTheReport) {
  options_.decode = true;
  options_.threads = 1;
  HealthReport one = check();
  options_.threads = 3;
  HealthReport three = check();
  one.decoded.seconds = three.decoded.seconds = 0;
  EXPECT_EQ(report_json(one), report_json(three));
  options_.memory_bytes = 0;
  const HealthReport refined = check();
  EXPECT_GT(refined.passes, 1);
  EXPECT_EQ(stats_json(refined, true), stats_json(one, true));
}

TEST_F(HealthCheckTest, EveryFrameIsDecodedAndCounted) {
  options_.decode = true;
  const HealthReport r = check();
  EXPECT_EQ(r.decoded.files.size(), 8u);
  EXPECT_EQ(r.decoded.frames, 2 * r.frames);
  EXPECT_GT(r.decoded.seconds, 0);
  for (const DecodedFile& f : r.decoded.files) EXPECT_EQ(f.error, "") << f.path;
}

TEST_F(HealthCheckTest, D13ADamagedFrameIsAProblemThatNamesItsFile) {
  std::fstream file(video(2), std::ios::in | std::ios::out | std::ios::binary);
  const auto size = static_cast<std::streamoff>(fs::file_size(video(2)));
  file.seekp(size * 2 / 3);
  file << std::string(static_cast<std::size_t>(size / 4), '\xff');
  file.close();
  EXPECT_EQ(check().count(FindingLevel::problem), 0) << "only decoding shows it";
  options_.decode = true;
  const HealthReport r = check();
  const auto found = of_code(r, "D13", FindingLevel::problem);
  ASSERT_EQ(found.size(), 1u) << stats_text(r);
  EXPECT_THAT(found[0], HasSubstr("front/episode_000002.mp4"));
  EXPECT_THAT(found[0], HasSubstr("episode 2"));
  EXPECT_EQ(r.usable_episodes(), 3);
  int bad = 0;
  for (const DecodedFile& f : r.decoded.files) bad += f.error.empty() ? 0 : 1;
  EXPECT_EQ(bad, 1);
}

TEST_F(HealthCheckTest, D13BlackAndFrozenViewsAreWarnings) {
  const auto rows = [&](std::size_t e) { return check().episodes[e].rows; };
  write_video(video(1), rows(1), [](std::int64_t) { return 0; });
  write_video(video(3, "side"), rows(3), [](std::int64_t) { return 90; });
  options_.decode = true;
  const HealthReport r = check();
  EXPECT_EQ(r.count(FindingLevel::problem), 0) << stats_text(r);
  const auto found = of_code(r, "D13", FindingLevel::warning);
  ASSERT_EQ(found.size(), 2u) << stats_text(r);
  EXPECT_THAT(found[0], HasSubstr("front/episode_000001.mp4: all"));
  EXPECT_THAT(found[0], HasSubstr("are black"));
  EXPECT_THAT(found[1], HasSubstr("side/episode_000003.mp4"));
  EXPECT_THAT(found[1], HasSubstr("are the same one"));
}

TEST_F(HealthCheckTest, D09ACameraWithAnotherCodecOrRateIsAWarning) {
  auto encoder = VideoEncoder::open(video(0, "side"), {.width = 32, .height = 32, .fps = 10.05});
  const std::vector<std::uint8_t> rgb(3 * 32 * 32, 7);
  const std::int64_t rows = check().episodes[0].rows;
  for (std::int64_t i = 0; i < rows; ++i) ASSERT_TRUE((*encoder)->write({rgb.data(), 32, 32, 96}));
  ASSERT_TRUE((*encoder)->finish());
  EXPECT_THAT(of_code(check(), "D09", FindingLevel::warning), ::testing::Contains(HasSubstr("differ in rate")));
}

TEST_F(HealthCheckTest, TheHtmlReportNeedsNothingElseAndEscapesWhatTheDatasetSays) {
  options_.pictures = true;
  HealthReport r = check();
  EXPECT_EQ(r.thumbnails.size(), 2u * 3u * 3u);
  r.texts.begin()->second = "<script>alert(1)</script> & \"quotes\" \xff";
  const std::string html = report_html(r);
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  for (const char* outside : {"http://", "https://"}) EXPECT_THAT(html, Not(HasSubstr(outside)));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;quotes&quot; \xEF\xBF\xBD"));
  EXPECT_THAT(html, HasSubstr("src=\"data:image/png;base64,iVBORw0KGgo"));
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, HasSubstr("observation.state [3]"));
  for (const Defect& d : defects()) EXPECT_THAT(html, HasSubstr(">" + std::string(d.code) + "</td>"));
}

TEST_F(HealthCheckTest, FindingsComeFirstAndLinkToTheirEpisodesUpClose) {
  options_.pictures = true;
  HealthReport r = check();
  ASSERT_EQ(r.closeups.size(), std::min<std::size_t>(6, r.episodes.size()));
  for (const EpisodeCloseup& c : r.closeups) {
    EXPECT_GT(c.clip.size(), 500u) << c.no_clip;
    ASSERT_FALSE(c.columns.empty());
    EXPECT_EQ(c.columns[0].values.size(), r.columns[0].histograms.size());
    EXPECT_EQ(c.columns[0].values[0].size(), c.columns[0].seconds.size());
  }
  r.findings.insert(r.findings.begin(), {"H02", FindingLevel::note, r.root, "a note", r.episodes[1].index});
  r.findings.push_back({"D06", FindingLevel::problem, r.root, "a problem", 77});
  r.findings.push_back({"D06", FindingLevel::problem, r.root, r.root + ": see " + r.root + "/meta/info.json", -1});
  std::vector<double>& joint = r.closeups[0].columns[0].values[1];
  joint.assign(joint.size(), 0.5);
  const std::string html = report_html(r);
  EXPECT_THAT(html, HasSubstr(">see meta/info.json</td>")) << "the folder stands above";
  EXPECT_THAT(html, HasSubstr(" stays as it is in [1]"));
  EXPECT_LT(html.find("a problem"), html.find("a note"));
  EXPECT_LT(html.find("a note"), html.find("<h2>Overview"));
  EXPECT_THAT(html, HasSubstr("<a href=\"#episode-77\">"));
  EXPECT_THAT(html, HasSubstr("id=\"episode-77\""));
  EXPECT_THAT(html, HasSubstr("src=\"data:video/mp4;base64,"));
  EXPECT_LT(html.size(), std::size_t{8} << 20);
}

TEST_F(HealthCheckTest, AFindingInEveryOneOfManyEpisodesStaysWithinTheSizeOfAPage) {
  HealthReport r = check();
  const EpisodeReport episode = r.episodes[0];
  HealthFinding everywhere{"D06", FindingLevel::problem, r.root, "a file that all of them share", 0};
  for (std::int64_t i = 0; i < 100'000; ++i) {
    r.episodes.push_back(episode);
    r.episodes.back().index = i;
    everywhere.others.push_back(i + 1);
    r.findings.push_back({"H02", FindingLevel::note, r.root + "/" + std::to_string(i), std::string(400, 'x'), i});
  }
  r.findings.push_back(everywhere);
  const std::string html = report_html(r);
  EXPECT_LT(html.size(), std::size_t{2} << 20) << "clips and curves have the rest of 8 MiB";
  EXPECT_THAT(html, HasSubstr("a file that all of them share"));
}

TEST_F(HealthCheckTest, TheJsonReportSaysHowQuantilesWereFound) {
  const Json json = Json::parse(report_json(check()));
  EXPECT_EQ(json["format"], "troupe-dataset-stats");
  EXPECT_EQ(json["statistics"]["method"]["columns"], "values kept");
  EXPECT_EQ(json["statistics"]["columns"]["action"]["q99"].size(), 4u);
  EXPECT_EQ(json["episodes"]["list"].size(), 4u);
  EXPECT_TRUE(json["sound"].get<bool>());
  options_.memory_bytes = 0;
  EXPECT_THAT(Json::parse(report_json(check()))["statistics"]["method"]["columns"].get<std::string>(),
              HasSubstr("refinement"));
}

TEST_F(HealthCheckTest, RelativeStatisticsFollowTheDefaultRule) {
  // state.arm and action.arm are one key, state.gripper and action.gripper another: only the arm is relative.
  std::ofstream(options_.data + "/meta/modality.json")
      << R"({"state": {"arm": {"start": 0, "end": 3}, "gripper": {"start": 3, "end": 4}},)"
      << R"("action": {"arm": {"start": 0, "end": 3}, "gripper": {"start": 3, "end": 4}},)"
      << R"("video": {"front": {"original_key": "observation.images.front"}}})";
  const HealthReport r = check();
  ASSERT_EQ(r.relative.size(), 1u);
  EXPECT_EQ(r.relative[0].action.name, "arm");
  EXPECT_EQ(r.relative[0].statistics.pooled.width(), 3u);
  EXPECT_EQ(r.relative[0].statistics.steps.size(), 4u);
  options_.relative_keys = {"gripper"};
  EXPECT_EQ(check().relative[0].action.name, "gripper");
  options_.relative_keys = {"leg"};
  const auto refused = check_health(options_);
  EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
  EXPECT_THAT(refused.error().message(), HasSubstr("'leg'; the action keys are arm, gripper"));
}

TEST_F(HealthCheckTest, TheDatasetTakesTheStatisticsThatWereWritten) {
  const HealthReport r = check();
  const auto files = metadata_files(r, std::nullopt);
  write_metadata(options_.data + "/meta", *files, "--out DIR").value();
  JobConfig job;
  job.data.sets = {{options_.data, 1.0}};
  job.data.embodiment.layout = "horizontal";
  job.data.embodiment.prompt = "none";
  job.data.window = options_.window;
  job.data.index.build = "never";
  job.data.image.height = job.data.image.width = 16;
  const auto set = Dataset::open(job.data, job.model);
  EXPECT_EQ((*set)->statistics().state[0].q99, r.column("observation.state")->statistics.q99);
  EXPECT_EQ((*set)->statistics().action[0].std, r.column("action")->statistics.std);
  EXPECT_EQ(of_code(check(), "D12", FindingLevel::warning), of_code(r, "D12", FindingLevel::warning));
}

TEST_F(HealthCheckTest, WithAnEmbodimentGearsFilesAreWrittenWhereThereAreNone) {
  fs::remove(options_.data + "/meta/modality.json");
  options_.embodiment = EmbodimentConfig{};
  options_.embodiment->tag = "my_robot";
  options_.embodiment->views = {"front"};
  const HealthReport r = check();
  const auto files = metadata_files(r, options_.embodiment);
  std::map<std::string, Json> by_name;
  for (const MetaText& f : *files) by_name[f.name] = Json::parse(f.text);
  EXPECT_EQ(by_name.at("embodiment.json")["embodiment_tag"], "my_robot");
  EXPECT_EQ(by_name.at("modality.json")["video"]["front"]["original_key"], "observation.images.front");
  EXPECT_EQ(by_name.at("modality.json")["state"]["state"]["end"], 4);
  const Json& metadata = by_name.at("metadata.json")["my_robot"];
  EXPECT_EQ(metadata["modalities"]["video"]["front"]["resolution"], (Json{32, 32}));
  EXPECT_EQ(metadata["statistics"]["action"]["action"]["q99"].size(), 4u);
  std::ofstream(options_.data + "/meta/modality.json") << by_name.at("modality.json");
  const auto again = metadata_files(check(), options_.embodiment);
  for (const MetaText& f : *again) EXPECT_NE(f.name, "modality.json");
}

TEST_F(HealthCheckTest, ACameraThatWasNeverRecordedIsAWarningAndMissingVideosAreProblems) {
  fs::remove_all(options_.data + "/videos/chunk-000/observation.images.side");
  const std::string info = options_.data + "/meta/info.json";
  EXPECT_EQ(of_code(check(), "D06", FindingLevel::problem).size(), 4u) << "modality.json names the camera";
  fs::remove(options_.data + "/meta/modality.json");
  EXPECT_EQ(of_code(check(), "D06", FindingLevel::problem).size(), 4u) << "total_videos counts them";
  Json json = Json::parse(testing::text_of(info));
  json["total_videos"] = 4;
  std::ofstream(info) << json;
  const HealthReport r = check();
  EXPECT_EQ(r.count(FindingLevel::problem), 0) << stats_text(r);
  ASSERT_EQ(r.cameras.size(), 1u);
  EXPECT_THAT(of_code(r, "D02", FindingLevel::warning), ::testing::Contains(HasSubstr("'observation.images.side'")));
  fs::remove_all(options_.data + "/videos");
  EXPECT_EQ(of_code(check(), "D06", FindingLevel::problem).size(), 8u);
}

TEST_F(HealthCheckTest, D12StatisticsOfOtherDataAreAWarning) {
  const auto files = metadata_files(check(), std::nullopt);
  Json stats = Json::parse((*files)[0].text);
  stats["action"]["mean"][1] = stats["action"]["mean"][1].get<double>() + 0.5;
  std::ofstream(options_.data + "/meta/stats.json") << stats;
  const auto found = of_code(check(), "D12", FindingLevel::warning);
  EXPECT_THAT(found, ::testing::Contains(HasSubstr("stats.json: mean of 'action'[1]")));
}

TEST(HealthNotesTest, CopiesIdleRowsAndJumpsAreNoted) {
  TinyEpisode idle, jumping;
  idle.state = [](std::int64_t r, std::int64_t) { return r < 30 ? 1.0 : static_cast<double>(r); };
  jumping.state = [](std::int64_t r, std::int64_t d) {
    return r == 20 ? 500.0 : 0.25 * static_cast<double>(r) + static_cast<double>(d);
  };
  const TinyDataset files({{}, idle, {}, jumping});
  HealthOptions options;
  options.data = files.root();
  options.window = files.job().data.window;
  options.probe = TinyDataset::probe;
  options.index.path = files.root() + "/index";
  const auto r = check_health(options);
  std::map<std::string, std::int64_t> episode_of;
  for (const HealthFinding& f : r->findings) {
    if (f.level == FindingLevel::note) episode_of[f.code] = f.episode;
  }
  EXPECT_EQ(episode_of["H01"], 2);
  EXPECT_EQ(episode_of["H02"], 1);
  EXPECT_EQ(r->episodes[1].idle_rows, 29);
  EXPECT_EQ(r->episodes[1].longest_idle, 29);
  EXPECT_EQ(r->episodes[3].outliers, 3);
  EXPECT_EQ(episode_of["H03"], 3);
  EXPECT_EQ(r->episodes[3].jumps, 6);
  EXPECT_EQ(r->count(FindingLevel::problem), 0);
}

TEST(HealthFormatsTest, AllVersionsAndImagesInParquetGiveTheSameStatistics) {
  std::string want;
  for (const char* version : {"v2.0", "v2.1", "v3.0"}) {
    for (const bool images : {false, true}) {
      SCOPED_TRACE(std::string(version) + (images ? " images" : " videos"));
      const LerobotFolder files(LerobotSet{.version = version, .images = images});
      HealthOptions options;
      options.data = files.root();
      options.window = {.chunks = 2, .macro_stride = 4, .action_horizon = 4, .video_offsets = {0, 2}};
      options.probe = TinyDataset::probe;
      options.index.path = files.root() + "/index";
      options.decode = images;
      const auto r = check_health(options);
      EXPECT_EQ(r->count(FindingLevel::problem), 0) << stats_text(*r);
      EXPECT_EQ(r->episodes.size(), 5u);
      EXPECT_EQ(r->cameras.size(), 2u);
      EXPECT_EQ(r->cameras[0].in_parquet, images);
      EXPECT_EQ(r->decoded.frames, images ? 2 * r->frames : 0);
      const std::string statistics = stats_json(*r, false);
      if (want.empty()) want = statistics;
      EXPECT_EQ(statistics, want);
    }
  }
}

/// Recordings as people share them.
class RealHealthTest : public ::testing::Test {
 protected:
  HealthReport check(const std::string& name, bool decode) {
    HealthOptions options;
    options.data = shared_data() + "/" + name;
    options.index.path = folder_.path();
    options.decode = decode;
    return check_health(options).value();
  }
  ScratchFolder folder_;
};

TEST_F(RealHealthTest, Gr1HasTheReferencesRelativeStatistics) {
  if (!fs::exists(shared_data() + "/gr1-pick-place")) GTEST_SKIP() << "no dataset gr1-pick-place";
  const HealthReport r = check("gr1-pick-place", false);
  EXPECT_EQ(r.count(FindingLevel::problem), 0) << stats_text(r);
  EXPECT_EQ(r.frames, 2096);
  ASSERT_EQ(r.cameras.size(), 1u);
  EXPECT_EQ(r.cameras[0].codecs.count("h264"), 1u);
  EXPECT_TRUE(r.cameras[0].reordered);
  auto golden = statistics_cases();
  std::erase_if(golden, [](const DatasetCase& c) { return fs::path(c.root).filename() != "gr1-pick-place"; });
  if (golden.empty()) GTEST_SKIP() << "no golden case of kind statistics of gr1-pick-place";
  const Json relative = Json::parse(relative_stats_json(r)), steps = Json::parse(relative_horizon_stats_json(r));
  for (const auto& [source, file, root] : golden) {
    if (file.contains("episodes") ||
        (file.contains("action_delta_indices") && file["action_delta_indices"].size() != 24))
      continue;
    for (const auto& [key, want] : file["relative_statistics"].items()) {
      for (const auto& [statistic, values] : want.items()) {
        SCOPED_TRACE(key + " " + statistic);
        EXPECT_LE(
            worst_error(relative.at(key).at(statistic).get<std::vector<double>>(), values.get<std::vector<double>>()),
            1e-9);
        const OrderedJson& rows = file["relative_per_horizon_statistics"][key][statistic];
        EXPECT_LE(worst_error(flat<double>(OrderedJson::parse(steps.at(key).at(statistic).dump())), flat<double>(rows)),
                  1e-9);
      }
    }
  }
}

TEST_F(RealHealthTest, EveryFrameOfG1IsDecoded) {
  if (!fs::exists(shared_data() + "/g1-bottle")) GTEST_SKIP() << "no dataset g1-bottle";
  const HealthReport r = check("g1-bottle", true);
  EXPECT_EQ(r.count(FindingLevel::problem), 0) << stats_text(r);
  EXPECT_EQ(r.frames, 1045);
  EXPECT_EQ(r.decoded.frames, 1045);
  EXPECT_EQ(r.cameras.at(0).codecs.count("av1"), 1u);
  EXPECT_EQ(r.cameras[0].gop.median, 2);
}

TEST(HealthPngTest, ImagesSurviveTheRoundTrip) {
  std::vector<std::uint8_t> rgb(3 * 5 * 7);
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(7 * i);
  const auto png = encode_png({rgb.data(), 5, 7, 21});
  EXPECT_EQ(decode_still_image(std::as_bytes(std::span(png->data(), png->size())), "x")->rgb, rgb);
}

}  // namespace
}  // namespace troupe::data
