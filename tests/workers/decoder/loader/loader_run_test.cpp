#include "workers/decoder/loader/loader_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "configs/loader.h"
#include "data/toy/toy_dataset.h"
#include "tests/support/scratch_folder.h"
#include "workers/decoder/loader/dataset_job.h"
#include "workers/decoder/loader/loader_text.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

Result<void> no_tokens(const std::string&, std::span<std::int64_t>, std::span<std::int64_t>) { return {}; }

class LoaderRunTest : public ::testing::Test {
 protected:
  void SetUp() override { write_toy_dataset(folder_ / "data", {.episodes = 3, .frames = 40}).value(); }
  /// The job made up for the toy dataset, with small frames and its index in the scratch folder.
  JobConfig job(std::vector<std::string> overrides = {}) const {
    const auto made = job_of_dataset(folder_ / "data");
    for (const char* words : {"data.image.height=32", "data.image.width=64"}) overrides.emplace_back(words);
    overrides.push_back("data.index.path=" + (folder_ / "index"));
    const LoadOutcome loaded = load_job_text("job", made->yaml, overrides);
    for (const std::string& error : loaded.errors) ADD_FAILURE() << error;
    return loaded.config ? loaded.config->job : JobConfig{};
  }
  static Result<LoaderResult> run(const JobConfig& job, const LoaderOptions& options) {
    TROUPE_ASSIGN(const auto mixture, Mixture::open(job.data, job.model));
    return run_loader(mixture, job, no_tokens, options);
  }

  ScratchFolder folder_;
};

TEST_F(LoaderRunTest, EverySampleIsMeasuredByEveryStage) {
  const JobConfig toy = job();
  for (const std::int64_t decoders : {1, 2}) {
    const auto result = run(toy, {.samples = 10, .decoders = decoders, .micro_batch = 4});
    EXPECT_EQ(result->samples, 12);  // whole batches
    EXPECT_EQ(result->bad_samples, 0);
    EXPECT_FALSE(result->stopped);
    EXPECT_EQ(result->build_seconds.size(), 12u);
    const std::int64_t frames = 12 * 2 * (toy.data.window.chunks * 8 + 1);
    EXPECT_EQ(result->stages.frames_delivered, frames);
    EXPECT_GE(result->stages.frames_decoded, frames / 2);
    EXPECT_GT(result->stages.bytes_read, 0);
    for (const char* stage : {"decode", "transform", "table", "send", "collate"}) {
      double time = 0;
      for (const auto& [name, seconds] : result->stage_list()) time += name == stage ? seconds : 0;
      EXPECT_GT(time, 0) << stage;
    }
    EXPECT_LE(result->first_batch_seconds, result->seconds);
    EXPECT_GT(result->resident_last, 0);
    EXPECT_GE(result->build_quantile(0.99), result->build_quantile(0.5));
  }
}

TEST_F(LoaderRunTest, DecodersWaitForASlowConsumer) {
  const auto fast = run(job(), {.samples = 8, .decoders = 1, .micro_batch = 2});
  const auto slow = run(job(), {.samples = 8, .decoders = 2, .micro_batch = 2, .consume_rate = fast->rate() / 8});
  // the share of stalled time is the machine's affair; that the decoders waited for slots is not
  EXPECT_GT(slow->decoder_wait, 0);
  EXPECT_GE(slow->capacity(), slow->rate());
}

TEST_F(LoaderRunTest, AStoppedRunKeepsWhatWasMeasured) {
  std::atomic<int> asked{0};
  const auto result =
      run(job(), {.samples = 100000, .decoders = 1, .micro_batch = 2, .stopped = [&] { return ++asked > 3; }});
  EXPECT_TRUE(result->stopped);
  EXPECT_LT(result->samples, 100000);
  EXPECT_GT(result->seconds, 0);
}

TEST_F(LoaderRunTest, ABadSampleEndsTheRunOrIsCounted) {
  const JobConfig failing = job();
  const auto mixture = Mixture::open(failing.data, failing.model);
  // after the files were checked
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_ / "data")) {
    if (file.path().filename() == "episode_000001.parquet") std::filesystem::resize_file(file.path(), 100);
  }
  const auto failed = run_loader(*mixture, failing, no_tokens, {.samples = 60, .decoders = 1, .micro_batch = 2});
  EXPECT_EQ(failed.error().code(), Errc::data_loss);
  EXPECT_THAT(failed.error().message(), HasSubstr("episode_000001.parquet"));

  const JobConfig skipping = job({"data.bad_sample=skip"});
  const auto counted = run_loader(*mixture, skipping, no_tokens, {.samples = 60, .decoders = 2, .micro_batch = 2});
  EXPECT_GT(counted->bad_samples, 0);
  EXPECT_LT(counted->bad_samples, 60);
  EXPECT_THAT(counted->first_bad, HasSubstr("episode_000001.parquet"));
}

TEST_F(LoaderRunTest, TheJobMadeUpForADatasetFitsItsEpisodes) {
  // 40 rows: three rows apart only one block of 24 fits
  const JobConfig toy = job();
  EXPECT_EQ(toy.data.embodiment.layout, "horizontal");
  EXPECT_EQ(toy.data.embodiment.views.size(), 2u);
  EXPECT_EQ(toy.data.window.chunks, 1);
  EXPECT_EQ(toy.data.window.macro_stride, 24);
  ASSERT_TRUE(write_toy_dataset(folder_ / "short", {.episodes = 2, .frames = 14}));
  const auto made = job_of_dataset(folder_ / "short");
  const LoadOutcome loaded = load_job_text("job", made->yaml, {});
  ASSERT_TRUE(loaded.config);
  EXPECT_EQ(loaded.config->job.data.window.macro_stride, 8);
  EXPECT_THAT(made->notes, ::testing::Contains(HasSubstr("window of 9 rows")));
}

TEST_F(LoaderRunTest, TheJobMadeUpForADatasetFindsItsColumns) {
  const std::string path = folder_ / "data/meta/info.json";
  const auto original = [&] {
    std::ifstream in(path);
    return nlohmann::json::parse(in);
  }();
  const auto embodiment = [&](const nlohmann::json& info) {
    std::ofstream(path) << info;
    std::filesystem::remove(folder_ / "data/meta/modality.json");
    return job().data.embodiment;
  };
  const auto renamed = [&](std::initializer_list<std::pair<std::string, std::string>> names) {
    nlohmann::json info = original;
    for (const auto& [from, to] : names) {
      EXPECT_TRUE(info["features"].contains(from)) << from;
      info["features"][to] = info["features"][from];
      info["features"].erase(from);
    }
    return embodiment(info);
  };
  EmbodimentConfig e = renamed({{"observation.state", "state"}, {"action", "actions"}});
  EXPECT_TRUE(e.state_keys.empty() && e.action_keys.empty()) << "the whole columns";
  e = renamed({{"observation.state", "observation.state.arm"}, {"action", "action.arm"}});
  EXPECT_EQ(e.state_keys, std::vector<std::string>{"arm"});
  EXPECT_EQ(e.action_keys, std::vector<std::string>{"arm"});
}

TEST_F(LoaderRunTest, MissingVideosAreTheDatasetsErrorAndNotTheJobs) {
  const auto remove_videos = [&](const std::string& name) {
    std::vector<std::filesystem::path> found;
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder_ / "data/videos")) {
      if (file.path().filename().string().starts_with(name)) found.push_back(file.path());
    }
    EXPECT_FALSE(found.empty());
    for (const auto& path : found) std::filesystem::remove(path);
  };
  for (const char* name : {"episode_000000", "episode_"}) {  // those of the first episode, then all
    remove_videos(name);
    const JobConfig toy = job();
    EXPECT_EQ(toy.data.embodiment.views.size(), 2u);
    const auto opened = Mixture::open(toy.data, toy.model);
    EXPECT_THAT(opened.error().message(), HasSubstr("D06"));
    EXPECT_THAT(opened.error().message(), HasSubstr("episode_000000.mp4"));
  }
}

TEST_F(LoaderRunTest, OneLongEpisodeAmongShortOnesIsEnough) {
  const std::string path = folder_ / "data/meta/episodes.jsonl";
  std::ofstream(path) << R"({"episode_index": 0, "tasks": [], "length": 1})"
                      << "\n"
                      << R"({"episode_index": 1, "tasks": [], "length": 40})"
                      << "\n"
                      << R"({"episode_index": 2, "tasks": [], "length": 2})"
                      << "\n";
  EXPECT_EQ(job().data.window.macro_stride, 24);
  std::ofstream(path) << R"({"episode_index": 0, "tasks": [], "length": 8})"
                      << "\n";
  const auto refused = job_of_dataset(folder_ / "data");
  EXPECT_THAT(refused.error().message(), HasSubstr("the longest episode has 8 rows"));
}

TEST_F(LoaderRunTest, AFolderWithoutADatasetIsRefused) {
  EXPECT_EQ(job_of_dataset(folder_ / "nothing").error().code(), Errc::not_found);
}

LoaderResult measured(double decode, double transform, double collate, double wait) {
  LoaderResult r;
  r.decoders = 2;
  r.samples = 100;
  r.seconds = 10;
  r.stages.decode = decode;
  r.stages.transform = transform;
  r.stages.collate = collate;
  r.decoder_wait = wait;
  for (int i = 1; i <= 100; ++i) r.build_seconds.push_back(0.001 * i);
  return r;
}

TEST(LoaderResultTest, TheBottleneckIsTheStageThatTakesMost) {
  EXPECT_EQ(find_bottleneck(measured(12, 6, 1, 0), 2).stage, "decode");
  EXPECT_EQ(find_bottleneck(measured(6, 12, 1, 0), 2).stage, "transform");
  // collation is one thread: 9 of its 10 seconds weigh more than 12 of the decoders' 20
  EXPECT_EQ(find_bottleneck(measured(12, 1, 9, 5), 2).stage, "collate");
}

TEST(LoaderResultTest, IdleCoresAreOfferedFirst) {
  EXPECT_THAT(find_bottleneck(measured(12, 6, 1, 0), 8).advice, HasSubstr("--decoders 8"));
  EXPECT_THAT(find_bottleneck(measured(12, 6, 1, 0), 2).advice, ::testing::Not(HasSubstr("--decoders")));
}

TEST(LoaderResultTest, AConsumerThatIsSlowerThanTheLoaderIsNamed) {
  LoaderResult r = measured(5, 5, 1, 8);
  r.consume_rate = 3;
  r.consume_seconds = 10;
  r.stall_seconds = 0.05;
  EXPECT_EQ(find_bottleneck(r, 2).stage, "consumer");
  r.stall_seconds = 2;
  EXPECT_NE(find_bottleneck(r, 2).stage, "consumer");
}

TEST(LoaderResultTest, QuantilesAreThoseOfTheSamples) {
  const LoaderResult r = measured(1, 1, 1, 1);
  EXPECT_DOUBLE_EQ(r.build_quantile(0.5), 0.050);
  EXPECT_DOUBLE_EQ(r.build_quantile(0.99), 0.099);
  EXPECT_DOUBLE_EQ(r.build_quantile(1), 0.100);
  EXPECT_DOUBLE_EQ(r.build_quantile(0), 0.001);
  EXPECT_DOUBLE_EQ(LoaderResult{}.build_quantile(0.5), 0);
}

TEST(LoaderResultTest, TheJsonHasItsKeys) {
  const auto json = nlohmann::json::parse(
      loader_json(measured(12, 6, 1, 0), {.source = "x", .episodes = 3, .windows = 9, .cores = 2}));
  EXPECT_DOUBLE_EQ(json.at("samples_per_second"), 10);
  EXPECT_DOUBLE_EQ(json.at("stage_ms_per_sample").at("decode"), 120);
  for (const char* stage :
       {"read", "decode", "convert", "transform", "table", "text", "send", "collate", "wait", "other"}) {
    EXPECT_TRUE(json.at("stage_ms_per_sample").contains(stage)) << stage;
  }
  for (const char* key :
       {"cores_used", "first_batch_seconds", "latency_ms", "pictures_decoded_per_delivered", "read_bytes_per_second",
        "cache_hit_rate", "stall_percent", "resident_bytes", "bottleneck", "open_seconds"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_THAT(loader_text(measured(12, 6, 1, 0), {.source = "x", .cores = 2}),
              HasSubstr("bottleneck            decode: "));
}

}  // namespace
}  // namespace troupe::workers
