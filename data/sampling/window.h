#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "configs/data_config.h"
#include "data/sampling/dataset_spec.h"
#include "data/sampling/multi_anchor.h"

namespace troupe {

/// Rows of the three parts of a full window.
struct WindowShape {
  std::int64_t frames = 0;   ///< T: K*F + 1, or num_frames with fixed_window
  std::int64_t actions = 0;  ///< K*H
  std::int64_t states = 0;   ///< K, or K*state_horizon with fixed_window
};

/// The shape under data.sampling `sampling`. Pure.
WindowShape window_shape(std::string_view sampling, const WindowConfig& window);

/// The rows of the sample at `anchor` of an episode of labels.size() rows, as spec.sampling says. multi_anchor:
/// multi_anchor_window. fixed_window: frames f .. f+num_frames-1, actions f + c*H + i, states f + c*H + s, all clamped
/// to the episode and without regard to labels; `video`, `actions` and `states` may then repeat the last row, and
/// `chunks` is K. Pure. Requires 0 <= anchor < labels.size() and no defect. Source: data.md 3.2, 3.4.
SampleWindow sample_window(const DatasetSpec& spec, std::span<const std::int64_t> labels, std::int64_t anchor);

/// True when the window has the shape of its mode: what an index lists and training takes. Every fixed window is full.
bool is_full(const DatasetSpec& spec, const SampleWindow& sample);

/// Why a dataset's window cannot work under its mode, or nothing.
std::optional<std::string> window_defect(const DatasetSpec& spec);

}  // namespace troupe
