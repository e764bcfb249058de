#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "configs/data_config.h"

namespace troupe {

/// Rows of one episode that make a sample. Video rows are video frames in presentation order.
struct SampleWindow {
  std::vector<std::int64_t> video;    ///< F*n + 1 rows, ascending: n chunks of F and the boundary frame
  std::vector<std::int64_t> actions;  ///< H rows per block, ascending
  std::vector<std::int64_t> states;   ///< one row per block: the block's anchor
  std::int64_t chunks = 0;            ///< n
};

/// The window around `anchor` in an episode of labels.size() rows, where labels[i] is the language label of row i.
/// Anchors are added alternately S rows before and after the first one, as long as the label at the anchor is the same.
/// Returns a window with fewer chunks than window.chunks near the ends of an episode; empty vectors where a part has no
/// room. Pure. Requires 0 <= anchor < labels.size() and a valid window. Source: data.md 3.2.
SampleWindow multi_anchor_window(const WindowConfig& window, std::span<const std::int64_t> labels, std::int64_t anchor);

/// True when a window is full: exactly K chunks, K*H actions, K states. Only full windows are trained.
bool is_full(const WindowConfig& window, const SampleWindow& sample);

/// Why a window configuration cannot work, or nothing.
std::optional<std::string> window_defect(const WindowConfig& window);

}  // namespace troupe
