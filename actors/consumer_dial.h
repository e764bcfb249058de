#pragma once

#include <cstdint>

#include "actors/role_factory.h"
#include "base/result.h"
#include "workers/stream/producer_loop.h"

namespace troupe::actors {

/// Credits of a maker of single items: one in work, one waiting, so that it never idles between two.
inline constexpr std::int64_t kItemCredits = 2;

/// How a producer of this process reaches a consumer: on this host through its arena, on others (addresses that begin
/// with `zmq:`) with the keys of the runtime directory. One attempt takes 2 s at most; the producer takes `credits` at
/// a time. The result may be called by any thread while context.loop lives. Errors: those of read_feed_client; of the
/// call those of open_producer.
Result<ConsumerDial> consumer_dial(const RoleContext& context, std::int64_t credits = kItemCredits);

}  // namespace troupe::actors
