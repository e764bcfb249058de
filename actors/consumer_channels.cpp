#include "actors/consumer_channels.h"

#include <fmt/format.h>

#include <algorithm>

#include "actors/feed_keys.h"
#include "configs/port_range.h"

namespace troupe::actors {

bool are_threads(const Plan& plan, const std::string& actor, const std::string& role) {
  const PlannedActor* self = find_actor(plan, actor);
  return self != nullptr && self->isolation == "thread" &&
         std::all_of(plan.actors.begin(), plan.actors.end(),
                     [&](const PlannedActor& a) { return a.role != role || a.isolation == "thread"; });
}

Result<std::vector<ChannelOptions>> consumer_channels(const RoleContext& context, const ActorIdentity& identity,
                                                      const std::string& suffix, std::int64_t slots,
                                                      std::int64_t slot_bytes, bool threads_only) {
  const std::string name = identity.instance() + suffix;
  std::string file = name;
  std::replace(file.begin(), file.end(), '/', '-');
  ChannelOptions local{.name = name,
                       .slots = static_cast<std::uint32_t>(slots),
                       .slot_bytes = static_cast<std::size_t>(slot_bytes),
                       .transport = threads_only ? Transport::inproc : Transport::shm,
                       .endpoint = threads_only ? "" : fmt::format("ipc://{}/{}.flow", context.runtime_dir, file)};
  std::vector<ChannelOptions> channels{local};
  if (!context.data_host.empty()) {
    ChannelOptions remote = local;
    remote.transport = Transport::zmq;
    remote.endpoint = fmt::format("tcp://{}:*", context.data_host);
    TROUPE_ASSIGN(remote.curve, open_feed_server(*context.loop, context.runtime_dir));
    remote.advertise = context.config.cluster.advertise;
    if (const auto ports = parse_port_range(context.config.cluster.ports)) {
      remote.first_port = ports->first;
      remote.last_port = ports->last;
    }
    channels.push_back(remote);
  }
  return channels;
}

Result<std::vector<ChannelOptions>> weight_channels(const RoleContext& context, const ActorIdentity& identity) {
  return consumer_channels(context, identity, ".weights", 2 * context.plan.batch.data_ranks + 2,
                           context.config.rollout.bucket_bytes, are_threads(context.plan, identity.actor, "learner"));
}

}  // namespace troupe::actors
