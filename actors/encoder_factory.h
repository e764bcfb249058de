#pragma once

#include <memory>

#include "actors/role_factory.h"
#include "base/result.h"
#include "workers/encoder/encoded_sample_builder.h"

namespace troupe::actors {

/// What makes a job's encoded samples: decode, tokenise, then the frozen networks or their cache. Not thread-safe.
/// Errors: those of make_tokenize, SampleBuilder::make and EncodedSampleBuilder::make.
Result<EncodedSampleBuilder> encoded_sample_builder(std::shared_ptr<const Mixture> data, const JobConfig& job,
                                                    std::unique_ptr<CachedEncoder> encoder);

/// An actor of the role `encoder`: a decoder whose samples are encoded before they are sent. Errors: those of
/// Mixture::open, CachedEncoder::make, encoded_sample_builder and feed_dial.
Result<std::unique_ptr<Role>> make_encoder(const RoleContext& context, const RoleIdentity& identity, Outbox outbox);

}  // namespace troupe::actors
