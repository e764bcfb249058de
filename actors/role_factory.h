#pragma once

#include <memory>
#include <string>

#include "comm/control/io_loop.h"
#include "configs/job_config.h"
#include "placement/plan.h"
#include "workers/role.h"

namespace troupe {

/// What a role needs to know of its job and of the process it lives in.
struct RoleContext {
  JobConfig config;
  Plan plan;
  std::string run_dir;
  std::string runtime_dir;
  std::string data_host;  ///< non-empty: feeds also listen on tcp at this address
  IoLoop* loop = nullptr;
};

/// Builds the role: the one place that knows every role's class. Throws std::runtime_error with the reason when it cannot.
std::unique_ptr<Role> make_role(const RoleContext& context, const RoleIdentity& identity, const std::string& role,
                                Outbox outbox);

}  // namespace troupe
