#include "model/wan/block_memory.h"

#include <algorithm>

#include "model/wan/planned_block.h"

namespace troupe::model {

std::array<BlockMemory, kRecomputeLevels> block_memory(const ModelConfig& config, const WindowConfig& window,
                                                       at::ScalarType dtype, std::int64_t samples) {
  const PlannedBlocks blocks(config, window, dtype, samples);
  std::array<BlockMemory, kRecomputeLevels> memory;
  for (const bool is_last : {false, true}) {
    for (std::size_t level = 0; level < memory.size(); ++level) {
      const UnitProgram program = blocks.program(is_last, static_cast<RecomputeLevel>(level));
      const Pass &forward = program.forward_pass(), &backward = program.backward_pass();
      (is_last ? memory[level].last_kept_bytes : memory[level].kept_bytes) = forward.stash_bytes;
      memory[level].workspace_bytes =
          std::max(memory[level].workspace_bytes,
                   std::max(forward.workspace_bytes, backward.workspace_bytes) + 2 * backward.gradient_bytes);
    }
  }
  return memory;
}

}  // namespace troupe::model
