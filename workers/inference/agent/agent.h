#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "configs/job_config.h"
#include "env/registry/registry.h"
#include "kernels/device_names.h"
#include "model/policy/policy_net.h"

namespace troupe::workers {

/// What an environment is and the policy that acts in it: what every role of a reinforcement learning job makes from
/// the job, and evaluation and serving from the job that lies beside a checkpoint. Makes no environment. Values and
/// shared constants; thread-safe.
struct Agent {
  EnvSpec env;
  /// Sizes of observations and actions, as the networks take them.
  PolicyShape shape;
  /// The networks without values: those come with each call.
  std::shared_ptr<const PolicyNet> policy;

  const EnvSpec& spec() const { return env; }
};

/// Of a job whose environment is `env`; where that has several agents, each acts by this policy. With policy.kind
/// dreamzero the statistics of model.init.path are read. Errors: invalid_argument where the policy does not fit it, or
/// the algorithm knows one agent alone. The message begins with the key to change. Those of make_dreamzero_policy.
/// `device`: of a DreamZero's transformer (DreamZeroActing); others compute on cores.
Result<Agent> make_agent(const JobConfig& job, EnvSpec env, std::shared_ptr<kernels::ComputeDevice> device = nullptr);
/// Where no run has kept it: of env_spec_of(job.env). Errors: also those of env_spec_of.
Result<Agent> make_agent(const JobConfig& job);
/// Of a job that was saved in the folder `checkpoint`: policy.kind dreamzero reads its statistics there.
Result<Agent> make_agent(const JobConfig& job, EnvSpec env, const std::string& checkpoint);
/// For the sizes of the policy alone: reads no checkpoint, and one of kind dreamzero cannot act. Errors: as make_agent.
Result<Agent> plan_agent(const JobConfig& job, EnvSpec env);

/// "CartPole-v1 obs f32[4] actions 2": equal for environments that the same policy can act in; a checkpoint's
/// stand-in for the fingerprint of a dataset.
std::string fingerprint_of(const EnvSpec& spec);

}  // namespace troupe::workers
