#include "model/wan/block_memory.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <string>

#include "kernels/dispatch.h"
#include "model/wan/dit_parts.h"
#include "model/wan/dit_program.h"
#include "model/wan/lora.h"
#include "model/wan/model_cost.h"

namespace troupe::model {
namespace {

/// A block's tensors without memory behind them.
struct BlockShape {
  std::string prefix;
  ParamView params;
  std::set<std::string> trained;
};

BlockShape shape_of(const UnitSpec& unit, at::ScalarType dtype) {
  BlockShape shape{.prefix = unit.name + ".", .params = {}, .trained = {}};
  const auto add = [&](const std::vector<ParamSpec>& params, bool is_trained) {
    for (const ParamSpec& param : params) {
      shape.params.set(param.name, at::empty(param.shape, at::TensorOptions(at::kMeta).dtype(dtype)));
      if (is_trained) shape.trained.insert(param.name.substr(shape.prefix.size()));
    }
  };
  add(unit.params, unit.trainable);
  add(unit.replicated, true);
  shape.params.set_adapter_scale(unit.adapter_scale);
  return shape;
}

}  // namespace

std::array<BlockMemory, kRecomputeLevels> block_memory(const ModelConfig& config, const WindowConfig& window,
                                                       at::ScalarType dtype, std::int64_t samples) {
  const SequenceLayout layout = planned_layout(config, window, /*trimmed=*/true);
  const RopeTables rope = make_rope_tables(layout, config.dit.dim / config.dit.num_heads, accumulate_dtype(dtype));
  const auto tensor = [&](std::vector<std::int64_t> sizes) {
    return at::empty(sizes, at::TensorOptions(at::kMeta).dtype(dtype));
  };
  const std::int64_t side = config.image_encoder.image_size / config.image_encoder.patch_size;
  const std::int64_t width = config.dit.dim, rows = 2 + layout.blocks;
  const Carry carry{
      tensor({samples, layout.tokens(), width}),
      {tensor({samples, config.text_encoder.max_length, width}), tensor({samples, 1 + side * side, width}),
       tensor({samples, rows, width}), tensor({samples, rows, 6, width})}};
  const auto units = training_units(config);
  std::array<BlockMemory, kRecomputeLevels> memory;
  for (const bool is_last : {false, true}) {
    const BlockShape shape = shape_of(units[is_last ? units.size() - 2 : 1], dtype);
    const BlockPlan plan = make_block_plan(config.dit, layout, rope, /*decoupled=*/false, is_last);
    for (std::size_t level = 0; level < memory.size(); ++level) {
      const UnitProgram program(record_block(plan, shape.params, shape.prefix, carry), shape.trained,
                                static_cast<RecomputeLevel>(level));
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
