#pragma once

#include <memory>

#include "actors/role_factory.h"
#include "base/result.h"

namespace troupe::actors {

/// An actor of the role `encoder`: a decoder whose samples are encoded before they are sent, cluster.threads.encoder at
/// a time. Errors: those of open_mixture, FrozenEncoders::load, CachedEncoder::make_all, encoded_sample_builder and
/// consumer_dial.
Result<std::unique_ptr<Role>> make_encoder(const RoleContext& context, const ActorIdentity& identity, Outbox outbox);

}  // namespace troupe::actors
