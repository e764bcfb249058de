#include "workers/inference/evaluate/action_errors.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace troupe::workers {

ActionErrorSums::ActionErrorSums(std::int64_t horizon, std::vector<double> scale)
    : horizon_(static_cast<std::size_t>(horizon)), scale_(std::move(scale)), sums_(horizon_ * scale_.size()) {}

void ActionErrorSums::Sums::add(const Sums& o) {
  count += o.count;
  non_finite += o.non_finite;
  squared += o.squared;
  absolute += o.absolute;
  normalised += o.normalised;
  hold += o.hold;
  hold_normalised += o.hold_normalised;
  mean += o.mean;
  mean_normalised += o.mean_normalised;
}

ActionError ActionErrorSums::Sums::means() const {
  // No value, no mean: NaN, which reports show as missing.
  const double n = count > 0 ? static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
  return {.count = count,
          .non_finite = non_finite,
          .mse = squared / n,
          .mae = absolute / n,
          .normalised_mse = normalised / n,
          .hold_mse = hold / n,
          .hold_normalised_mse = hold_normalised / n,
          .mean_mse = mean / n,
          .mean_normalised_mse = mean_normalised / n};
}

void ActionErrorSums::add(const ActionBlock& block) {
  const std::size_t width = scale_.size();
  TROUPE_CHECK(
      block.recorded.size() == sums_.size() && block.predicted.size() == sums_.size() && block.mean.size() == width,
      "a block has the horizon and width of the sums");
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const std::size_t d = i % width;
    Sums& s = sums_[i];
    const double truth = static_cast<double>(block.recorded[i]), scale = scale_[d];
    const double error = static_cast<double>(block.predicted[i]) - truth;
    if (!std::isfinite(error)) {
      ++s.non_finite;
      continue;
    }
    const double hold = static_cast<double>(block.recorded[d]) - truth,
                 mean = static_cast<double>(block.mean[d]) - truth;
    ++s.count;
    s.squared += error * error;
    s.absolute += std::abs(error);
    s.normalised += error * scale * error * scale;
    s.hold += hold * hold;
    s.hold_normalised += hold * scale * hold * scale;
    s.mean += mean * mean;
    s.mean_normalised += mean * scale * mean * scale;
  }
}

std::vector<ActionError> ActionErrorSums::grouped(std::size_t count, std::size_t stride) const {
  std::vector<Sums> totals(count);
  for (std::size_t i = 0; i < sums_.size(); ++i) totals[i / stride % count].add(sums_[i]);
  std::vector<ActionError> out;
  for (const Sums& s : totals) out.push_back(s.means());
  return out;
}

}  // namespace troupe::workers
