#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "configs/job_config.h"
#include "env/env_spec.h"
#include "kernels/device_names.h"
#include "model/policy/policy_net.h"
#include "model/policy/policy_shape.h"

namespace troupe::workers {

/// The policy of kind dreamzero of a job, for an environment whose sizes are `shape`: the job's transformer, seen
/// through the statistics that lie in `checkpoint`, which the job goes on from or was saved in (docs/rl.md#dreamzero).
/// Reads small files alone; encoders, and with model.train_architecture lora the frozen transformer, are loaded by the
/// first call. Errors: those of check_starting_checkpoint, policy_spec_of, EnvObserver::make, DreamZeroNet::make and
/// CheckpointTransformer::open, and where no one instruction is known, each naming the key or the file.
/// `device`: DreamZeroActing::device.
Result<std::shared_ptr<const PolicyNet>> make_dreamzero_policy(
    const JobConfig& job, const std::string& checkpoint, const EnvSpec& env, const PolicyShape& shape,
    std::shared_ptr<kernels::ComputeDevice> device = nullptr);

/// The same for its sizes alone: reads no file, and cannot act.
Result<std::shared_ptr<const PolicyNet>> plan_dreamzero_policy(const JobConfig& job, const PolicyShape& shape);

}  // namespace troupe::workers
