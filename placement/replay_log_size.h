#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "configs/job_config.h"

namespace troupe::placement {

/// Files of the replay log (docs/rl.md#replay-on-disk) of all ranks, 0 of an on-policy job: what the buffer holds and
/// what two checkpoint intervals write, but no more than the job's steps, whatever algorithm.sac.replay_log_bytes says.
/// `item_bytes` is the largest item's (ModelCost::sample_bytes), so this is the most: with pictures an item takes
/// between half of it, where no episode ends, and the whole.
std::int64_t unlimited_replay_log_bytes(const JobConfig& job, std::int64_t item_bytes);

/// The same within algorithm.sac.replay_log_bytes: what the log takes on disk.
std::int64_t replay_log_bytes(const JobConfig& job, std::int64_t item_bytes);

/// Why the log cannot do with algorithm.sac.replay_log_bytes: it is less than two checkpoint intervals write, and a
/// resumed run might find nothing from before its checkpoint. None: it can.
std::optional<std::string> find_replay_log_problem(const JobConfig& job, std::int64_t item_bytes);

/// Of 1,000,000 transitions, at most.
std::int64_t replay_log_bytes_per_million(const JobConfig& job, std::int64_t item_bytes);

}  // namespace troupe::placement
