#pragma once

#include <ATen/core/ScalarType.h>

#include <array>
#include <cstdint>

#include "configs/data_config.h"
#include "configs/model_config.h"
#include "model/program/recompute_level.h"

namespace troupe::model {

/// Bytes of one block's program at a level, for one micro-batch.
struct BlockMemory {
  /// its result and what its backward reads; of the last block, whose rows are trimmed
  std::int64_t kept_bytes = 0, last_kept_bytes = 0;
  /// shared by all units where blocks have that level: the most that one of them works in, and the gradients that two
  /// units hand on
  std::int64_t workspace_bytes = 0;
};

/// Of the programs of a job's units.
struct UnitMemoryCost {
  /// by RecomputeLevel
  std::array<BlockMemory, kRecomputeLevels> blocks = {};
  /// what prologue, head and loss keep, where the prologue keeps what its backward reads, and where it runs again: when
  /// not all blocks keep everything
  std::int64_t ends_kept_bytes = 0, ends_rerun_bytes = 0;
};

/// From the very programs that the engine runs (model/wan/planned_units.h). Errors as there.
UnitMemoryCost unit_memory_cost(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype,
                                std::int64_t samples);

}  // namespace troupe::model
