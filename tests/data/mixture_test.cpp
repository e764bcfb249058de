#include "data/mixture.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/random.h"
#include "data/sampling/window.h"
#include "tests/data/sample/sample_test_support.h"
#include "tests/support/tiny_dataset.h"

namespace troupe::data {
namespace {

using ::testing::HasSubstr;

/// Two robots: `files_` as TinyDataset's job has it, and `other_` with other keys, camera names, stride, id and tag.
class MixtureTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSeed = 42;

  void SetUp() override {
    other_.write_lines("meta/modality.json", {R"({"state": {"wrist": {"start": 1, "end": 3}},
      "action": {"wrist": {"start": 0, "end": 2}, "grip": {"start": 2, "end": 3}},
      "video": {"near": {"original_key": "observation.images.right"}, "far": {"original_key": "observation.images.left"}}})"});
    job_ = files_.job();
    job_.data.sets = {{.path = files_.root(), .weight = 3},
                      {.path = other_.root(), .weight = 1, .embodiment = "other"}};
    job_.data.sets[0].eval_episodes = {2};
    job_.data.sets[1].eval_episodes = {1};
    job_.data.embodiment.tag = "first";
    EmbodimentConfig other = job_.data.embodiment;
    other.tag = "second";
    other.id = 7;
    other.views = {"near", "far"};
    other.state_keys = {"wrist"};
    other.action_keys = {"grip", "wrist"};
    other.normalization = "min_max";
    other.macro_stride = 5;
    other.video_offsets = {0, 1};
    job_.data.embodiments["other"] = other;
    job_.data.index.build = "never";
  }
  std::shared_ptr<const Mixture> open() { return Mixture::open(job_.data, job_.model, TinyDataset::options()).value(); }
  SampleBuilder builder(std::shared_ptr<const Mixture> mixture, const JobConfig& job) {
    return SampleBuilder::make(std::move(mixture), job, bytes_as_tokens, TinyDataset::read_clip).value();
  }
  /// The configuration of one entry as a job of its own, with the order that it has inside the mixture.
  JobConfig alone(std::size_t set) const {
    JobConfig job = job_;
    job.data.sets = {job_.data.sets[set]};
    job.data.sets[0].embodiment.clear();
    if (set == 1) job.data.embodiment = job_.data.embodiments.at("other");
    job.data.embodiments.clear();
    return job;
  }
  static std::vector<std::byte> build(SampleBuilder& from, Split split, std::int64_t position) {
    std::vector<std::byte> slot(static_cast<std::size_t>(from.layout().bytes), std::byte{0xAA});
    from.build(split, position, slot).value();
    return slot;
  }
  static std::vector<std::byte> part(const std::vector<std::byte>& slot, const TensorField& field) {
    const auto begin = slot.begin() + field.offset;
    return {begin, begin + field.bytes};
  }

  TinyDataset files_, other_{std::vector<TinyEpisode>(2, TinyEpisode{.rows = 31})};
  JobConfig job_;
};

TEST_F(MixtureTest, EverySampleIsThatOfItsDatasetAtTheInnerPosition) {
  without_augmentation(job_.data.image);
  const auto mixture = open();
  SampleBuilder mixed = builder(mixture, job_);
  std::vector<SampleBuilder> single;
  for (std::size_t i = 0; i < 2; ++i) {
    JobConfig job = alone(i);
    job.job.seed = job_.job.seed;
    auto set = Dataset::open(job.data, job.model, TinyDataset::options());
    single.push_back(builder(Mixture::of(*set, job.data), job));
    EXPECT_EQ(single[i].layout().bytes, mixed.layout().bytes);
  }
  std::vector<std::int64_t> drawn(2, 0);
  for (std::int64_t q = 0; q < 160; ++q) {
    const MixtureEntry at = mixed.locate(Split::train, q).value();
    // The dataset's own order under its own seed: find the position of a lone job that holds the same sample.
    const Dataset& dataset = *mixture->datasets()[at.dataset];
    const std::uint64_t seed = MixtureOrder::inner_seed(kSeed, at.dataset);
    const auto inner = static_cast<std::uint64_t>(drawn[at.dataset]++);
    const SampleDraw want = draw_sample(seed, inner, dataset.train().size());
    EXPECT_EQ(at.index, want.index);
    EXPECT_EQ(at.epoch, want.epoch);
    std::int64_t lone = 0;
    while (draw_sample(kSeed, static_cast<std::uint64_t>(lone), dataset.train().size()).index != at.index) ++lone;
    const auto got = build(mixed, Split::train, q), expected = build(single[at.dataset], Split::train, lone);
    for (const TensorField& field : mixed.layout().fields) {
      if (field.name == "position") continue;
      ASSERT_EQ(part(got, field), part(expected, field)) << "position " << q << " field " << field.name;
    }
  }
  EXPECT_EQ(drawn[0], 120);
  EXPECT_EQ(drawn[1], 40);
}

TEST_F(MixtureTest, EachMemberKeepsItsOwnRateKeysAndCameras) {
  without_augmentation(job_.data.image);
  const auto mixture = open();
  SampleBuilder mixed = builder(mixture, job_);
  const auto i64 = [&](const std::vector<std::byte>& slot, const char* name) {
    return field_values<std::int64_t>(std::span<const std::byte>(slot), mixed.layout().field(name));
  };
  const auto u8 = [&](const std::vector<std::byte>& slot, const char* name) {
    return field_values<std::uint8_t>(std::span<const std::byte>(slot), mixed.layout().field(name));
  };
  std::set<std::size_t> seen;
  for (std::int64_t q = 0; q < 24; ++q) {
    const MixtureEntry at = mixed.locate(Split::train, q).value();
    seen.insert(at.dataset);
    const auto slot = build(mixed, Split::train, q);
    const Dataset& dataset = *mixture->datasets()[at.dataset];
    const auto labels = dataset.episodes()[at.entry.episode].row_labels();
    const SampleWindow window = sample_window(dataset.spec(), labels, at.entry.anchor);
    EXPECT_EQ(window.states[1] - window.states[0], at.dataset == 0 ? 4 : 5) << "S of the robot";
    EXPECT_EQ(i64(slot, "embodiment_id")[0], at.dataset == 0 ? job_.data.embodiment.id : 7);
    EXPECT_EQ(u8(slot, "state_mask")[2], at.dataset == 0 ? 1 : 0) << "three state values, or two";
    for (std::size_t t = 0; t < 5; ++t) {
      const auto canvas = u8(slot, "images").subspan(t * 6 * 16 * 3, 6 * 16 * 3);
      EXPECT_EQ(canvas[0], window.video[t]);
      EXPECT_EQ(canvas[1], at.dataset == 0 ? 0 : 1) << "the first view is left, or right";
      EXPECT_EQ(canvas[8 * 3 + 1], at.dataset == 0 ? 1 : 0);
    }
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST_F(MixtureTest, AnyPositionGivesTheSameBytesInAnyOrderFromAnyBuilder) {
  const auto mixture = open();
  constexpr std::int64_t kCount = 48;
  std::vector<std::vector<std::byte>> want;
  SampleBuilder one = builder(mixture, job_);
  for (std::int64_t q = 0; q < kCount; ++q) want.push_back(build(one, Split::train, q));

  std::vector<std::vector<std::byte>> got(kCount);
  std::vector<std::jthread> threads;
  for (std::int64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      SampleBuilder own = builder(open(), job_);
      for (std::int64_t q = kCount - 1 - t; q >= 0; q -= 3)
        got[static_cast<std::size_t>(q)] = build(own, Split::train, q);
    });
  }
  threads.clear();
  EXPECT_EQ(got, want);

  CounterRng random(3, 0, 0);
  for (int resume = 0; resume < 20; ++resume) {
    const std::int64_t from = random.below(kCount);
    SampleBuilder fresh = builder(mixture, job_);
    ASSERT_EQ(build(fresh, Split::train, from), want[static_cast<std::size_t>(from)]) << "resumed at " << from;
  }
}

TEST_F(MixtureTest, EveryEpochOfADatasetHoldsEachOfItsSamplesOnce) {
  const auto mixture = open();
  std::vector<std::vector<int>> seen;
  for (const auto& dataset : mixture->datasets()) seen.emplace_back(dataset->train().size(), 0);
  const std::uint64_t per_epoch = mixture->datasets()[0]->train().size();
  std::vector<std::uint64_t> in_first_epoch(2, 0);
  for (std::uint64_t q = 0; q < 4 * per_epoch; ++q) {
    const MixtureEntry at = mixture->train_entry(kSeed, q);
    if (at.epoch != 0) continue;
    EXPECT_EQ(++seen[at.dataset][at.index], 1);
    ++in_first_epoch[at.dataset];
  }
  EXPECT_EQ(in_first_epoch[0], mixture->datasets()[0]->train().size());
  EXPECT_EQ(in_first_epoch[1], mixture->datasets()[1]->train().size());
}

TEST_F(MixtureTest, SharesFollowWeightSamplesAndTemperature) {
  EXPECT_NEAR(open()->shares()[0], 0.75, 1e-9);
  job_.data.mixture.temperature = 2;
  EXPECT_NEAR(open()->shares()[0], std::sqrt(3.0) / (1 + std::sqrt(3.0)), 1e-9);
  job_.data.mixture = {.share = "samples", .temperature = 1};
  const auto mixture = open();
  const double a = 3.0 * static_cast<double>(mixture->datasets()[0]->train().size());
  const double b = static_cast<double>(mixture->datasets()[1]->train().size());
  EXPECT_NEAR(mixture->shares()[0], a / (a + b), 1e-9);
  EXPECT_EQ(mixture->train_size(), mixture->datasets()[0]->train().size() + mixture->datasets()[1]->train().size());
}

TEST_F(MixtureTest, AMixtureOfOneIsItsDataset) {
  const JobConfig job = alone(0);
  const auto set = Dataset::open(job.data, job.model, TinyDataset::options()).value();
  const auto opened = Mixture::open(job.data, job.model, TinyDataset::options()).value();
  for (const auto& mixture : {Mixture::of(set, job.data), opened}) {
    EXPECT_EQ(mixture->fingerprint(), set->fingerprint());
    EXPECT_EQ(mixture->metadata_json(), set->metadata_json());
    EXPECT_EQ(mixture->shares(), std::vector<double>{1.0});
    for (std::uint64_t q = 0; q < 2 * set->train().size(); ++q)
      ASSERT_EQ(mixture->train_entry(kSeed, q).index, draw_sample(kSeed, q, set->train().size()).index);
    ASSERT_EQ(mixture->eval_size(4), set->eval_size(4));
    for (std::uint64_t i = 0; i < 4; ++i)
      EXPECT_EQ(mixture->eval_entry(i, 4).entry.anchor, set->eval_entry(i, 4).anchor);
  }
}

TEST_F(MixtureTest, TheFingerprintCoversDatasetsSharesAndLocality) {
  std::set<std::string> prints = {open()->fingerprint()};
  const auto differs = [&](const char* what) { EXPECT_TRUE(prints.insert(open()->fingerprint()).second) << what; };
  EXPECT_FALSE(prints.insert(open()->fingerprint()).second) << "the same files and configuration";
  job_.data.sets[1].weight = 2;
  differs("weight");
  job_.data.mixture.temperature = 1.5;
  differs("temperature");
  job_.data.locality_block = 4;
  differs("locality block");
  job_.data.shuffle_buffer = 8;
  differs("shuffle buffer");
  job_.data.sets[1].eval_episodes.clear();
  differs("held-out episodes");
  std::swap(job_.data.sets[0], job_.data.sets[1]);
  differs("order of the datasets");
}

TEST_F(MixtureTest, EvaluationWindowsAreSpreadOverAllDatasets) {
  const auto mixture = open();
  const std::uint64_t all = mixture->datasets()[0]->eval().size() + mixture->datasets()[1]->eval().size();
  EXPECT_EQ(mixture->eval_size(1 << 20), all);
  std::set<std::pair<std::size_t, std::uint64_t>> seen;
  for (std::uint64_t i = 0; i < all; ++i) {
    const MixtureEntry at = mixture->eval_entry(i, 1 << 20);
    EXPECT_TRUE(seen.emplace(at.dataset, at.index).second);
    const Dataset& dataset = *mixture->datasets()[at.dataset];
    EXPECT_EQ(dataset.episodes()[at.entry.episode].index, at.dataset == 0 ? 2 : 1);
  }
  std::set<std::size_t> datasets;
  for (std::uint64_t i = 0; i < mixture->eval_size(4); ++i) datasets.insert(mixture->eval_entry(i, 4).dataset);
  EXPECT_EQ(datasets.size(), 2u);
  SampleBuilder mixed = builder(mixture, job_);
  EXPECT_EQ(
      mixed.locate(Split::eval, static_cast<std::int64_t>(mixture->eval_size(job_.eval.max_samples))).error().code(),
      Errc::invalid_argument);
}

TEST_F(MixtureTest, BlocksOfNeighboursShareTheirFrames) {
  job_.data.locality_block = 4;
  job_.data.shuffle_buffer = 8;
  const auto mixture = open();
  EXPECT_EQ(mixture->locality().window(), 8u);
  const Dataset& dataset = *mixture->datasets()[0];
  for (std::uint64_t q = 0; q < 200; ++q) {
    const MixtureEntry at = mixture->train_entry(kSeed, q);
    const Dataset& own = *mixture->datasets()[at.dataset];
    const auto labels = own.episodes()[at.entry.episode].row_labels();
    const auto shared = block_rows(own, at.index, mixture->locality());
    const SampleWindow window = sample_window(own.spec(), labels, at.entry.anchor);
    EXPECT_TRUE(std::includes(shared.begin(), shared.end(), window.video.begin(), window.video.end()));
    EXPECT_TRUE(std::is_sorted(shared.begin(), shared.end()));
  }
  const SampleEntry first = dataset.train().at(4), last = dataset.train().at(7);
  ASSERT_EQ(first.episode, last.episode);
  EXPECT_EQ(block_rows(dataset, 5, mixture->locality()), block_rows(dataset, 6, mixture->locality()));
  EXPECT_TRUE(block_rows(dataset, 5, Locality{}).empty());
  // A block at the seam of two episodes shares nothing across it.
  for (std::uint64_t i = 0; i < dataset.train().size(); ++i) {
    const SampleEntry entry = dataset.train().at(i);
    EXPECT_LT(block_rows(dataset, i, mixture->locality()).back(), dataset.episodes()[entry.episode].length);
  }
}

TEST_F(MixtureTest, DatasetsOfOneTagAreNormalisedTogether) {
  job_.data.sets[1].embodiment.clear();
  std::filesystem::remove(other_.root() + "/meta/modality.json");
  const auto mixture = open();
  const FeatureStatistics &a = mixture->datasets()[0]->statistics().state[0],
                          &b = mixture->datasets()[1]->statistics().state[0];
  const FeatureStatistics& merged = mixture->statistics(1).state[0];
  EXPECT_EQ(merged.mean, mixture->statistics(0).state[0].mean);
  for (std::size_t d = 0; d < 3; ++d) {
    const double mean = 0.75 * a.mean[d] + 0.25 * b.mean[d];
    EXPECT_NEAR(merged.mean[d], mean, 1e-9);
    const double second =
        0.75 * (a.std[d] * a.std[d] + a.mean[d] * a.mean[d]) + 0.25 * (b.std[d] * b.std[d] + b.mean[d] * b.mean[d]);
    EXPECT_NEAR(merged.std[d], std::sqrt(second - mean * mean), 1e-8);
    EXPECT_EQ(merged.q01[d], std::min(a.q01[d], b.q01[d]));
    EXPECT_EQ(merged.q99[d], std::max(a.q99[d], b.q99[d]));
    EXPECT_EQ(merged.max[d], std::max(a.max[d], b.max[d]));
  }
  const auto json = nlohmann::json::parse(mixture->metadata_json());
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json["first"]["statistics"]["state"].begin().value()["mean"].get<std::vector<double>>(), merged.mean);
}

TEST_F(MixtureTest, MetadataHaveOneEntryATag) {
  const auto mixture = open();
  const auto json = nlohmann::json::parse(mixture->metadata_json());
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json["first"], nlohmann::json::parse(mixture->datasets()[0]->metadata_json())["first"]);
  EXPECT_EQ(json["second"], nlohmann::json::parse(mixture->datasets()[1]->metadata_json())["second"]);
}

TEST_F(MixtureTest, OneTagForUnlikeDatasetsIsRefused) {
  job_.data.embodiments["other"].tag = "first";
  const auto mixture = Mixture::open(job_.data, job_.model, TinyDataset::options());
  EXPECT_EQ(mixture.error().code(), Errc::invalid_argument);
  EXPECT_THAT(mixture.error().message(), HasSubstr("embodiment tag, 'first'"));
  EXPECT_THAT(mixture.error().message(), HasSubstr(files_.root()));
  EXPECT_THAT(mixture.error().message(), HasSubstr(other_.root()));
  EXPECT_THAT(mixture.error().message(), HasSubstr("state.wrist[2]"));
}

TEST_F(MixtureTest, CanvasesOfDifferentSizeAreRefused) {
  job_.data.embodiments["other"].layout = "grid2x2";
  const auto mixture = Mixture::open(job_.data, job_.model, TinyDataset::options());
  EXPECT_EQ(mixture.error().code(), Errc::invalid_argument);
  EXPECT_THAT(mixture.error().message(), HasSubstr("6x16"));
  EXPECT_THAT(mixture.error().message(), HasSubstr("12x16"));
  const auto layout = sample_layout(job_.data, job_.model);
  ASSERT_FALSE(layout);
  job_.data.embodiment.views = {"left", "right"};
  EXPECT_THAT(sample_layout(job_.data, job_.model).error().message(), HasSubstr("data.sets[1]"));
}

TEST_F(MixtureTest, ErrorsAndProblemsNameTheDataset) {
  job_.data.sets[1].eval_episodes.clear();
  std::filesystem::remove(other_.parquet(0));
  const auto refused = Mixture::open(job_.data, job_.model, TinyDataset::options());
  EXPECT_EQ(refused.error().code(), Errc::data_loss);
  EXPECT_THAT(refused.error().message(), HasSubstr("data.sets[1]"));
  job_.data.bad_sample = "skip";
  const auto mixture = open();
  EXPECT_EQ(mixture->skipped_episodes(), 1);
  ASSERT_FALSE(mixture->problems().empty());
  for (const DatasetProblem& problem : mixture->problems()) EXPECT_THAT(problem.text, HasSubstr(other_.root()));
}

TEST_F(MixtureTest, TheStateOfACheckpointCountsEveryDatasetsDraws) {
  const auto mixture = open();
  constexpr std::uint64_t kPosition = 1000;
  std::vector<std::uint64_t> drawn(2, 0);
  for (std::uint64_t q = 0; q < kPosition; ++q) ++drawn[mixture->train_entry(kSeed, q).dataset];
  const auto state = nlohmann::json::parse(mixture->state_json(kSeed, kPosition));
  EXPECT_EQ(state["next_position"], kPosition);
  EXPECT_EQ(state["seed"], kSeed);
  EXPECT_EQ(state["dataset_fingerprint"], mixture->fingerprint());
  ASSERT_EQ(state["datasets"].size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& of = state["datasets"][i];
    EXPECT_EQ(of["drawn"], drawn[i]);
    EXPECT_EQ(of["samples"], mixture->datasets()[i]->train().size());
    EXPECT_EQ(of["epoch"], drawn[i] / mixture->datasets()[i]->train().size());
    EXPECT_EQ(of["fingerprint"], mixture->datasets()[i]->fingerprint());
  }
}

TEST_F(MixtureTest, BuildingNamesTheDatasetOfABadSample) {
  const auto mixture = open();
  SampleBuilder mixed = builder(mixture, job_);
  std::int64_t q = 0;
  while (mixed.locate(Split::train, q)->dataset != 1) ++q;
  std::filesystem::remove(other_.parquet(0));
  std::filesystem::remove(other_.parquet(1));
  std::vector<std::byte> slot(static_cast<std::size_t>(mixed.layout().bytes));
  EXPECT_THAT(mixed.build(Split::train, q, slot).error().message(), HasSubstr(other_.root() + ", episode "));
}

}  // namespace
}  // namespace troupe::data
