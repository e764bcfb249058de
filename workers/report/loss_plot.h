#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::workers {

/// What a curve shows; it decides the colour and whether it is drawn as a smoothed line, as points (held_out), or as it
/// is (group: the seeds of one configuration).
enum class LossRole : std::uint8_t { train, dynamics, action, held_out, group };

/// One value of a curve.
struct LossPoint {
  /// Optimizer updates.
  std::int64_t step = 0;
  /// Not finite: left out of the curve, counted in the legend.
  double value = 0;
};

/// Bounds at the step of a point.
struct LossBand {
  double low = 0, high = 0;
};

/// One curve and its entry in the legend.
struct LossSeries {
  std::string name{};
  LossRole role = LossRole::train;
  /// In ascending order of step.
  std::vector<LossPoint> points{};
  /// A band behind the curve: as many as points, or none.
  std::vector<LossBand> band{};
  /// Tells the colours of several of role `group` apart; they are dashed where colours repeat.
  std::size_t group = 0;
};

/// How the plot is drawn.
struct LossPlotOptions {
  std::string title{};
  std::string x_title = "optimizer step", y_title = "loss";
  /// Pixels. A legend of many rows adds to the height.
  std::int64_t width = 1200, height = 720;
  /// Values <= 0 are then left out like those that are not finite.
  bool log_scale = false;
  /// Share of a curve's points in the running mean that is drawn over the pale raw curve; 0 draws the raw curve alone.
  double smoothing = 0.02;
};

/// Draws loss against step: title, axes with units, PNG; above the curves a legend with each one's last value.
/// Errors: invalid_argument when no series has a drawable point or the size is out of range; failed_precondition when
///         `path` cannot be written.
Result<void> draw_loss_curves(const std::string& path, const std::vector<LossSeries>& series,
                              const LossPlotOptions& options);

/// Whether the values are positive and span more than four decades, as those of a run that diverged: on a linear scale
/// all but the largest lie on the axis.
bool wants_log_scale(const std::vector<LossSeries>& series);

/// Mean of the `window` points (one more of an even window) around each point that has as many on both sides: a mean
/// over fewer would be a spike. Empty for a window below 2 or as long as the curve.
std::vector<LossPoint> running_mean(const std::vector<LossPoint>& points, std::int64_t window);

}  // namespace troupe::workers
