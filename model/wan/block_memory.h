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
  /// shared by all blocks: the larger of forward's and backward's, and the gradients that two blocks hand on
  std::int64_t workspace_bytes = 0;
};

/// By RecomputeLevel, from the very programs that the engine runs (model/wan/dit_program.h), recorded for `samples`
/// samples in `dtype` and the form of products that this process has, whose prompts differ and fill the text encoder's
/// length: others take less (model/wan/text_rows.h). Allocates no activations and no weights.
/// Errors: throws c10::Error, as training_units does.
std::array<BlockMemory, kRecomputeLevels> block_memory(const ModelConfig& config, const WindowConfig& window,
                                                       at::ScalarType dtype, std::int64_t samples);

}  // namespace troupe::model
