// Which rows are anchors, and what their windows hold, on thousands of random label spans.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "data/sampling/sample_index.h"
#include "data/sampling/window.h"

namespace troupe::data {
namespace {

using Rows = std::vector<std::int64_t>;

/// Offsets span the stride, as the released recipes' do: blocks of the three parts then begin at the same rows.
DatasetSpec spanning(std::int64_t chunks, std::int64_t step, std::int64_t frames) {
  DatasetSpec spec;
  spec.window.chunks = chunks;
  spec.window.macro_stride = spec.window.action_horizon = step * frames;
  spec.window.video_offsets.clear();
  for (std::int64_t o = 0; o < frames; ++o) spec.window.video_offsets.push_back(o * step);
  return spec;
}

/// The anchors of a full window by another road than the walk: the rows that are whole strides away and reachable
/// without meeting another label, nearest first (before, then after), that have room for a block; the first K of
/// them, if the last one in time also has a row behind its block. Empty: not full.
Rows blocks_of(const DatasetSpec& spec, const Rows& labels, std::int64_t anchor) {
  const std::int64_t stride = spec.window.macro_stride, length = static_cast<std::int64_t>(labels.size());
  const auto label = [&](std::int64_t row) { return labels[static_cast<std::size_t>(row)]; };
  std::vector<std::pair<std::int64_t, std::int64_t>> reachable = {{0, anchor}};  // rank, row
  for (std::int64_t s = 1, a = anchor - stride; a >= 0 && label(a) == label(anchor); ++s, a -= stride)
    reachable.emplace_back(2 * s, a);
  for (std::int64_t s = 1, a = anchor + stride; a < length && label(a) == label(anchor); ++s, a += stride)
    reachable.emplace_back(2 * s + 1, a);
  std::erase_if(reachable, [&](const auto& r) { return r.second + stride > length; });
  std::sort(reachable.begin(), reachable.end());
  if (static_cast<std::int64_t>(reachable.size()) < spec.window.chunks) return {};
  Rows starts;
  for (std::int64_t k = 0; k < spec.window.chunks; ++k) starts.push_back(reachable[static_cast<std::size_t>(k)].second);
  std::sort(starts.begin(), starts.end());
  return starts.back() + stride < length ? starts : Rows{};
}

/// Every row of an episode against blocks_of: which rows the index lists, and what their windows hold.
void expect_index_is_right(const DatasetSpec& spec, const Rows& labels) {
  SampleIndex index(1);
  index.add_episode(0, spec, labels);
  std::uint64_t next = 0;
  for (std::int64_t anchor = 0; anchor < static_cast<std::int64_t>(labels.size()); ++anchor) {
    const Rows starts = blocks_of(spec, labels, anchor);
    const bool listed = next < index.size() && index.at(next).anchor == anchor;
    ASSERT_EQ(listed, !starts.empty()) << "anchor " << anchor << " of " << labels.size();
    if (!listed) continue;
    ++next;
    const SampleWindow window = sample_window(spec, labels, anchor);
    Rows video, actions;
    for (const std::int64_t start : starts) {
      for (const std::int64_t o : spec.window.video_offsets) video.push_back(start + o);
      for (std::int64_t i = 0; i < spec.window.action_horizon; ++i) actions.push_back(start + i);
    }
    video.push_back(video.back() + spec.window.video_offsets[1]);
    ASSERT_EQ(window.states, starts) << "anchor " << anchor;
    ASSERT_EQ(window.video, video) << "anchor " << anchor;
    ASSERT_EQ(window.actions, actions) << "anchor " << anchor;
  }
  ASSERT_EQ(next, index.size());
}

Rows random_labels(CounterRng& random, std::int64_t length) {
  Rows labels;
  while (static_cast<std::int64_t>(labels.size()) < length) {
    const std::int64_t label = random.below(3);  // labels come back
    labels.insert(labels.end(), 1 + random.below(60), label);
  }
  labels.resize(static_cast<std::size_t>(length));
  return labels;
}

TEST(SpanLayoutsTest, TwentyThousandRandomSpanLayoutsAreIndexedRight) {
  CounterRng random(11, 0, 0);
  for (int layout = 0; layout < 20'000; ++layout) {
    const DatasetSpec spec = spanning(1 + random.below(4), 1 + random.below(3), 2 + random.below(4));
    const Rows labels = random_labels(random, 1 + random.below(160));
    ASSERT_NO_FATAL_FAILURE(expect_index_is_right(spec, labels)) << "layout " << layout;
  }
}

}  // namespace
}  // namespace troupe::data
