#pragma once

#include <string>

#include "base/result.h"
#include "configs/job_config.h"
#include "workers/checkpoint/weight_set.h"
#include "workers/inference/agent/agent.h"
#include "workers/rollout/published_weights.h"

namespace troupe::workers {

/// A policy that was trained for an environment, whole and in memory: what evaluation, serving and export act with.
/// f32.
struct LoadedAgent {
  /// The checkpoint's job, with `env` as it acts now.
  JobConfig job;
  /// Environment and policy of `job`.
  Agent agent;
  /// Acting units and frozen statistics; version is the checkpoint's step, fence its fence.
  PublishedWeights weights;
};

/// The job that lies in a Troupe checkpoint's manifest. Errors: not_found (no checkpoint), data_loss (the
/// configuration does not read), failed_precondition (a job without env.id), each naming the folder.
Result<JobConfig> read_rl_job(const std::string& folder);

/// Whether a Troupe checkpoint's policy acts as an Agent: one for an environment, and not DreamZero, which acts for
/// robots however it was trained. A folder that read_rl_job refuses has none.
bool holds_agent(const std::string& folder);

/// Loads a checkpoint's policy for the environment that it was trained in, as the checkpoint describes it. Values and
/// statistics are read, moments and units that do not act (critics of off-policy algorithms, targets) are not. Errors:
/// those of read_rl_job, parse_env_spec, env_spec_of, make_agent and CheckpointReader::kind_of; data_loss (files that
/// are damaged, units or tensors other than the policy's, by name).
Result<LoadedAgent> load_agent(const std::string& folder, WeightSet weights = WeightSet::model);

/// The same for an environment of this build, as its factory describes it. Errors: also invalid_argument where its
/// observations or actions are not what the policy was trained with, saying both.
Result<LoadedAgent> load_agent(const std::string& folder, const EnvConfig& env, WeightSet weights = WeightSet::model);

/// The job's `env` for another id. Profile and options stay for environments of one family ("arm7/", "HalfCheetah-"),
/// else they are the new environment's own; so is the time limit. The same id keeps all but
/// env.spec: the environment is made here and describes itself.
EnvConfig moved_env(const EnvConfig& env, const std::string& id);

/// Loads nothing: whether a policy of one shape can act in the other's environment. Texts may have room for more or
/// less. Errors: invalid_argument, naming what differs.
Result<void> check_same_shape(const PolicyShape& trained, const PolicyShape& other);

}  // namespace troupe::workers
