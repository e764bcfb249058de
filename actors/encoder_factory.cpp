#include "actors/encoder_factory.h"

#include <utility>
#include <vector>

#include "actors/consumer_dial.h"
#include "data/sample/open_mixture.h"
#include "workers/decoder/decoder_role.h"
#include "workers/encoder/encoded_sample_builder.h"

namespace troupe::actors {

namespace {

BuildSample build_with(std::shared_ptr<EncodedSampleBuilder> builder) {
  return [builder = std::move(builder)](Split split, std::int64_t position,
                                        std::span<std::byte> slot) -> Result<std::size_t> {
    const auto bytes = static_cast<std::size_t>(builder->layout().bytes);
    TROUPE_TRY(builder->build(split, position, slot.first(bytes)));
    return bytes;
  };
}

}  // namespace

Result<std::unique_ptr<Role>> make_encoder(const RoleContext& context, const ActorIdentity& identity, Outbox outbox) {
  const JobConfig& job = context.config;
  const std::int64_t threads = job.cluster.threads.encoder;
  TROUPE_ASSIGN(const auto data, open_mixture(job));
  TROUPE_ASSIGN(const FrozenEncoders weights, FrozenEncoders::load(job));
  TROUPE_ASSIGN(auto encoders, CachedEncoder::make_all(job, weights, threads));
  std::vector<BuildSample> builds;
  for (auto& encoder : encoders) {
    TROUPE_ASSIGN(auto made, encoded_sample_builder(data, job, std::move(encoder)));
    builds.push_back(build_with(std::make_shared<EncodedSampleBuilder>(std::move(made))));
  }
  TROUPE_ASSIGN(auto dial, consumer_dial(context, threads - 1 + kItemCredits));
  return make_role_of<DecoderRole>(identity, std::move(builds), std::move(dial), std::move(outbox));
}

}  // namespace troupe::actors
