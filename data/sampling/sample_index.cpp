#include "data/sampling/sample_index.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "base/hash.h"
#include "data/sampling/window.h"

namespace troupe::data {

namespace {

/// Digest of a window's rows. Two windows of one episode that differ share it with a probability of about 2^-64.
std::uint64_t digest(const SampleWindow& w) {
  std::uint64_t out = xxh3_64(std::as_bytes(std::span(w.video)));
  for (const auto* rows : {&w.actions, &w.states}) out = mix64(out) ^ xxh3_64(std::as_bytes(std::span(*rows)));
  return out;
}

}  // namespace

std::vector<AnchorRun> anchor_runs(const DatasetSpec& spec, std::span<const std::int64_t> labels,
                                   std::span<const std::int64_t> removed) {
  const bool distinct = spec.anchors == "windows" && spec.sampling == "multi_anchor";
  const bool every_row = spec.sampling == "fixed_window";  // windows are clamped, so all of them are full
  std::vector<AnchorRun> runs;
  std::unordered_set<std::uint64_t> seen;
  for (std::int64_t anchor = 0; anchor < static_cast<std::int64_t>(labels.size()); anchor += spec.anchor_stride) {
    if (std::binary_search(removed.begin(), removed.end(), anchor)) continue;
    if (!every_row) {
      const SampleWindow window = sample_window(spec, labels, anchor);
      if (!is_full(spec, window) || (distinct && !seen.insert(digest(window)).second)) continue;
    }
    const bool extends = !runs.empty() && runs.back().first + runs.back().count * spec.anchor_stride == anchor;
    if (!extends) runs.push_back({.first = anchor, .count = 0});
    ++runs.back().count;
  }
  return runs;
}

void SampleIndex::add_runs(std::size_t episode, std::span<const AnchorRun> runs) {
  for (const AnchorRun& run : runs) {
    runs_.push_back({.begin = size_, .episode = episode, .anchor = run.first});
    size_ += static_cast<std::uint64_t>(run.count);
  }
}

std::int64_t SampleIndex::add_episode(std::size_t episode, const DatasetSpec& spec,
                                      std::span<const std::int64_t> labels, std::span<const std::int64_t> removed) {
  const std::vector<AnchorRun> runs = anchor_runs(spec, labels, removed);
  add_runs(episode, runs);
  return std::accumulate(runs.begin(), runs.end(), std::int64_t{0},
                         [](std::int64_t sum, const AnchorRun& r) { return sum + r.count; });
}

std::int64_t SampleIndex::add_episode(std::size_t episode, const WindowConfig& window,
                                      std::span<const std::int64_t> labels, std::span<const std::int64_t> removed) {
  DatasetSpec spec;
  spec.window = window;
  return add_episode(episode, spec, labels, removed);
}

SampleEntry SampleIndex::at(std::uint64_t i) const {
  const auto next = std::upper_bound(runs_.begin(), runs_.end(), i,
                                     [](std::uint64_t value, const Run& r) { return value < r.begin; });
  const Run& run = *(next - 1);
  return {static_cast<std::size_t>(run.episode), run.anchor + static_cast<std::int64_t>(i - run.begin) * stride_};
}

}  // namespace troupe::data
