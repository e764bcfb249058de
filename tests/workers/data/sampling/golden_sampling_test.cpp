#include <gtest/gtest.h>

#include "tests/workers/data/data_test_support.h"
#include "workers/data/sampling/multi_anchor.h"
#include "workers/data/sampling/sample_index.h"

namespace troupe {
namespace {

using Json = OrderedJson;

WindowConfig window_of(const Json& c) {
  return {.chunks = c["max_chunk_size"],
          .macro_stride = c["macro_stride"],
          .action_horizon = c["action_horizon"],
          .video_offsets = c["video_in_chunk_offsets"].get<std::vector<std::int64_t>>()};
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
  void SetUp() override {
    files_ = golden_files("sampling");
    if (files_.empty()) GTEST_SKIP() << "no golden kind sampling in " << golden_data();
  }
  std::vector<Json> files_;
};

TEST_F(GoldenSamplingTest, EveryWindowHasTheReferenceIndices) {
  for (const Json& file : files_) {
    for (const Json& c : file["multi_anchor"]) {
      SCOPED_TRACE(c.dump());
      const WindowConfig window = window_of(file["configs"][c["config"].get<std::string>()]);
      const SampleWindow got = multi_anchor_window(window, labels_of(c["length"], c["label_spans"]), c["anchor"]);
      EXPECT_EQ(got.video, c["unfiltered"]["video"].get<std::vector<std::int64_t>>());
      EXPECT_EQ(got.actions, expand_runs(c["unfiltered"]["action_runs"]));
      EXPECT_EQ(got.states, c["unfiltered"]["state"].get<std::vector<std::int64_t>>());
      EXPECT_EQ(got.chunks, c["unfiltered"]["video_chunks"].get<std::int64_t>());
      EXPECT_EQ(is_full(window, got), c["rlinf"] == "accepted");
    }
  }
}

TEST_F(GoldenSamplingTest, TheIndexHoldsExactlyTheAcceptedAnchors) {
  for (const Json& file : files_) {
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
}  // namespace troupe
