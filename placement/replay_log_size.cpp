#include "placement/replay_log_size.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/format.h"
#include "placement/rl_shape.h"

namespace troupe::placement {

namespace {

/// Position, size and digest before an item; of a file of one item, what the file begins with too.
constexpr std::int64_t kItemHeadBytes = 24 + 8;

/// Of so many items. In f64, as a capacity of 2^40 transitions of pictures passes 2^63 bytes.
std::int64_t bytes_of_items(double items, std::int64_t item_bytes) {
  const double bytes = items * static_cast<double>(item_bytes + kItemHeadBytes);
  return static_cast<std::int64_t>(std::min(bytes, 9.0e18));
}

}  // namespace

std::int64_t unlimited_replay_log_bytes(const JobConfig& job, std::int64_t item_bytes) {
  if (job.job.kind != JobKind::rl || !is_off_policy(job)) return 0;
  const RlShape shape = rl_shape(job);
  const std::int64_t transitions = shape.items_per_step() * shape.calls * shape.envs;
  const std::int64_t resident = (job.algorithm.sac.replay_capacity + transitions - 1) / transitions;
  // a step's file is written before the oldest is removed
  const std::int64_t steps = std::min(job.training.steps, resident + 2 * job.checkpoint.interval + 1);
  return bytes_of_items(static_cast<double>(steps) * static_cast<double>(shape.items_per_step()), item_bytes);
}

std::int64_t replay_log_bytes(const JobConfig& job, std::int64_t item_bytes) {
  const std::int64_t bytes = unlimited_replay_log_bytes(job, item_bytes), limit = job.algorithm.sac.replay_log_bytes;
  return limit == 0 ? bytes : std::min(bytes, limit);
}

std::optional<std::string> find_replay_log_problem(const JobConfig& job, std::int64_t item_bytes) {
  const std::int64_t limit = job.algorithm.sac.replay_log_bytes;
  if (limit == 0 || unlimited_replay_log_bytes(job, item_bytes) <= limit) return std::nullopt;
  const RlShape shape = rl_shape(job);
  const double items = 2.0 * static_cast<double>(job.checkpoint.interval) * static_cast<double>(shape.items_per_step());
  const std::int64_t least = bytes_of_items(items, item_bytes);
  if (least <= limit) return std::nullopt;
  return fmt::format(
      "algorithm.sac.replay_log_bytes {} is less than two checkpoint intervals write, {} (checkpoint.interval {}, {} "
      "trajectories a step): a resumed run might find nothing from before its checkpoint; raise it to {}, or lower "
      "checkpoint.interval or rollout.commit_every",
      limit, format_bytes(least), job.checkpoint.interval, shape.items_per_step(), least);
}

std::int64_t replay_log_bytes_per_million(const JobConfig& job, std::int64_t item_bytes) {
  const RlShape shape = rl_shape(job);
  return bytes_of_items(1e6 / static_cast<double>(shape.calls * shape.envs), item_bytes);
}

}  // namespace troupe::placement
