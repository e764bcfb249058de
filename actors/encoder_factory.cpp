#include "actors/encoder_factory.h"

#include "actors/consumer_dial.h"
#include "data/sample/open_mixture.h"
#include "workers/decoder/decoder_role.h"
#include "workers/encoder/encoded_sample_builder.h"

namespace troupe::actors {

Result<std::unique_ptr<Role>> make_encoder(const RoleContext& context, const ActorIdentity& identity, Outbox outbox) {
  TROUPE_ASSIGN(auto data, open_mixture(context.config));
  TROUPE_ASSIGN(auto encoder, CachedEncoder::make(context.config));
  TROUPE_ASSIGN(auto made, encoded_sample_builder(std::move(data), context.config, std::move(encoder)));
  auto builder = std::make_shared<EncodedSampleBuilder>(std::move(made));
  BuildSample build = [builder](Split split, std::int64_t position, std::span<std::byte> slot) -> Result<std::size_t> {
    const auto bytes = static_cast<std::size_t>(builder->layout().bytes);
    TROUPE_TRY(builder->build(split, position, slot.first(bytes)));
    return bytes;
  };
  TROUPE_ASSIGN(auto dial, consumer_dial(context));
  return make_role_of<DecoderRole>(identity, std::move(build), std::move(dial), std::move(outbox));
}

}  // namespace troupe::actors
