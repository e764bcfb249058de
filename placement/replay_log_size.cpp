#include "placement/replay_log_size.h"

#include <algorithm>

#include "placement/rl_shape.h"

namespace troupe::placement {

namespace {

/// Position, size and digest before an item.
constexpr std::int64_t kItemHeadBytes = 24;

/// Of so many items. In f64, as a capacity of 2^40 transitions of pictures passes 2^63 bytes.
std::int64_t bytes_of_items(double items, std::int64_t item_bytes) {
  const double bytes = items * static_cast<double>(item_bytes + kItemHeadBytes);
  return static_cast<std::int64_t>(std::min(bytes, 9.0e18));
}

}  // namespace

std::int64_t replay_log_bytes(const JobConfig& job, std::int64_t item_bytes) {
  if (job.job.kind != JobKind::rl || !is_off_policy(job)) return 0;
  const RlShape shape = rl_shape(job);
  const std::int64_t transitions = shape.items_per_step() * shape.calls * shape.rows;
  const std::int64_t resident = (job.algorithm.sac.replay_capacity + transitions - 1) / transitions;
  // a step's file is written before the oldest is removed
  const std::int64_t steps = std::min(job.training.steps, resident + 2 * job.checkpoint.interval + 1);
  return bytes_of_items(static_cast<double>(steps) * static_cast<double>(shape.items_per_step()), item_bytes);
}

std::int64_t replay_log_bytes_per_million(const JobConfig& job, std::int64_t item_bytes) {
  const RlShape shape = rl_shape(job);
  return bytes_of_items(1e6 / static_cast<double>(shape.calls * shape.rows), item_bytes);
}

}  // namespace troupe::placement
