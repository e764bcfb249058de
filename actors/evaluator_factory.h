#pragma once

#include <memory>

#include "actors/role_factory.h"
#include "base/result.h"

namespace troupe::actors {

/// The actor of the role `evaluator`: takes weights from learners, as a rollout worker does, and plays the job's
/// evaluations on its planned cores. Errors: those of make_agent and consumer_channels.
Result<std::unique_ptr<Role>> make_evaluator(const RoleContext& context, const ActorIdentity& identity, Outbox outbox);

}  // namespace troupe::actors
