#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe {

/// What a curve shows; it decides the colour and whether it is drawn as a smoothed line or as points.
enum class LossRole : std::uint8_t { train, dynamics, action, held_out };

struct LossPoint {
  std::int64_t step = 0;  ///< optimizer updates
  double value = 0;       ///< not finite: left out of the curve, counted in the legend
};

struct LossSeries {
  std::string name{};
  LossRole role = LossRole::train;
  std::vector<LossPoint> points{};  ///< in ascending order of step
};

struct LossPlotOptions {
  std::string title{};
  std::string x_title = "optimizer step", y_title = "loss";
  std::int64_t width = 1200, height = 720;  ///< pixels
  bool log_scale = false;                   ///< values <= 0 are then left out like those that are not finite
  /// Share of a curve's points in the running mean that is drawn over the pale raw curve; 0 draws the raw curve alone.
  double smoothing = 0.02;
};

/// Draws loss against step: title, axes with units, legend with each curve's last value, PNG.
/// Errors: invalid_argument when no series has a drawable point or the size is out of range; failed_precondition when
///         `path` cannot be written.
Result<void> draw_loss_curves(const std::string& path, const std::vector<LossSeries>& series,
                              const LossPlotOptions& options);

/// Mean of up to `window` points around each point (fewer at the ends). For tests.
std::vector<LossPoint> running_mean(const std::vector<LossPoint>& points, std::int64_t window);

}  // namespace troupe
