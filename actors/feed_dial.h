#pragma once

#include "actors/role_factory.h"
#include "base/result.h"
#include "workers/decoder/decoder_role.h"

namespace troupe {

/// How a decoder or encoder of this process reaches a feed: on this host through its arena, on others with the keys of
/// the runtime directory. Errors: those of read_feed_client.
Result<DecoderRole::Dial> feed_dial(const RoleContext& context);

}  // namespace troupe
