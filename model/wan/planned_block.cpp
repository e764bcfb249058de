#include "model/wan/planned_block.h"

#include <ATen/ATen.h>

#include <vector>

#include "kernels/dispatch.h"
#include "model/wan/dit_program.h"
#include "model/wan/lora.h"
#include "model/wan/model_cost.h"

namespace troupe::model {

PlannedBlocks::PlannedBlocks(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype,
                             std::int64_t samples) {
  const SequenceLayout layout = planned_layout(config, window, /*trimmed=*/true);
  const RopeTables rope = make_rope_tables(layout, config.dit.dim / config.dit.num_heads, accumulate_dtype(dtype));
  const auto tensor = [&](std::vector<std::int64_t> sizes) {
    return at::empty(sizes, at::TensorOptions(at::kMeta).dtype(dtype));
  };
  const std::int64_t side = config.image_encoder.image_size / config.image_encoder.patch_size;
  const std::int64_t width = config.dit.dim, rows = 2 + layout.blocks;
  carry_ = {tensor({samples, layout.tokens(), width}),
            {tensor({1, samples * config.text_encoder.max_length, width}), tensor({samples, 1 + side * side, width}),
             tensor({samples, rows, width}), tensor({samples, rows, 6, width}),
             at::empty({samples, 3}, at::TensorOptions(at::kMeta).dtype(at::kLong))}};
  const auto units = training_units(config);
  const auto block_of = [&](const UnitSpec& unit, bool is_last) {
    Block block{.plan = make_block_plan(config.dit, layout, rope, /*decoupled=*/false, is_last),
                .prefix = unit.name + ".",
                .params = {},
                .trained = {}};
    const auto add = [&](const std::vector<ParamSpec>& params, bool is_trained) {
      for (const ParamSpec& param : params) {
        block.params.set(param.name, tensor(param.shape));
        if (is_trained) block.trained.insert(param.name.substr(block.prefix.size()));
      }
    };
    add(unit.params, unit.trainable);
    add(unit.replicated, true);
    block.params.set_adapter_scale(unit.adapter_scale);
    return block;
  };
  inner_ = block_of(units[1], false);
  last_ = block_of(units[units.size() - 2], true);
}

UnitProgram PlannedBlocks::program(bool is_last, RecomputeLevel level) const {
  const Block& block = is_last ? last_ : inner_;
  return {record_block(block.plan, block.params, block.prefix, carry_), block.trained, level};
}

}  // namespace troupe::model
