#pragma once

#include "actors/role_factory.h"
#include "base/result.h"
#include "workers/decoder/decoder_role.h"

namespace troupe::actors {

/// How a decoder or encoder of this process reaches a feed: on this host through its arena, on others (addresses that
/// begin with `zmq:`) with the keys of the runtime directory. One attempt takes 2 s at most; the producer takes 2
/// credits, one in work and one waiting. The result may be called by any thread while context.loop lives. Errors:
/// those of read_feed_client; of the call those of open_producer.
Result<DecoderRole::Dial> feed_dial(const RoleContext& context);

}  // namespace troupe::actors
