#pragma once

#include <string>

#include "actors/local_actors.h"
#include "comm/control/io_loop.h"
#include "configs/job_config.h"
#include "env/env_spec.h"
#include "placement/plan.h"

namespace troupe::actors {

/// What a role needs to know of its job and of the process it lives in.
struct RoleContext {
  /// The resolved configuration and the plan that this process was started with.
  JobConfig config;
  Plan plan;
  /// What the job's environment is, as the run keeps it; nothing (an empty id) for a job without one. Only simulators
  /// make environments.
  EnvSpec env_spec;
  /// run_root/NAME/ID (docs/run-directory.md).
  std::string run_dir;
  /// Folder of this run's sockets, stores and keys on this host.
  std::string runtime_dir;
  /// Non-empty: this host's address, at which feeds also listen on tcp for producers of other hosts.
  std::string data_host;
  /// Of the process; not owned, outlives the roles.
  IoLoop* loop = nullptr;
};

/// Builds roles by name: decoder, encoder, env, rollout, evaluator, learner or checkpointer. The one place that knows
/// every role's class. A call opens what the role reads (datasets, weights, environments), and throws
/// std::runtime_error with the reason when it cannot, also for an unknown name. `loop` is the process's.
LocalActors::MakeRole role_maker(RoleContext context, IoLoop& loop);

}  // namespace troupe::actors
