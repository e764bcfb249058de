#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "configs/data_config.h"

namespace troupe::data {

/// Table rows of one episode that make a sample. Video rows are video frames in presentation order.
struct SampleWindow {
  /// F*n + 1 rows, ascending: n chunks of F and the boundary frame.
  std::vector<std::int64_t> video;
  /// H table rows per chunk, ascending.
  std::vector<std::int64_t> actions;
  /// One table row per chunk: the chunk's anchor.
  std::vector<std::int64_t> states;
  /// n; K in a full window.
  std::int64_t chunks = 0;
};

/// The window around `anchor` in an episode of labels.size() rows, where labels[i] is the language label of row i.
/// Anchors are added alternately S rows before and after the first one, as long as the label at the anchor is the same.
/// Returns a window with fewer chunks than window.chunks near the ends of an episode; empty vectors where a part has no
/// room. Pure. Requires 0 <= anchor < labels.size() and a valid window. Source: multi_anchor sampling of GEAR's
/// DreamZero loader, which fixes S = H = 24 and video offsets 0, 3, .., 21; docs/data.md#windows.
SampleWindow multi_anchor_window(const WindowConfig& window, std::span<const std::int64_t> labels, std::int64_t anchor);

/// True when a window is full: exactly K chunks, K*H actions, K states. Only full windows are trained.
bool is_full(const WindowConfig& window, const SampleWindow& sample);

/// Why a window configuration cannot work, or nothing.
std::optional<std::string> window_defect(const WindowConfig& window);

}  // namespace troupe::data
