#pragma once

#include <memory>

#include "actors/role_factory.h"
#include "base/result.h"

namespace troupe::actors {

/// An actor of the role `env`: a simulator of the job's environment. It steps on env.threads threads, or on as many
/// as its planned cores, and takes a credit for every block of environments. Errors: those of make_env_factory and
/// read_feed_client; failed_precondition (the environment here is not what the run describes).
Result<std::unique_ptr<Role>> make_simulator(const RoleContext& context, const ActorIdentity& identity, Outbox outbox);

/// An actor of the role `rollout`: takes blocks of environments from simulators and weights from learners, and gives
/// trajectories to learners. Slots for weights: 2 a data rank and 2 more, of rollout.bucket_bytes each. With
/// algorithm.deterministic it waits for every planned simulator. With cluster.isolation.env inline it makes and steps
/// the environments itself, on env.threads threads. Errors: those of make_agent, read_feed_client and
/// consumer_channels; inline those of make_simulator and check_inline.
Result<std::unique_ptr<Role>> make_rollout(const RoleContext& context, const ActorIdentity& identity, Outbox outbox);

}  // namespace troupe::actors
