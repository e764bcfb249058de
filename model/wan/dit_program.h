#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "model/program/graph.h"
#include "model/program/recompute_level.h"
#include "model/program/unit_program.h"
#include "model/shard/network.h"
#include "model/wan/dit_parts.h"

namespace troupe::model {

/// transformer_block (model/wan/dit_parts.h) as a graph: the same operations with the same roundings, for tensors of
/// the shapes and dtype of these. Parameters are named without `prefix`; those with adapters among `params` are applied
/// with them (model/wan/lora.h).
Graph record_block(const BlockPlan& plan, const ParamView& params, const std::string& prefix, const Carry& carry);

/// The programs of a network's blocks, each recorded once. Any thread.
class BlockPrograms {
 public:
  /// The program of a block with these shapes that differentiates the parameters in `trained` (without prefix). Null
  /// where blocks run by autograd: not on a CPU, tensors that are not dense or of several dtypes. `plan` lives as long
  /// as this.
  std::shared_ptr<const UnitProgram> find(const BlockPlan& plan, const ParamView& params, const std::string& prefix,
                                          const Carry& carry, RecomputeLevel level,
                                          const std::set<std::string>& trained);

 private:
  std::mutex mutex_;
  /// by plan, and by all else that a program depends on as text
  std::map<std::pair<const BlockPlan*, std::string>, std::shared_ptr<const UnitProgram>> programs_;
};

}  // namespace troupe::model
