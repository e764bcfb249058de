#pragma once

#include <memory>

#include "actors/role_factory.h"
#include "base/result.h"

namespace troupe::actors {

/// A learner rank with the trainer of the job's kind (sft, rl, or imitation of demonstrations), its feed, and the
/// channels on which producers hand it samples or trajectories. The trainer is built later, on the rank's own thread.
/// Errors: not_found (the actor is not in the plan); those of consumer_channels, make_agent and consumer_dial.
Result<std::unique_ptr<Role>> make_learner(const RoleContext& context, const ActorIdentity& identity, Outbox outbox);

}  // namespace troupe::actors
