#include "model/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::model {

double lr_at(const OptimizerConfig& optimizer, const LrSchedulerConfig& scheduler, std::int64_t step,
             std::int64_t total) {
  const std::int64_t length = scheduler.total_steps > 0 ? scheduler.total_steps : total;
  const auto warmup = static_cast<std::int64_t>(std::ceil(scheduler.warmup_ratio * static_cast<double>(length)));
  if (step < warmup) return optimizer.lr * static_cast<double>(step) / static_cast<double>(warmup);
  if (scheduler.name == "constant") return optimizer.lr;
  const double span = static_cast<double>(std::max<std::int64_t>(1, length - warmup));
  const double progress = std::min(1.0, static_cast<double>(step - warmup) / span);
  const double share = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return scheduler.min_lr + (optimizer.lr - scheduler.min_lr) * share;
}

}  // namespace troupe::model
