#include "data/dataset.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/fault.h"
#include "tests/support/tiny_dataset.h"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;

Result<std::shared_ptr<const Dataset>> open(const JobConfig& job) {
  return Dataset::open(job.data, job.model, TinyDataset::options());
}

std::shared_ptr<const Dataset> must_open(const JobConfig& job) { return open(job).value(); }

std::string refusal(const JobConfig& job) {
  const auto set = open(job);
  return set ? "opened" : set.error().message();
}

TEST(DatasetTest, AGoodDatasetOpensWithoutFindings) {
  const TinyDataset files;
  const auto set = must_open(files.job());
  EXPECT_EQ(set->episodes().size(), 3u);
  EXPECT_TRUE(set->problems().empty());
  EXPECT_TRUE(set->warnings().empty()) << set->warnings()[0].text;
  EXPECT_GT(set->train().size(), 3u * 20u);
  EXPECT_EQ(set->eval().size(), 0u);
  EXPECT_EQ(set->task_text(1), "put it down");
  EXPECT_EQ(set->columns().views.size(), 2u);
}

TEST(DatasetTest, EveryBadFileIsListedOnItsOwnLine) {
  const TinyDataset files;
  fs::remove(files.video(0));
  fs::remove(files.video(2, "right"));
  fs::resize_file(files.parquet(2), 10);
  const std::string text = refusal(files.job());
  std::size_t findings = 0;
  for (std::size_t at = text.find("\n  D"); at != std::string::npos; at = text.find("\n  D", at + 1)) ++findings;
  EXPECT_EQ(findings, 3u) << text;
  EXPECT_NE(text.find("to mend D06"), std::string::npos) << text;
  EXPECT_NE(text.find(files.video(0)), std::string::npos);
  EXPECT_NE(text.find(files.video(2, "right")), std::string::npos);
  EXPECT_NE(text.find(files.parquet(2)), std::string::npos);
}

TEST(DatasetTest, AReadErrorNamesTheFile) {
  const TinyDataset files;
  ASSERT_TRUE(arm_faults("parquet@episode_000002:fail"));
  const std::string text = refusal(files.job());
  ASSERT_TRUE(arm_faults(""));
  EXPECT_NE(text.find(files.parquet(2)), std::string::npos) << text;
}

TEST(DatasetTest, OneMissingFrameShortensTheEpisode) {
  const TinyDataset files;
  files.write_video(1, "left", 39);
  files.write_video(2, "left", 41);
  const auto set = must_open(files.job());
  EXPECT_EQ(set->episodes()[1].length, 39);
  EXPECT_EQ(set->episodes()[1].rows, 40);
  EXPECT_EQ(set->episodes()[2].length, 40);
}

TEST(DatasetTest, ShortEpisodesAreCounted) {
  const TinyEpisode brief{.rows = 8};
  const TinyDataset files({{}, brief});
  const auto set = must_open(files.job());
  ASSERT_EQ(set->warnings().size(), 1u);
  EXPECT_EQ(set->warnings()[0].code, "D14");
  const TinyDataset none({brief});
  EXPECT_NE(refusal(none.job()).find("no training sample"), std::string::npos) << refusal(none.job());
}

TEST(DatasetTest, EvaluationEpisodesAreHeldOutAndSpreadEvenly) {
  const TinyDataset files;
  JobConfig job = files.job();
  const std::uint64_t all = must_open(job)->train().size();
  job.data.eval_episodes = {1};
  const auto set = must_open(job);
  EXPECT_EQ(set->train().size() + set->eval().size(), all);
  for (std::uint64_t i = 0; i < set->train().size(); ++i)
    EXPECT_NE(set->episodes()[set->train().at(i).episode].index, 1);
  ASSERT_EQ(set->eval_size(4), 4u);
  std::int64_t before = -1;
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_GT(set->eval_entry(i, 4).anchor, before);
    before = set->eval_entry(i, 4).anchor;
  }
  EXPECT_EQ(set->eval_size(1 << 20), set->eval().size());
  job.data.eval_episodes = {5};
  EXPECT_NE(refusal(job).find("data.eval_episodes names 5"), std::string::npos);
}

TEST(DatasetTest, TheFingerprintFollowsFilesAndWindow) {
  const TinyDataset files;
  JobConfig job = files.job();
  const std::string before = must_open(job)->fingerprint();
  EXPECT_EQ(before.size(), 32u);
  EXPECT_EQ(must_open(job)->fingerprint(), before);
  job.data.image.height = 10;
  EXPECT_EQ(must_open(job)->fingerprint(), before) << "the image chain does not renumber samples";
  job.data.window.macro_stride = 5;
  EXPECT_NE(must_open(job)->fingerprint(), before);
  job = files.job();
  files.write_lines("meta/tasks.jsonl", {R"({"task_index": 0, "task": "Lift the cup"})"});
  EXPECT_NE(must_open(job)->fingerprint(), before);
}

TEST(DatasetTest, StatisticsAreComputedUnlessTheFileHasThem) {
  const TinyDataset files;
  const auto computed = must_open(files.job())->statistics();
  EXPECT_FLOAT_EQ(static_cast<float>(computed.state[0].max[0]), 39 * 0.25f);
  files.write_lines("meta/stats.json",
                    {R"({"observation.state": {"min": [0,0,0], "max": [5,5,5], "mean": [1,1,1], "std": [2,2,2],
      "q01": [0.5,0.5,0.5], "q99": [4,4,4]}, "action": {"min": [0,0,0]}})"});
  const auto read = must_open(files.job())->statistics();
  EXPECT_EQ(read.state[0].max, (std::vector<double>{5, 5, 5}));
  EXPECT_EQ(read.action[0].max, computed.action[0].max) << "an incomplete entry is computed";
  files.write_lines("meta/stats.json", {"{ not json"});
  const auto set = must_open(files.job());
  EXPECT_EQ(set->statistics().state[0].max, computed.state[0].max);
  ASSERT_EQ(set->warnings().size(), 1u);
  EXPECT_EQ(set->warnings()[0].code, "D12");
}

TEST(DatasetTest, MetadataCarriesWhatInferenceNeeds) {
  const TinyDataset files;
  const auto json = nlohmann::json::parse(must_open(files.job())->metadata_json());
  const auto& tag = json["gr1_unified"];
  EXPECT_EQ(tag["embodiment_tag"], "gr1_unified");
  EXPECT_EQ(tag["statistics"]["action"]["action"]["q99"].size(), 3u);
  EXPECT_EQ(tag["modalities"]["video"]["left"]["resolution"], (std::vector<int>{16, 12}));
}

TEST(DatasetTest, ConfigurationErrorsNameTheKey) {
  const TinyDataset files;
  JobConfig job = files.job();
  job.model.dit.action_dim = 2;
  EXPECT_NE(refusal(job).find("model.dit.action_dim is 2"), std::string::npos) << refusal(job);
  job = files.job();
  job.data.embodiment.layout = "single";
  EXPECT_EQ(open(job).error().code(), Errc::invalid_argument);
  job = files.job();
  job.data.sets.push_back(job.data.sets[0]);
  EXPECT_NE(refusal(job).find("data.sets lists 2 datasets"), std::string::npos);
  job.data.sets = {{"/nonexistent", 1.0}};
  EXPECT_NE(refusal(job).find("/nonexistent/meta/info.json does not exist"), std::string::npos) << refusal(job);
}

TEST(DatasetTest, TextThatCleaningRefusesIsFoundAtOpening) {
  const TinyDataset files;
  files.write_lines("meta/tasks.jsonl", {R"({"task_index": 0, "task": "don\u00e2\u20ac\u2122t spill"})"});
  EXPECT_NE(refusal(files.job()).find("D11"), std::string::npos) << refusal(files.job());
}

TEST(DatasetTest, FilteredStepsAreNeverAnchors) {
  const TinyDataset files;
  const std::uint64_t all = must_open(files.job())->train().size();
  files.write_lines("meta/step_filter.jsonl", {R"({"episode_index": 1, "step_indices": [10, 11]})"});
  EXPECT_EQ(must_open(files.job())->train().size(), all - 2);
}

}  // namespace
}  // namespace troupe::data
