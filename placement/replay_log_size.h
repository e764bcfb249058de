#pragma once

#include <cstdint>

#include "configs/job_config.h"

namespace troupe::placement {

/// Files of the replay log (docs/rl.md#replay-on-disk) of all ranks, 0 of an on-policy job: what the buffer holds and
/// what two checkpoint intervals write, but no more than the job's steps. `item_bytes` is the largest item's
/// (ModelCost::sample_bytes), so this is the most: with pictures an item takes between half of it, where no episode
/// ends, and the whole.
std::int64_t replay_log_bytes(const JobConfig& job, std::int64_t item_bytes);

/// The same of 1,000,000 transitions.
std::int64_t replay_log_bytes_per_million(const JobConfig& job, std::int64_t item_bytes);

}  // namespace troupe::placement
