#pragma once

#include <ATen/core/ScalarType.h>

#include <cstdint>
#include <set>
#include <string>

#include "configs/data_config.h"
#include "configs/model_config.h"
#include "model/program/unit_program.h"
#include "model/shard/network.h"
#include "model/wan/dit_parts.h"

namespace troupe::model {

/// The programs of a job's blocks, the very ones that the engine runs (model/wan/dit_program.h), recorded for `samples`
/// samples of its windows in `dtype` and in the form of products that this process has. Allocates no activations and no
/// weights. Throws c10::Error, as training_units does.
class PlannedBlocks {
 public:
  PlannedBlocks(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype, std::int64_t samples);

  /// `is_last`: the last block, whose rows are trimmed.
  UnitProgram program(bool is_last, RecomputeLevel level) const;

 private:
  /// Without memory behind it.
  struct Block {
    BlockPlan plan;
    std::string prefix;
    ParamView params;
    std::set<std::string> trained;
  };
  Block inner_, last_;
  Carry carry_;
};

}  // namespace troupe::model
