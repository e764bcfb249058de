#pragma once

#include <ATen/core/ScalarType.h>

#include <cstdint>
#include <span>
#include <vector>

#include "configs/data_config.h"
#include "configs/model_config.h"
#include "model/cores/kernel_work.h"
#include "model/program/recompute_level.h"

namespace troupe::model {

/// The kernels of a unit for one micro-batch on cores, in order. Backward has what its level runs again.
struct UnitKernels {
  std::vector<KernelWork> forward, backward;
};

/// Of every unit of training_units(config), its program's (model/wan/planned_units.h); the head's are its loss's too.
/// `levels` as EngineOptions::recompute. In the form of products that this process has. Throws c10::Error, as
/// training_units does.
std::vector<UnitKernels> unit_kernels(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype,
                                      std::int64_t samples, std::span<const RecomputeLevel> levels);

}  // namespace troupe::model
