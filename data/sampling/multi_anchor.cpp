#include "data/sampling/multi_anchor.h"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::data {

namespace {

/// Calls add(a) for the anchor, then alternately S rows before and after it, until both directions met a bound or
/// another label, or until done() says that the list is full.
template <class Add, class Done>
void walk(std::span<const std::int64_t> labels, std::int64_t anchor, std::int64_t stride, const Add& add,
          const Done& done) {
  const auto length = static_cast<std::int64_t>(labels.size());
  const std::int64_t target = labels[static_cast<std::size_t>(anchor)];
  bool backward_done = false, forward_done = false;
  add(anchor);
  for (std::int64_t s = 1; !done() && !(backward_done && forward_done); ++s) {
    const std::int64_t back = anchor - stride * s, forth = anchor + stride * s;
    if (!backward_done) {
      backward_done = back < 0 || labels[static_cast<std::size_t>(back)] != target;
      if (!backward_done) add(back);
    }
    if (done()) return;
    if (!forward_done) {
      forward_done = forth >= length || labels[static_cast<std::size_t>(forth)] != target;
      if (!forward_done) add(forth);
    }
  }
}

void sort_unique(std::vector<std::int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

std::vector<std::int64_t> video_rows(const WindowConfig& w, std::span<const std::int64_t> labels, std::int64_t anchor) {
  const auto length = static_cast<std::int64_t>(labels.size());
  const auto frames = static_cast<std::int64_t>(w.video_offsets.size());
  const auto cap = static_cast<std::size_t>(frames * w.chunks + 1);
  const std::int64_t reach = std::max(w.video_offsets.back(), w.action_horizon - 1);
  const std::int64_t spacing = frames > 1 ? w.video_offsets[1] - w.video_offsets[0] : 1;

  std::vector<std::int64_t> rows;
  const auto add = [&](std::int64_t a) {
    if (a < 0 || a + reach >= length || rows.size() + static_cast<std::size_t>(frames) > cap) return;
    for (std::int64_t o : w.video_offsets) rows.push_back(a + o);
  };
  walk(labels, anchor, w.macro_stride, add, [&] { return rows.size() >= cap; });
  if (rows.empty()) return {};
  sort_unique(rows);
  if (rows.size() > cap) rows.resize(cap);

  // The boundary frame closes the last chunk; without room for it the last chunk gives up all but one of its frames.
  if (rows.back() + spacing < length && rows.size() < cap) {
    rows.push_back(rows.back() + spacing);
  } else if (rows.size() <= static_cast<std::size_t>(frames)) {
    return {};
  } else {
    rows.resize(rows.size() - static_cast<std::size_t>(frames - 1));
  }
  // As the reference has it: with a single offset per chunk nothing ever passes.
  if (static_cast<std::int64_t>(rows.size()) % frames != 1) return {};
  return rows;
}

std::vector<std::int64_t> action_rows(const WindowConfig& w, std::span<const std::int64_t> labels, std::int64_t anchor,
                                      std::int64_t chunks) {
  const auto length = static_cast<std::int64_t>(labels.size());
  const std::int64_t horizon = w.action_horizon;
  const auto cap = static_cast<std::size_t>(horizon * w.chunks);
  std::vector<std::int64_t> rows;
  const auto add = [&](std::int64_t a) {
    const auto size = static_cast<std::int64_t>(rows.size());
    // One row stricter than video: a + H itself must exist.
    if (a < 0 || a + horizon >= length || rows.size() + static_cast<std::size_t>(horizon) > cap) return;
    if (size / horizon >= chunks) return;
    for (std::int64_t i = 0; i < horizon; ++i) rows.push_back(a + i);
  };
  walk(labels, anchor, w.macro_stride, add, [&] { return rows.size() >= cap; });
  sort_unique(rows);
  rows.resize(rows.size() - rows.size() % static_cast<std::size_t>(horizon));
  return rows;
}

std::vector<std::int64_t> state_rows(const WindowConfig& w, std::span<const std::int64_t> labels, std::int64_t anchor,
                                     std::int64_t chunks) {
  const auto length = static_cast<std::int64_t>(labels.size());
  const auto cap = static_cast<std::size_t>(std::min(w.chunks, chunks));
  std::vector<std::int64_t> rows;
  const auto add = [&](std::int64_t a) {
    if (a >= 0 && a + w.macro_stride < length && rows.size() < cap) rows.push_back(a);
  };
  walk(labels, anchor, w.macro_stride, add, [&] { return rows.size() >= cap; });
  sort_unique(rows);
  return rows;
}

}  // namespace

SampleWindow multi_anchor_window(const WindowConfig& window, std::span<const std::int64_t> labels,
                                 std::int64_t anchor) {
  SampleWindow sample;
  sample.video = video_rows(window, labels, anchor);
  const auto frames = static_cast<std::int64_t>(window.video_offsets.size());
  if (!sample.video.empty()) sample.chunks = (static_cast<std::int64_t>(sample.video.size()) - 1) / frames;
  // Without video nothing limits the other parts; such a window is never full.
  const std::int64_t limit = sample.video.empty() ? window.chunks : sample.chunks;
  sample.actions = action_rows(window, labels, anchor, limit);
  sample.states = state_rows(window, labels, anchor, limit);
  return sample;
}

bool is_full(const WindowConfig& window, const SampleWindow& sample) {
  return sample.chunks == window.chunks &&
         static_cast<std::int64_t>(sample.actions.size()) == window.chunks * window.action_horizon &&
         static_cast<std::int64_t>(sample.states.size()) == window.chunks;
}

std::optional<std::string> window_defect(const WindowConfig& window) {
  const auto& o = window.video_offsets;
  if (o.size() < 2) {
    return fmt::format(
        "data.window.video_offsets has {} entries; a chunk needs at least two (every window of one would be dropped)",
        o.size());
  }
  if (o.front() < 0) return fmt::format("data.window.video_offsets begins at {}; offsets are >= 0", o.front());
  const std::int64_t spacing = o[1] - o[0];
  for (std::size_t i = 1; i < o.size(); ++i) {
    if (o[i] - o[i - 1] != spacing || spacing <= 0) {
      return fmt::format(
          "data.window.video_offsets has {} after {}; offsets are strictly increasing and uniformly spaced", o[i],
          o[i - 1]);
    }
  }
  if (window.chunks < 1 || window.macro_stride < 1 || window.action_horizon < 1) {
    return "data.window: chunks, macro_stride and action_horizon are at least 1";
  }
  return std::nullopt;
}

}  // namespace troupe::data
