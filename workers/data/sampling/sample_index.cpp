#include "workers/data/sampling/sample_index.h"

#include <algorithm>

#include "workers/data/sampling/multi_anchor.h"

namespace troupe {

std::int64_t SampleIndex::add_episode(std::size_t episode, const WindowConfig& window,
                                      std::span<const std::int64_t> labels, std::span<const std::int64_t> removed) {
  std::int64_t added = 0;
  std::int64_t expected = -1;  // the anchor that would extend the current run
  for (std::int64_t anchor = 0; anchor < static_cast<std::int64_t>(labels.size()); ++anchor) {
    if (std::binary_search(removed.begin(), removed.end(), anchor)) continue;
    if (!is_full(window, multi_anchor_window(window, labels, anchor))) continue;
    if (anchor != expected) runs_.push_back({size_, episode, anchor});
    expected = anchor + 1;
    ++size_;
    ++added;
  }
  return added;
}

SampleEntry SampleIndex::at(std::uint64_t i) const {
  const auto next = std::upper_bound(runs_.begin(), runs_.end(), i,
                                     [](std::uint64_t value, const Run& r) { return value < r.begin; });
  const Run& run = *(next - 1);
  return {run.episode, run.anchor + static_cast<std::int64_t>(i - run.begin)};
}

}  // namespace troupe
