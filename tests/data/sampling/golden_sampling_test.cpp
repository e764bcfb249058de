#include <gtest/gtest.h>

#include "data/sampling/gear_rules.h"
#include "data/sampling/sample_index.h"
#include "data/sampling/window.h"
#include "tests/data/data_test_support.h"

namespace troupe::data {
namespace {

using Json = OrderedJson;

WindowConfig window_of(const Json& c) {
  WindowConfig window;
  window.chunks = c["max_chunk_size"];
  window.macro_stride = c["macro_stride"];
  window.action_horizon = c["action_horizon"];
  window.video_offsets = c["video_in_chunk_offsets"].get<std::vector<std::int64_t>>();
  return window;
}

DatasetSpec anchored(const Json& c) {
  DatasetSpec spec;
  spec.window = window_of(c);
  return spec;
}

std::vector<std::int64_t> labels_of(std::int64_t length, const Json& spans) {
  std::vector<std::int64_t> labels(static_cast<std::size_t>(length), 0);
  for (const Json& span : spans) {
    for (std::int64_t i = span[0]; i < span[1].get<std::int64_t>(); ++i) labels[static_cast<std::size_t>(i)] = span[2];
  }
  return labels;
}

class GoldenSamplingTest : public ::testing::Test {
 protected:
  const std::vector<Json> files_ = golden_files("sampling");
};

TEST_F(GoldenSamplingTest, EveryFileHoldsAPartThatIsTested) {
  for (const Json& file : files_) {
    int parts = 0;
    for (const char* part : {"multi_anchor", "fixed_window", "accepted_anchors_runs_first_step_count",
                             "base_dataset_padding", "gear_shards"}) {
      const bool anchored = std::string_view(part) == "multi_anchor" || std::string_view(part).starts_with("accepted");
      parts += !part_of(file, part).empty() && (!anchored || file.contains("configs")) ? 1 : 0;
    }
    EXPECT_GT(parts, 0);
  }
}

TEST_F(GoldenSamplingTest, EveryWindowHasTheReferenceIndices) {
  for (const Json& file : files_) {
    if (!file.contains("multi_anchor") || !file.contains("configs")) continue;
    for (const Json& c : file["multi_anchor"]) {
      SCOPED_TRACE(c.dump());
      const DatasetSpec spec = anchored(file["configs"][c["config"].get<std::string>()]);
      const SampleWindow got = sample_window(spec, labels_of(c["length"], c["label_spans"]), c["anchor"]);
      EXPECT_EQ(got.video, c["unfiltered"]["video"].get<std::vector<std::int64_t>>());
      EXPECT_EQ(got.actions, expand_runs(c["unfiltered"]["action_runs"]));
      EXPECT_EQ(got.states, c["unfiltered"]["state"].get<std::vector<std::int64_t>>());
      EXPECT_EQ(got.chunks, c["unfiltered"]["video_chunks"].get<std::int64_t>());
      EXPECT_EQ(is_full(spec, got), c["rlinf"] == "accepted");
      if (!c.contains("gear")) continue;
      // GEAR takes partial windows and drops those with an empty part.
      const bool taken = !got.video.empty() && !got.actions.empty() && !got.states.empty();
      EXPECT_EQ(taken, c["gear"] != "dropped");
    }
  }
}

TEST_F(GoldenSamplingTest, TheFilterOfAnchorsIsGears) {
  constexpr std::int64_t kReach = 24;  // GEAR's largest delta index, fixed in its class
  for (const Json& file : files_) {
    if (!file.contains("multi_anchor")) continue;
    for (const Json& c : file["multi_anchor"]) {
      if (!c.contains("gear_anchor_filter")) continue;
      EXPECT_EQ(gear_lists_anchor(c["anchor"], c["length"], kReach), c["gear_anchor_filter"].get<bool>()) << c.dump();
    }
  }
}

TEST_F(GoldenSamplingTest, FixedWindowsRepeatTheLastRow) {
  for (const Json& file : files_) {
    if (!file.contains("fixed_window")) continue;
    for (const Json& c : file["fixed_window"]) {
      SCOPED_TRACE(c.dump());
      DatasetSpec spec;
      spec.sampling = "fixed_window";
      spec.window.chunks = c["max_chunk_size"];
      spec.window.action_horizon = c["action_horizon"];
      spec.window.num_frames = c["num_frames"];
      spec.window.state_horizon = c["state_horizon"];
      const SampleWindow got = sample_window(spec, labels_of(c["length"], Json::array()), c["anchor"]);
      EXPECT_EQ(got.video, expand_runs(c["video_runs"]));
      EXPECT_EQ(got.actions, expand_runs(c["action_runs"]));
      EXPECT_EQ(got.states, c["state"].get<std::vector<std::int64_t>>());
      EXPECT_TRUE(is_full(spec, got));
    }
  }
}

TEST_F(GoldenSamplingTest, ShardsHoldGearsEpisodes) {
  for (const Json& file : files_) {
    if (!file.contains("gear_shards")) continue;
    for (const Json& c : file["gear_shards"]) {
      SCOPED_TRACE(c.dump());
      const auto lengths = c["lengths"].get<std::vector<std::int64_t>>();
      const auto got = gear_shards(lengths, c["num_steps_per_shard"]);
      EXPECT_EQ(got, c["shards"].get<std::vector<std::vector<std::size_t>>>());
      std::vector<std::int64_t> rows;
      for (const auto& shard : got) {
        rows.push_back(0);
        for (const std::size_t episode : shard) rows.back() += lengths[episode];
      }
      EXPECT_EQ(rows, c["shard_lengths"].get<std::vector<std::int64_t>>());
    }
  }
}

TEST_F(GoldenSamplingTest, StepsOutsideAnEpisodeArePaddedAsInGear) {
  for (const Json& file : files_) {
    if (!file.contains("base_dataset_padding")) continue;
    for (const Json& c : file["base_dataset_padding"]) {
      SCOPED_TRACE(c.dump());
      for (const bool relative : {false, true}) {
        const Json& want = c[relative ? "zero" : "first_last"];
        ASSERT_EQ(want.size(), c["step_indices"].size());
        for (std::size_t i = 0; i < want.size(); ++i) {
          const auto row = gear_padded_row(c["step_indices"][i], c["length"], relative);
          const double first = row ? 2.0 * static_cast<double>(*row) + 0.5 : 0.0;  // row i is [2i + 0.5, 2i + 1.5]
          EXPECT_EQ(want[i], (std::vector<double>{first, row ? first + 1 : 0.0})) << i;
        }
      }
    }
  }
}

TEST_F(GoldenSamplingTest, TheIndexHoldsExactlyTheAcceptedAnchors) {
  for (const Json& file : files_) {
    if (!file.contains("accepted_anchors_runs_first_step_count") || !file.contains("configs")) continue;
    for (const auto& [name, lengths] : file["accepted_anchors_runs_first_step_count"].items()) {
      const WindowConfig window = window_of(file["configs"][name]);
      for (const auto& [length, runs] : lengths.items()) {
        SCOPED_TRACE(name + " length " + length);
        std::vector<std::int64_t> want = expand_runs(runs), got;
        std::sort(want.begin(), want.end());
        SampleIndex index;
        const std::int64_t added = index.add_episode(3, window, labels_of(std::stoll(length), Json::array()));
        for (std::uint64_t i = 0; i < index.size(); ++i) {
          EXPECT_EQ(index.at(i).episode, 3u);
          got.push_back(index.at(i).anchor);
        }
        EXPECT_EQ(got, want);
        EXPECT_EQ(added, static_cast<std::int64_t>(want.size()));
      }
    }
  }
}

}  // namespace
}  // namespace troupe::data
