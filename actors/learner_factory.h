#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/role_factory.h"
#include "base/result.h"
#include "comm/channel/channel.h"

namespace troupe {

/// A learner rank with the trainer of the job's kind. Errors: those of feed_keys, SftTask and make_agent.
Result<std::unique_ptr<Role>> make_learner(const RoleContext& context, const RoleIdentity& identity, Outbox outbox);

/// The channels on which an actor takes items of one flow: on this host through an arena, or by handing over where both ends are
/// threads of one process (`threads_only`); with context.data_host on tcp too. `suffix` tells an actor's flows apart.
Result<std::vector<ChannelOptions>> consumer_channels(const RoleContext& context, const RoleIdentity& identity,
                                                      const std::string& suffix, std::int64_t slots,
                                                      std::int64_t slot_bytes, bool threads_only);

/// Whether an actor and every actor of a role are threads of their nodes' processes.
bool are_threads(const Plan& plan, const std::string& actor, const std::string& role);

}  // namespace troupe
