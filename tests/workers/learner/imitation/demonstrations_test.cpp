// Samples of demonstrations against the rows of the dataset that they come from.
#include "workers/learner/imitation/demonstrations.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/parquet_table.h"
#include "data/toy/toy_dataset.h"
#include "tests/support/scratch_folder.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kSeed = 3;
constexpr std::int64_t kEvalSamples = 8;

/// Toy datasets, whose rows have a state and an action of four numbers.
class DemonstrationsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<ScratchFolder>();
    for (const std::uint64_t seed : {1, 2}) {
      write_toy_dataset(*folder_ / std::to_string(seed),
                        {.episodes = 3, .frames = 16, .height = 16, .width = 16, .seed = seed})
          .value();
    }
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static DataConfig data(std::vector<std::int64_t> held_out = {}) {
    DataConfig config;
    config.sets = {{.path = *folder_ / "1"}};
    config.eval_episodes = std::move(held_out);
    return config;
  }
  static JobConfig job(const DataConfig& config) {
    JobConfig job;
    job.data = config;
    return job;
  }
  static PolicyShape shape(std::int64_t chunk = 3) {
    return {.state_dim = 4, .images = {}, .action_dim = 4, .chunk = chunk, .action_low = {}, .action_high = {}};
  }
  static std::shared_ptr<const Demonstrations> open(const DataConfig& config,
                                                    const PolicyShape& shape = DemonstrationsTest::shape()) {
    return Demonstrations::open(job(config), shape).value();
  }
  static std::string refusal(const DataConfig& config, const PolicyShape& shape = DemonstrationsTest::shape()) {
    const auto opened = Demonstrations::open(job(config), shape);
    return opened ? "no error" : opened.error().message();
  }

  /// One sample, read back.
  struct Built {
    std::vector<float> state, action;
    std::vector<std::uint8_t> counts;
    bool operator<(const Built& other) const { return std::tie(state, action) < std::tie(other.state, other.action); }
    bool operator==(const Built&) const = default;
  };
  static Built build(const Demonstrations& all, Split split, std::int64_t position) {
    auto* bytes = static_cast<std::byte*>(std::aligned_alloc(64, static_cast<std::size_t>(all.layout().bytes)));
    const std::span<std::byte> slot(bytes, static_cast<std::size_t>(all.layout().bytes));
    all.build(split, position, kSeed, kEvalSamples, slot).value();
    Built out;
    const auto take = [&]<class T>(const char* field, std::vector<T>& to) {
      const auto values = field_values<T>(slot, all.layout().field(field));
      to.assign(values.begin(), values.end());
    };
    take("state", out.state);
    take("action", out.action);
    take("counts", out.counts);
    EXPECT_EQ(field_values<std::int64_t>(slot, all.layout().field("position"))[0], position);
    std::free(bytes);
    return out;
  }

  /// Every sample of some episodes of the first dataset, from its own rows.
  static std::set<Built> expected(const std::vector<std::size_t>& places, std::int64_t chunk) {
    const auto dataset = LerobotDataset::open(*folder_ / "1");
    std::set<Built> all;
    for (const std::size_t place : places) {
      const auto rows = dataset->rows(place);
      const std::int64_t length = dataset->episodes()[place].length;
      const auto table = read_parquet(
          rows->path,
          {.vectors = {"observation.state", "action"}, .integers = {}, .optional_vectors = {}, .optional_integers = {}},
          {.first = rows->first_row, .count = length});
      for (std::int64_t row = 0; row < length; ++row) {
        Built sample;
        for (const double v : table->vectors.at("observation.state").row(row))
          sample.state.push_back(static_cast<float>(v));
        for (std::int64_t k = 0; k < chunk; ++k) {
          for (const double v : table->vectors.at("action").row(std::min(row + k, length - 1)))
            sample.action.push_back(static_cast<float>(v));
          sample.counts.push_back(row + k < length ? 1 : 0);
        }
        all.insert(sample);
      }
    }
    return all;
  }

  static std::unique_ptr<ScratchFolder> folder_;
};
std::unique_ptr<ScratchFolder> DemonstrationsTest::folder_;

TEST_F(DemonstrationsTest, AnEpochHoldsEveryRowOfTheTrainingEpisodesOnce) {
  const auto all = open(data({1}));
  std::set<Built> drawn;
  for (std::int64_t q = 0; q < all->train_size(); ++q) drawn.insert(build(*all, Split::train, q));
  EXPECT_TRUE(drawn == expected({0, 2}, 3));
}

TEST_F(DemonstrationsTest, HeldOutSamplesAreOfHeldOutEpisodesAndSpreadOverThem) {
  const auto all = open(data({1}));
  ASSERT_EQ(all->eval_size(kEvalSamples), kEvalSamples);
  const std::set<Built> rows = expected({1}, 3);
  std::set<Built> drawn;
  for (std::int64_t i = 0; i < kEvalSamples; ++i) {
    const Built sample = build(*all, Split::eval, i);
    EXPECT_TRUE(rows.contains(sample)) << i;
    drawn.insert(sample);
  }
  EXPECT_EQ(drawn.size(), static_cast<std::size_t>(kEvalSamples));
}

TEST_F(DemonstrationsTest, ChunksLongerThanAnEpisodeRepeatItsLastAction) {
  const auto all = open(data(), shape(40));
  std::set<Built> drawn;
  for (std::int64_t q = 0; q < all->train_size(); ++q) drawn.insert(build(*all, Split::train, q));
  EXPECT_TRUE(drawn == expected({0, 1, 2}, 40));
}

TEST_F(DemonstrationsTest, DatasetsAreDrawnByTheirWeights) {
  DataConfig config = data();
  config.sets = {{.path = *folder_ / "1", .weight = 3}, {.path = *folder_ / "2", .weight = 1}};
  const std::set<Built> first = expected({0, 1, 2}, 3);
  const auto of_first = [&] {
    const auto all = open(config);
    std::int64_t drawn = 0;
    for (std::int64_t q = 0; q < 64; ++q) drawn += first.contains(build(*all, Split::train, q)) ? 1 : 0;
    return static_cast<double>(drawn);
  };
  EXPECT_NEAR(of_first(), 48, 3) << "of 64; an arm at rest looks the same in both";
  config.sets[0].weight = 9;
  config.mixture.temperature = 2;
  EXPECT_NEAR(of_first(), 48, 3) << "the root of 9 : 1";
}

TEST_F(DemonstrationsTest, TheFingerprintChangesWithWhatPositionsMean) {
  const std::string one = open(data())->fingerprint();
  EXPECT_EQ(one, open(data())->fingerprint());
  EXPECT_NE(one, open(data({1}))->fingerprint());
  EXPECT_NE(one, open(data(), shape(2))->fingerprint());
  DataConfig other = data();
  other.sets[0].path = *folder_ / "2";
  EXPECT_NE(one, open(other)->fingerprint());
}

TEST_F(DemonstrationsTest, WhatDoesNotFitIsNamed) {
  PolicyShape wide = shape();
  wide.state_dim = 31;
  EXPECT_THAT(refusal(data(), wide),
              ::testing::AllOf(HasSubstr("observation.state"), HasSubstr("4 numbers"), HasSubstr("31")));
  PolicyShape masked = shape();
  masked.mask_dim = 2;
  EXPECT_THAT(refusal(data(), masked), HasSubstr("an action mask, which demonstrations do not hold"));
  PolicyShape other = shape();
  other.action_dim = 8;
  EXPECT_THAT(refusal(data(), other), ::testing::AllOf(HasSubstr("'action'"), HasSubstr("env.profile")));
  EXPECT_THAT(refusal(data({9})),
              ::testing::AllOf(HasSubstr("eval_episodes names episode 9"), HasSubstr("3 episodes")));
  EXPECT_THAT(refusal(data({0, 1, 2})), HasSubstr("no episode is left"));
  DataConfig missing = data();
  missing.sets[0].path = *folder_ / "none";
  EXPECT_THAT(refusal(missing), HasSubstr("none"));
}

TEST_F(DemonstrationsTest, WhatCriticsAloneReadMayStandBehindTheStateOrBeMissing) {
  PolicyShape privileged = shape();
  privileged.critic_dim = 1;
  const auto narrow = open(data(), privileged);
  const Built sample = build(*narrow, Split::train, 0), whole = build(*open(data()), Split::train, 0);
  EXPECT_THAT(sample.state, ::testing::ElementsAreArray(whole.state.begin(), whole.state.begin() + 3));
  privileged.state_dim = 6;
  privileged.critic_dim = 2;
  EXPECT_EQ(build(*open(data(), privileged), Split::train, 0), whole);
}

TEST_F(DemonstrationsTest, APolicyThatIsToldATextIsToldTheRowsTask) {
  PolicyShape told = shape();
  told.texts = {{.name = "order", .bytes = 64}};
  const auto all = open(data(), told);
  const auto dataset = LerobotDataset::open(*folder_ / "1");
  const auto task_of = [&](const DemonstrationRow& at) {
    const auto rows = dataset->rows(at.episode);
    const auto table = read_parquet(
        rows->path, {.vectors = {}, .integers = {"task_index"}, .optional_vectors = {}, .optional_integers = {}},
        {.first = rows->first_row + at.row, .count = 1});
    return dataset->tasks().at(table->integers.at("task_index").front());
  };
  std::set<std::string> seen;
  auto* bytes = static_cast<std::byte*>(std::aligned_alloc(64, static_cast<std::size_t>(all->layout().bytes)));
  const std::span<std::byte> slot(bytes, static_cast<std::size_t>(all->layout().bytes));
  for (std::int64_t q = 0; q < all->train_size(); ++q) {
    const DemonstrationRow at = all->build(Split::train, q, kSeed, kEvalSamples, slot).value();
    const auto text = field_values<std::uint8_t>(slot, all->layout().field("text.order"));
    const std::string padded(text.begin(), text.end()), order = padded.substr(0, padded.find('\0'));
    EXPECT_EQ(order, task_of(at)) << q;
    seen.insert(order);
  }
  std::free(bytes);
  EXPECT_GT(seen.size(), 1u) << "episodes differ";
  EXPECT_NE(all->fingerprint(), open(data())->fingerprint());
  told.texts[0].bytes = 8;
  EXPECT_THAT(refusal(data(), told), HasSubstr("the policy's text 'order' has room for 8"));
  told.texts = {{.name = "order", .bytes = 64}, {.name = "manner", .bytes = 64}};
  EXPECT_THAT(refusal(data(), told), HasSubstr("env.id tells the policy 'order' and 1 more texts"));
}

TEST_F(DemonstrationsTest, ARecordingWithAnotherTimeLimitIsRefused) {
  PolicyShape timed = shape();
  timed.max_episode_steps = 50;
  EXPECT_EQ(refusal(data(), timed), "no error") << "another program's dataset says nothing of limits";
  const std::string note = *folder_ / "1/meta/recording.json";
  std::ofstream(note) << R"({"env": "arm7/reach-v1", "max_episode_steps": 50})";
  EXPECT_EQ(refusal(data(), timed), "no error");
  timed.max_episode_steps = 100;
  EXPECT_THAT(refusal(data(), timed),
              ::testing::AllOf(HasSubstr("at most 50 steps"), HasSubstr("env.max_episode_steps: 50"),
                               HasSubstr("max_episode_steps=100")));
  std::ofstream(note) << "{";
  EXPECT_THAT(refusal(data(), timed), HasSubstr("recording.json"));
  std::filesystem::remove(note);
}

TEST_F(DemonstrationsTest, PositionsOutsideAreRefused) {
  const auto all = open(data({1}));
  std::vector<std::byte> slot(static_cast<std::size_t>(all->layout().bytes));
  EXPECT_FALSE(all->build(Split::train, -1, kSeed, kEvalSamples, slot));
  EXPECT_FALSE(all->build(Split::eval, kEvalSamples, kSeed, kEvalSamples, slot));
}

}  // namespace
}  // namespace troupe::workers
