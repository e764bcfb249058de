#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "configs/data_config.h"
#include "data/sampling/dataset_spec.h"
#include "data/sampling/multi_anchor.h"

namespace troupe::data {

/// Number of table rows of the three parts of a full window: the leading dimensions of a sample's images, action,
/// state.
struct WindowShape {
  /// T: K*F + 1, or num_frames with fixed_window.
  std::int64_t frames = 0;
  /// K*H, in both modes.
  std::int64_t actions = 0;
  /// K, or K*state_horizon with fixed_window.
  std::int64_t states = 0;
};

/// The shape under data.sampling `sampling`. Pure.
WindowShape window_shape(std::string_view sampling, const WindowConfig& window);

/// The rows of the sample at `anchor` of an episode of labels.size() rows, as spec.sampling says. multi_anchor:
/// multi_anchor_window. fixed_window: frames f .. f+num_frames-1, actions f + c*H + i, states f + c*H + s, all clamped
/// to the episode and without regard to labels; `video`, `actions` and `states` may then repeat the last row, and
/// `chunks` is K. Pure. Requires 0 <= anchor < labels.size() and no defect. Source: GEAR (multi_anchor)
/// and RLinf (fixed_window).
SampleWindow sample_window(const DatasetSpec& spec, std::span<const std::int64_t> labels, std::int64_t anchor);

/// True when the window has the shape of its mode: what an index lists and training takes. Every fixed window is full.
bool is_full(const DatasetSpec& spec, const SampleWindow& sample);

/// Why a dataset's window cannot work under its mode, or nothing.
std::optional<std::string> window_defect(const DatasetSpec& spec);

}  // namespace troupe::data
