#include "data/sampling/window.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "data/sampling/sample_index.h"

namespace troupe::data {
namespace {

DatasetSpec anchored(std::int64_t chunks, std::int64_t stride, std::int64_t horizon,
                     std::vector<std::int64_t> offsets) {
  DatasetSpec spec;
  spec.window = {
      .chunks = chunks, .macro_stride = stride, .action_horizon = horizon, .video_offsets = std::move(offsets)};
  return spec;
}

DatasetSpec fixed(std::int64_t chunks, std::int64_t horizon, std::int64_t frames, std::int64_t states) {
  DatasetSpec spec;
  spec.sampling = "fixed_window";
  spec.window = {.chunks = chunks, .action_horizon = horizon, .num_frames = frames, .state_horizon = states};
  return spec;
}

std::vector<std::int64_t> rows(std::int64_t first, std::int64_t step, std::int64_t count) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(first + i * step);
  return out;
}

TEST(WindowTest, MultiAnchorTakesTheReleasedRecipesRows) {
  const DatasetSpec spec = anchored(4, 24, 24, {0, 3, 6, 9, 12, 15, 18, 21});
  const SampleWindow w = sample_window(spec, std::vector<std::int64_t>(200, 0), 100);
  EXPECT_EQ(w.video, rows(52, 3, 33));
  EXPECT_EQ(w.states, rows(52, 24, 4));
  EXPECT_EQ(w.actions, rows(52, 1, 96));
  EXPECT_TRUE(is_full(spec, w));
}

TEST(WindowTest, ALabelEndsTheWalkAtItsAnchors) {
  const DatasetSpec spec = anchored(4, 24, 24, {0, 3, 6, 9, 12, 15, 18, 21});
  std::vector<std::int64_t> labels(300, 0);
  std::fill(labels.begin() + 60, labels.end(), 1);
  EXPECT_EQ(sample_window(spec, labels, 100).states, (std::vector<std::int64_t>{76, 100, 124, 148}));
}

TEST(WindowTest, FixedWindowsClampAndIgnoreLabels) {
  const DatasetSpec spec = fixed(2, 3, 9, 2);
  std::vector<std::int64_t> labels(7, 0);
  labels[5] = 4;
  const SampleWindow w = sample_window(spec, labels, 4);
  EXPECT_EQ(w.video, (std::vector<std::int64_t>{4, 5, 6, 6, 6, 6, 6, 6, 6}));
  EXPECT_EQ(w.actions, (std::vector<std::int64_t>{4, 5, 6, 6, 6, 6}));
  EXPECT_EQ(w.states, (std::vector<std::int64_t>{4, 5, 6, 6}));
  EXPECT_TRUE(is_full(spec, w));
}

TEST(WindowTest, TheShapeFollowsTheMode) {
  WindowConfig w;
  const WindowShape anchors = window_shape("multi_anchor", w);
  EXPECT_EQ(anchors.frames, 33);
  EXPECT_EQ(anchors.actions, 96);
  EXPECT_EQ(anchors.states, 4);
  w.num_frames = 17;
  w.state_horizon = 3;
  const WindowShape clamped = window_shape("fixed_window", w);
  EXPECT_EQ(clamped.frames, 17);
  EXPECT_EQ(clamped.actions, 96);
  EXPECT_EQ(clamped.states, 12);
}

TEST(WindowTest, EachModeRefusesItsOwnMistakes) {
  EXPECT_TRUE(window_defect(anchored(4, 24, 24, {0})));
  EXPECT_TRUE(window_defect(anchored(4, 24, 24, {0, 3, 5})));
  EXPECT_FALSE(window_defect(anchored(4, 24, 24, {0, 3, 6})));
  DatasetSpec spec = fixed(2, 3, 9, 2);
  spec.window.video_offsets = {0};
  EXPECT_FALSE(window_defect(spec)) << "fixed windows have no offsets";
  spec.window.num_frames = 0;
  EXPECT_TRUE(window_defect(spec));
}

TEST(WindowTest, TheReleasedRecipesAnchorsAreTheClosedForm) {
  const DatasetSpec spec = anchored(4, 24, 24, {0, 3, 6, 9, 12, 15, 18, 21});
  for (std::int64_t length = 1; length < 400; ++length) {
    SampleIndex index(1);
    index.add_episode(0, spec, std::vector<std::int64_t>(static_cast<std::size_t>(length), 0));
    std::vector<std::int64_t> want, got;
    for (std::int64_t a = 0; a < length; ++a) {
      const std::int64_t r = a % 24, room = length - 25 - r;
      const std::int64_t blocks = room < 0 ? 0 : room / 24 + 1;
      if (blocks >= 4 && length - a != 24 && length - a != 48) want.push_back(a);
    }
    for (std::uint64_t i = 0; i < index.size(); ++i) got.push_back(index.at(i).anchor);
    ASSERT_EQ(got, want) << "length " << length;
  }
}

}  // namespace
}  // namespace troupe::data
