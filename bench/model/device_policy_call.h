#pragma once

#include "bench/model/dit_case.h"
#include "bench/support/result_file.h"
#include "kernels/device_module.h"

namespace troupe::bench {

/// Seconds of a policy call's transformer on a GPU: taking in the block of frames since the call before, and one
/// denoising step.
struct CallSeconds {
  Series prefill, step;
};

/// Of one robot with guidance that has seen a block of frames, in the dtype of `weights` (by name). Each time is the
/// call's, until its results are on the host. Throws std::runtime_error, and c10::Error where the device fails.
CallSeconds time_call(const JobConfig& job, const NamedTensors& weights, kernels::ComputeDevice& device, bool graphs,
                      int rounds);

}  // namespace troupe::bench
