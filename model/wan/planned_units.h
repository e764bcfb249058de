#pragma once

#include <ATen/core/ScalarType.h>

#include <cstdint>
#include <string>

#include "configs/data_config.h"
#include "configs/model_config.h"
#include "model/program/unit_program.h"
#include "model/shard/network.h"
#include "model/wan/dit_parts.h"

namespace troupe::model {

/// The programs of a job's units, the very ones that the engine runs (DitNetwork::unit_program), recorded for `samples`
/// samples of its windows, whose prompts differ and fill the text encoder's length, in `dtype` and in the form of
/// products that this process has. Allocates no activations and no weights. Throws c10::Error, as training_units does.
class PlannedUnits {
 public:
  PlannedUnits(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype, std::int64_t samples);

  UnitProgram prologue(RecomputeLevel level) const;
  /// `is_last`: the last block, whose rows are trimmed.
  UnitProgram block(bool is_last, RecomputeLevel level) const;
  /// The head keeps all.
  UnitProgram head() const;
  UnitProgram loss() const;

 private:
  /// Without memory behind it.
  struct Unit {
    std::string prefix;
    ParamView params;
    std::set<std::string> trained;
  };
  Unit planned(const UnitSpec& unit, const std::string& prefix) const;
  at::Tensor tensor(const std::vector<std::int64_t>& sizes) const;
  Differentiated differentiated(const Unit& unit) const { return {unit.trained, differentiated_conditioning_}; }

  const DitConfig config_;
  const SequenceLayout layout_;
  const at::ScalarType dtype_;
  BlockPlan inner_plan_, last_plan_;
  Unit prologue_, inner_, last_, head_;
  Batch prologue_data_, loss_data_;
  /// of blocks, and of the head
  Carry carry_, last_carry_;
  std::vector<at::Tensor> velocities_;
  std::vector<bool> differentiated_conditioning_;
};

}  // namespace troupe::model
