#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "configs/job_config.h"
#include "placement/plan.h"

namespace troupe::placement {

/// Transformer blocks of each level of activation_checkpoint: none, cheap, attention, full.
using BlockCounts = std::array<std::int64_t, 4>;

/// What a decided job says: its counts, or its mode for all; auto counts as full.
BlockCounts block_counts(const ActivationCheckpointConfig& config, std::int64_t blocks);

/// Of each block in order: its level, by place in BlockCounts. The first blocks recompute most, since they keep what
/// they keep the longest.
std::vector<std::size_t> block_levels(const BlockCounts& counts);

/// "none", or "4 none, 26 full". Of a plan likewise.
std::string recompute_text(const BlockCounts& counts);
std::string recompute_text(const Plan& plan);

/// The job with activation_checkpoint decided. Of auto: none where that fits; else, from full for all blocks, one block
/// after the other takes the level that saves the most work for a byte more, as long as `fits` says so. Depends on the
/// job, its cost and what fits alone. A network whose blocks have no levels is none where that fits, else full. `fits`:
/// whether a decided job has the memory that it needs. Pure.
JobConfig with_recompute(const JobConfig& job, const ModelCost& cost,
                         const std::function<bool(const JobConfig&)>& fits);

}  // namespace troupe::placement
