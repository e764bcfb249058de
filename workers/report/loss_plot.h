#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::workers {

/// What a curve shows; it decides the colour and whether it is drawn as a smoothed line or as points.
enum class LossRole : std::uint8_t { train, dynamics, action, held_out };

/// One value of a curve.
struct LossPoint {
  /// Optimizer updates.
  std::int64_t step = 0;
  /// Not finite: left out of the curve, counted in the legend.
  double value = 0;
};

/// One curve and its entry in the legend.
struct LossSeries {
  std::string name{};
  LossRole role = LossRole::train;
  /// In ascending order of step.
  std::vector<LossPoint> points{};
};

/// How the plot is drawn.
struct LossPlotOptions {
  std::string title{};
  std::string x_title = "optimizer step", y_title = "loss";
  /// Pixels.
  std::int64_t width = 1200, height = 720;
  /// Values <= 0 are then left out like those that are not finite.
  bool log_scale = false;
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

}  // namespace troupe::workers
