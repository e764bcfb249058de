#pragma once

#include <ATen/core/ScalarType.h>

#include <cstdint>
#include <vector>

#include "configs/data_config.h"
#include "configs/model_config.h"
#include "model/cores/kernel_work.h"

namespace troupe::model {

/// Robots that are asked together, for what a call costs.
struct PlannedCall {
  std::int64_t robots = 1;
  /// with guidance 2
  std::int64_t branches = 2;
  /// frame blocks that each has seen behind frame 0
  std::int64_t seen_blocks = 0;
  /// rows of text that a prompt has, of which one stands for what is behind it
  std::int64_t prompt_rows = 1;
};

/// The kernels of a policy call's transformer, program by program, each of which a device may launch as one graph.
struct CallKernels {
  /// taking in the frames since the call before, once
  std::vector<std::vector<KernelWork>> prefill;
  /// of each denoising step
  std::vector<std::vector<KernelWork>> step;
};

/// Those of DitInference's programs (model/wan/infer/infer_programs.h), in `dtype` and in the form of products that
/// this process has, with states that see everything. Allocates no weights. Throws c10::Error, as dit_units does.
CallKernels call_kernels(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype,
                         const PlannedCall& call);

/// What those programs work in and hand on, in DitInference's memory. The other arguments and errors are the same.
std::int64_t call_workspace_bytes(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype,
                                  const PlannedCall& call);

}  // namespace troupe::model
