#include "workers/learner/rl/running_statistics.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe::workers {

RunningStatistics::RunningStatistics(const RolloutConfig& config, std::int64_t state_dim)
    : config_(config), state_dim_(state_dim) {
  clear();
}

void RunningStatistics::clear() {
  state_.observed = Moments(config_.normalize_obs ? static_cast<std::size_t>(state_dim_) : 0);
  state_.returned = Moments(config_.normalize_reward ? 1 : 0);
}

Result<void> RunningStatistics::merge(const TrajectoryLayout& layout, std::span<const CollectedItem> items,
                                      std::int64_t first_position, std::int64_t count, Collective& group) {
  const std::size_t observed = layout.observed.is_present() ? state_.observed.numbers().size() : 0;
  const std::size_t returned = layout.returned.is_present() ? state_.returned.numbers().size() : 0;
  const std::size_t width = observed + returned;
  if (width == 0) return {};
  // Every rank fills in its own items; the others add zeros, which is exact.
  std::vector<double> all(width * static_cast<std::size_t>(count), 0.0);
  for (const CollectedItem& item : items) {
    const ConstTrajectoryView view(layout, item.bytes.data());
    double* out = all.data() + width * static_cast<std::size_t>(item.position - first_position);
    if (observed > 0) std::copy(view.observed().begin(), view.observed().end(), out);
    if (returned > 0) std::copy(view.returned().begin(), view.returned().end(), out + observed);
  }
  TROUPE_TRY(group.all_reduce_sum(all));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::span<const double> numbers(all.data() + i * width, width);
    if (observed > 0) state_.observed.merge(numbers.first(observed));
    if (returned > 0) state_.returned.merge(numbers.subspan(observed));
  }
  return {};
}

at::Tensor RunningStatistics::scale_reward(const at::Tensor& reward) const {
  if (!config_.normalize_reward) return reward;
  const double scale = std::sqrt(state_.returned.variance(0) + 1e-8);
  return reward.div(scale).clamp(-config_.clip_reward, config_.clip_reward);
}

}  // namespace troupe::workers
