#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::workers {

/// Means of errors over some values. Values that are not finite are counted and left out of every mean.
struct ActionError {
  /// Values in the means.
  std::int64_t count = 0;
  /// Predictions that are NaN or infinite.
  std::int64_t non_finite = 0;
  /// Mean squared and mean absolute error: in the robot's units squared, and in its units.
  double mse = 0, mae = 0;
  /// Of errors times the normalisation's scale: 2 / (q99 - q01) for q99.
  double normalised_mse = 0;
  /// The same mean squared errors of two policies that need no model, over the same values.
  /// The recorded action of the first step, held over the horizon.
  double hold_mse = 0, hold_normalised_mse = 0;
  /// The dataset's mean action (its mean relative action, for relative keys).
  double mean_mse = 0, mean_normalised_mse = 0;
};

/// What is compared in one block of a window: rows of a horizon, row major (horizon, width), all alike.
struct ActionBlock {
  std::span<const float> recorded, predicted;
  /// (width): the mean action at this block of the horizon.
  std::span<const float> mean;
};

/// Sums errors over blocks. Sums are double, in the order of calls: the same blocks give the same numbers.
class ActionErrorSums {
 public:
  /// scale: for each dimension what an error is multiplied by to be in normalised units.
  ActionErrorSums(std::int64_t horizon, std::vector<double> scale);

  /// Requires spans of horizon x width values, and of width values.
  void add(const ActionBlock& block);

  /// Means over everything, over each dimension (width of them), over each step of the horizon. Any time, also in
  /// between.
  ActionError overall() const { return grouped(1, 1).front(); }
  std::vector<ActionError> by_dimension() const { return grouped(scale_.size(), 1); }
  std::vector<ActionError> by_step() const { return grouped(horizon_, scale_.size()); }

 private:
  struct Sums {
    std::int64_t count = 0, non_finite = 0;
    double squared = 0, absolute = 0, normalised = 0, hold = 0, hold_normalised = 0, mean = 0, mean_normalised = 0;
    void add(const Sums& other);
    ActionError means() const;
  };
  /// Means over `count` groups; cell i belongs to group i / stride, modulo their number.
  std::vector<ActionError> grouped(std::size_t count, std::size_t stride) const;
  std::size_t horizon_;
  std::vector<double> scale_;
  std::vector<Sums> sums_;  // (horizon, width)
};

}  // namespace troupe::workers
