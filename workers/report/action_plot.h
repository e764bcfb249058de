#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::workers {

/// Recorded and predicted actions over time, one row of panels for each dimension and one column for each window:
/// the image of an open-loop evaluation (docs/evaluation.md#open-loop-evaluation).
struct ActionPlotWindow {
  /// Such as "episode 7, row 120".
  std::string title{};
  /// Shapes: (steps, names), row major, as many of both.
  std::vector<float> recorded{}, predicted{};
};

/// Recorded and predicted actions over time, one row of panels for each dimension and one column for each window.
struct ActionPlot {
  std::string title{};
  /// One per dimension.
  std::vector<std::string> names{};
  /// Steps of one prediction: a line marks where each begins; 0: no lines.
  std::int64_t block = 0;
  std::vector<ActionPlotWindow> windows{};
};

/// Draws the plot as PNG. Panels of one dimension share their range; a value that is not finite interrupts its curve.
/// Errors: invalid_argument for sizes that do not match, an empty plot or one of more than 64 dimensions or 8 windows;
///         failed_precondition when `path` cannot be written.
Result<void> draw_actions(const std::string& path, const ActionPlot& plot);

}  // namespace troupe::workers
