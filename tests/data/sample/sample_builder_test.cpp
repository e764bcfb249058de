#include "data/sample/sample_builder.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "data/sampling/window.h"
#include "tests/data/sample/sample_test_support.h"
#include "tests/support/tiny_dataset.h"

namespace troupe::data {
namespace {

class SampleBuilderTest : public ::testing::Test {
 protected:
  explicit SampleBuilderTest(std::vector<TinyEpisode> episodes = std::vector<TinyEpisode>(3))
      : files_(std::move(episodes)) {}
  void SetUp() override {
    job_ = files_.job();
    job_.data.eval_episodes = {2};
    job_.data.index.build = "never";
    open();
  }
  void open(ReadClip read = TinyDataset::read_clip) {
    auto set = Dataset::open(job_.data, job_.model, TinyDataset::options());
    set_ = *set;
    auto builder = SampleBuilder::make(Mixture::of(set_, job_.data), job_, bytes_as_tokens, std::move(read));
    builder_.emplace(std::move(*builder));
  }
  std::vector<std::byte> build(Split split, std::int64_t position, std::byte fill = std::byte{0xAA}) {
    std::vector<std::byte> slot(static_cast<std::size_t>(builder_->layout().bytes), fill);
    builder_->build(split, position, slot).value();
    return slot;
  }
  template <class T>
  std::span<const T> values(const std::vector<std::byte>& slot, const char* name) {
    return field_values<T>(std::span<const std::byte>(slot), builder_->layout().field(name));
  }

  TinyDataset files_;
  JobConfig job_;
  std::shared_ptr<const Dataset> set_;
  std::optional<SampleBuilder> builder_;
};

TEST_F(SampleBuilderTest, TheLayoutIsAlignedAndSized) {
  const SampleLayout& layout = builder_->layout();
  EXPECT_EQ(layout.field("images").shape, (std::vector<std::int64_t>{5, 6, 16, 3}));
  EXPECT_EQ(layout.field("action").shape, (std::vector<std::int64_t>{8, 5}));
  EXPECT_EQ(layout.field("state").shape, (std::vector<std::int64_t>{2, 4}));
  std::int64_t end = 0;
  for (const TensorField& f : layout.fields) {
    EXPECT_EQ(f.offset % 64, 0) << f.name;
    EXPECT_GE(f.offset, end) << f.name;
    end = f.offset + f.bytes;
  }
  EXPECT_GE(layout.bytes, end);
  EXPECT_EQ(layout.bytes % 64, 0);
}

TEST_F(SampleBuilderTest, TheBytesDependOnThePositionAlone) {
  for (std::int64_t q : {0, 1, 99, 1000})
    EXPECT_EQ(build(Split::train, q), build(Split::train, q, std::byte{0x11})) << q;
  EXPECT_NE(build(Split::train, 0), build(Split::train, 1));
}

TEST_F(SampleBuilderTest, OneEpochVisitsEverySampleOnce) {
  std::set<std::pair<std::size_t, std::int64_t>> seen;
  for (std::uint64_t q = 0; q < set_->train().size(); ++q) {
    const auto entry = builder_->locate(Split::train, static_cast<std::int64_t>(q));
    EXPECT_TRUE(seen.emplace(entry->entry.episode, entry->entry.anchor).second);
  }
  EXPECT_EQ(seen.size(), set_->train().size());
}

TEST_F(SampleBuilderTest, EveryFieldComesFromTheSameWindow) {
  without_augmentation(job_.data.image);
  open();
  const std::int64_t q = 17;
  const SampleEntry entry = builder_->locate(Split::train, q).value().entry;
  const SampleWindow window =
      multi_anchor_window(job_.data.window, set_->episodes()[entry.episode].row_labels(), entry.anchor);
  const auto slot = build(Split::train, q);

  const auto images = values<std::uint8_t>(slot, "images");
  for (std::size_t t = 0; t < 5; ++t) {
    const auto canvas = images.subspan(t * 6 * 16 * 3, 6 * 16 * 3);
    EXPECT_EQ(canvas[0], window.video[t]) << "left view, frame " << t;
    EXPECT_EQ(canvas[1], 0);
    EXPECT_EQ(canvas[2], 7);
    EXPECT_EQ(canvas[8 * 3], window.video[t]) << "right view, frame " << t;
    EXPECT_EQ(canvas[8 * 3 + 1], 1);
  }
  const auto state = values<float>(slot, "state");
  const Normalizer<double> normalizer(NormalizationMode::q99, set_->statistics().state[0]);
  const TinyEpisode truth;
  for (std::size_t s = 0; s < 2; ++s) {
    std::vector<double> want;
    for (std::int64_t d = 0; d < 3; ++d) want.push_back(truth.state(window.states[s], d));
    (void)normalizer.forward(want);
    for (std::size_t d = 0; d < 3; ++d) EXPECT_NEAR(state[s * 4 + d], want[d], 1e-6);
    EXPECT_EQ(state[s * 4 + 3], 0.0f);
    EXPECT_EQ(values<std::uint8_t>(slot, "state_mask")[s * 4 + 2], 1);
    EXPECT_EQ(values<std::uint8_t>(slot, "state_mask")[s * 4 + 3], 0);
  }
  EXPECT_EQ(values<std::int64_t>(slot, "text")[0], 'l');  // "lift the cup"
  EXPECT_EQ(values<std::int64_t>(slot, "text_mask")[5], 1);
  EXPECT_EQ(values<std::int64_t>(slot, "position")[0], q);
  EXPECT_EQ(values<std::int64_t>(slot, "embodiment_id")[0], job_.data.embodiment.id);
  EXPECT_EQ(values<std::uint8_t>(slot, "has_real_action")[0], 1);
}

TEST_F(SampleBuilderTest, EvaluationReadsHeldOutEpisodesOnly) {
  const auto count = static_cast<std::int64_t>(set_->eval_size(job_.eval.max_samples));
  ASSERT_EQ(count, 8);
  for (std::int64_t i = 0; i < count; ++i) {
    EXPECT_EQ(set_->episodes()[builder_->locate(Split::eval, i)->entry.episode].index, 2);
    build(Split::eval, i);
  }
  EXPECT_EQ(builder_->locate(Split::eval, count).error().code(), Errc::invalid_argument);
  EXPECT_EQ(builder_->locate(Split::train, -1).error().code(), Errc::invalid_argument);
}

TEST_F(SampleBuilderTest, ErrorsNameThePositionAndTheFile) {
  open([](const std::string& path, std::span<const std::int64_t>, const ClipDecoder::RgbSink&,
          ClipDecoder::Deadline) -> Result<void> {
    return Error{Errc::data_loss, path + ": frame 3 is damaged"};
  });
  std::vector<std::byte> slot(static_cast<std::size_t>(builder_->layout().bytes));
  const auto built = builder_->build(Split::train, 4, slot);
  EXPECT_EQ(built.error().code(), Errc::data_loss);
  EXPECT_NE(built.error().message().find("training sample 4 (episode "), std::string::npos) << built.error().message();
  EXPECT_NE(built.error().message().find(".mp4: frame 3 is damaged"), std::string::npos) << built.error().message();
}

TEST_F(SampleBuilderTest, ATableThatVanishesAfterOpeningIsAnError) {
  std::filesystem::remove(files_.parquet(0));
  std::filesystem::remove(files_.parquet(1));
  std::vector<std::byte> slot(static_cast<std::size_t>(builder_->layout().bytes));
  const auto built = builder_->build(Split::train, 0, slot);
  EXPECT_EQ(built.error().code(), Errc::not_found);
  EXPECT_NE(built.error().message().find(".parquet does not exist"), std::string::npos) << built.error().message();
}

TEST_F(SampleBuilderTest, RelativeActionsSubtractTheBlocksFirstState) {
  files_.write_lines("meta/modality.json",
                     {R"({"state": {"arm": {"start": 0, "end": 2}}, "action": {"arm": {"start": 0, "end": 2}},
      "video": {"left": {}, "right": {}}})"});
  job_.data.embodiment.state_keys = job_.data.embodiment.action_keys =
      job_.data.embodiment.relative_action_keys = {"arm"};
  job_.data.embodiment.normalization = "mean_std";
  open();
  // a[t] - s[t0] = 0.25 (t - t0 + 1) - 2 d in every block, whatever the row
  const auto slot = build(Split::train, 3);
  const FeatureStatistics& s = set_->statistics().action[0];
  const auto action = values<float>(slot, "action");
  for (std::size_t t = 0; t < 8; ++t) {
    for (std::size_t d = 0; d < 2; ++d) {
      const double relative = 0.25 * static_cast<double>(t % 4 + 1) - 2.0 * static_cast<double>(d);
      EXPECT_NEAR(action[t * 5 + d], (relative - s.mean[d]) / s.std[d], 1e-5) << t << " " << d;
    }
  }
  EXPECT_NEAR(s.mean[0], 0.625, 1e-12);
}

TEST_F(SampleBuilderTest, FixedWindowsRepeatTheLastRow) {
  job_.data.sampling = "fixed_window";
  job_.data.window.num_frames = 7;
  job_.data.window.state_horizon = 2;
  without_augmentation(job_.data.image);
  open();
  EXPECT_EQ(builder_->layout().field("images").shape[0], 7);
  EXPECT_EQ(builder_->layout().field("state").shape[0], 4);
  EXPECT_EQ(set_->train().size(), 80u) << "every row of the two training episodes is an anchor";
  std::int64_t q = 0;
  while (builder_->locate(Split::train, q)->entry.anchor != 37) ++q;
  const auto slot = build(Split::train, q);
  const auto images = values<std::uint8_t>(slot, "images");
  for (std::size_t t = 0; t < 7; ++t) EXPECT_EQ(images[t * 6 * 16 * 3], std::min<std::size_t>(37 + t, 39)) << t;
  const auto action = values<float>(slot, "action"), state = values<float>(slot, "state");
  for (std::size_t d = 0; d < 3; ++d) {
    EXPECT_EQ(action[7 * 5 + d], action[2 * 5 + d]) << "actions 2 to 7 are the last row's";
    EXPECT_NE(action[1 * 5 + d], action[2 * 5 + d]);
    EXPECT_EQ(state[2 * 4 + d], state[3 * 4 + d]) << "the second block begins past the end";
    EXPECT_NE(state[0 * 4 + d], state[1 * 4 + d]);
  }
}

TEST_F(SampleBuilderTest, LocalityKeepsTheBytesOfEverySample) {
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> position_of;
  without_augmentation(job_.data.image);
  open();
  const auto pixels = [&](std::int64_t q) {
    const auto slot = build(Split::train, q);
    const auto images = values<std::uint8_t>(slot, "images");
    return std::vector<std::uint8_t>(images.begin(), images.end());
  };
  const auto size = static_cast<std::int64_t>(set_->train().size());
  for (std::int64_t q = 0; q < size; ++q) {
    const SampleEntry at = builder_->locate(Split::train, q)->entry;
    position_of[{at.episode, at.anchor}] = q;
  }
  std::vector<std::vector<std::uint8_t>> shuffled;
  for (std::int64_t q = 0; q < size; ++q) shuffled.push_back(pixels(q));
  job_.data.locality_block = 4;
  job_.data.shuffle_buffer = 8;
  open();
  for (std::int64_t q = 0; q < size; ++q) {
    const SampleEntry at = builder_->locate(Split::train, q)->entry;
    EXPECT_EQ(pixels(q), shuffled[static_cast<std::size_t>(position_of.at({at.episode, at.anchor}))]) << q;
  }
}

TEST_F(SampleBuilderTest, StageTimesAddUp) {
  build(Split::train, 0);
  const StageTimes once = builder_->stage_times();
  EXPECT_GT(once.transform, 0);
  EXPECT_GT(once.table, 0);
  EXPECT_GT(once.text, 0);
  build(Split::train, 1);
  const StageTimes twice = builder_->stage_times();
  EXPECT_GT(twice.transform, once.transform);
  EXPECT_GE(twice.table, once.table);
}

class SampleLanguageTest : public SampleBuilderTest {
 protected:
  SampleLanguageTest()
      : SampleBuilderTest(std::vector<TinyEpisode>(3, TinyEpisode{.paraphrase = [](std::int64_t) { return 1; }})) {}
  void SetUp() override {
    job_ = files_.job();
    job_.data.index.build = "never";
    job_.data.eval_episodes = {2};
    job_.model.text_encoder.max_length = 40;
    job_.data.embodiment.language_key = "task_index";
    job_.data.embodiment.paraphrase_keys = {"annotation.paraphrase"};
    open();
  }
  std::string prompt(Split split, std::int64_t position) {
    const auto slot = build(split, position);
    std::string text;
    const auto ids = values<std::int64_t>(slot, "text"), mask = values<std::int64_t>(slot, "text_mask");
    for (std::size_t i = 0; i < ids.size() && mask[i] != 0; ++i) text += static_cast<char>(ids[i]);
    return text;
  }
};

TEST_F(SampleLanguageTest, TrainingDrawsAmongTheKeysAndEvaluationTakesTheFirst) {
  std::map<std::string, int> drawn;
  for (std::int64_t q = 0; q < 60; ++q) ++drawn[prompt(Split::train, q)];
  ASSERT_EQ(drawn.size(), 2u);
  EXPECT_NEAR(drawn["lift the cup"], 30, 16);  // four deviations
  EXPECT_EQ(drawn["lift the cup"] + drawn["put it down"], 60);
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(prompt(Split::eval, i), "lift the cup");
}

TEST_F(SampleLanguageTest, PlaceholdersAreNotDrawnWhileAnotherKeyHasAText) {
  files_.write_lines("meta/tasks.jsonl",
                     {R"({"task_index": 0, "task": "not provided"})", R"({"task_index": 1, "task": "put it down"})"});
  open();
  for (std::int64_t q = 0; q < 20; ++q) EXPECT_EQ(prompt(Split::train, q), "put it down");
  job_.data.language.skip_placeholder = false;
  open();
  std::set<std::string> drawn;
  for (std::int64_t q = 0; q < 20; ++q) drawn.insert(prompt(Split::train, q));
  EXPECT_EQ(drawn.size(), 2u);
}

TEST_F(SampleLanguageTest, DropoutDefaultAndFormalizeReachThePrompt) {
  job_.data.language.dropout = 1;
  open();
  EXPECT_EQ(prompt(Split::train, 0), "perform the default behavior.");
  EXPECT_EQ(prompt(Split::eval, 0), "lift the cup") << "evaluation drops nothing";
  job_.data.language.formalize = true;
  open();
  EXPECT_EQ(prompt(Split::train, 0), "perform the default behavior");
  job_.data.language.always_default = true;
  open();
  EXPECT_EQ(prompt(Split::eval, 0), "perform the default behavior");
}

}  // namespace
}  // namespace troupe::data
