#include "data/sampling/window.h"

#include <algorithm>

namespace troupe::data {

namespace {

constexpr std::string_view kFixedWindow = "fixed_window";

SampleWindow fixed_window(const WindowConfig& w, std::int64_t length, std::int64_t anchor) {
  SampleWindow sample;
  const auto row = [&](std::int64_t i) { return std::min(anchor + i, length - 1); };
  for (std::int64_t i = 0; i < w.num_frames; ++i) sample.video.push_back(row(i));
  for (std::int64_t i = 0; i < w.chunks * w.action_horizon; ++i) sample.actions.push_back(row(i));
  for (std::int64_t c = 0; c < w.chunks; ++c) {
    for (std::int64_t s = 0; s < w.state_horizon; ++s) sample.states.push_back(row(c * w.action_horizon + s));
  }
  sample.chunks = w.chunks;
  return sample;
}

}  // namespace

WindowShape window_shape(std::string_view sampling, const WindowConfig& window) {
  const std::int64_t actions = window.chunks * window.action_horizon;
  if (sampling == kFixedWindow) return {window.num_frames, actions, window.chunks * window.state_horizon};
  return {window.chunks * static_cast<std::int64_t>(window.video_offsets.size()) + 1, actions, window.chunks};
}

SampleWindow sample_window(const DatasetSpec& spec, std::span<const std::int64_t> labels, std::int64_t anchor) {
  if (spec.sampling == kFixedWindow) return fixed_window(spec.window, static_cast<std::int64_t>(labels.size()), anchor);
  return multi_anchor_window(spec.window, labels, anchor);
}

bool is_full(const DatasetSpec& spec, const SampleWindow& sample) {
  if (spec.sampling != kFixedWindow) return is_full(spec.window, sample);
  const WindowShape shape = window_shape(spec.sampling, spec.window);
  const auto has = [](const std::vector<std::int64_t>& rows, std::int64_t count) {
    return static_cast<std::int64_t>(rows.size()) == count;
  };
  return has(sample.video, shape.frames) && has(sample.actions, shape.actions) && has(sample.states, shape.states);
}

std::optional<std::string> window_defect(const DatasetSpec& spec) {
  if (spec.sampling != kFixedWindow) return window_defect(spec.window);
  const WindowConfig& w = spec.window;
  if (w.chunks < 1 || w.action_horizon < 1 || w.num_frames < 1 || w.state_horizon < 1) {
    return "data.window: chunks, action_horizon, num_frames and state_horizon are at least 1";
  }
  return std::nullopt;
}

}  // namespace troupe::data
