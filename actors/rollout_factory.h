#pragma once

#include <memory>

#include "actors/role_factory.h"
#include "base/result.h"

namespace troupe {

/// An actor of the role `env`: a simulator of the job's environment on its planned cores. Errors: those of make_env_factory and
/// feed_dial.
Result<std::unique_ptr<Role>> make_simulator(const RoleContext& context, const RoleIdentity& identity, Outbox outbox);

/// An actor of the role `rollout`. Errors: those of make_agent, feed_dial and consumer_channels.
Result<std::unique_ptr<Role>> make_rollout(const RoleContext& context, const RoleIdentity& identity, Outbox outbox);

}  // namespace troupe
