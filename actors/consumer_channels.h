#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/role_factory.h"
#include "base/result.h"
#include "comm/channel/channel.h"

namespace troupe::actors {

/// The channels on which an actor takes items of one flow (docs/channels.md#addresses): on this host shm with the
/// socket RUNTIME_DIR/ACTOR#INCARNATION.flow, or inproc where both ends are threads of one process (`threads_only`);
/// with context.data_host also zmq on any free tcp port of that address, with the keys of feed_keys.h. Each has
/// `slots` slots of `slot_bytes` bytes. `suffix` tells an actor's flows apart. Errors: those of open_feed_server.
Result<std::vector<ChannelOptions>> consumer_channels(const RoleContext& context, const ActorIdentity& identity,
                                                      const std::string& suffix, std::int64_t slots,
                                                      std::int64_t slot_bytes, bool threads_only);

/// Whether an actor and every actor of a role have isolation "thread", so that items can be handed over without a copy.
bool are_threads(const Plan& plan, const std::string& actor, const std::string& role);

/// The channels on which an actor takes the learners' weights. Errors: those of consumer_channels.
Result<std::vector<ChannelOptions>> weight_channels(const RoleContext& context, const ActorIdentity& identity);

}  // namespace troupe::actors
