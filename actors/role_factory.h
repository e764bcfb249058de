#pragma once

#include <memory>
#include <string>

#include "comm/control/io_loop.h"
#include "configs/job_config.h"
#include "placement/plan.h"
#include "workers/role.h"

namespace troupe::actors {

/// What a role needs to know of its job and of the process it lives in.
struct RoleContext {
  /// The resolved configuration and the plan that this process was started with.
  JobConfig config;
  Plan plan;
  /// run_root/NAME/ID (docs/run-directory.md).
  std::string run_dir;
  /// Folder of this run's sockets, stores and keys on this host.
  std::string runtime_dir;
  /// Non-empty: this host's address, at which feeds also listen on tcp for producers of other hosts.
  std::string data_host;
  /// Of the process; not owned, outlives the roles.
  IoLoop* loop = nullptr;
};

/// Builds a role by name: decoder, encoder, env, rollout, learner or checkpointer. The one place that knows every
/// role's class. Opens what the role reads (datasets, weights, environments). Throws std::runtime_error with the
/// reason when it cannot, also for an unknown name.
std::unique_ptr<Role> make_role(const RoleContext& context, const RoleIdentity& identity, const std::string& role,
                                Outbox outbox);

}  // namespace troupe::actors
