#include "actors/role_factory.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "actors/encoder_factory.h"
#include "actors/feed_dial.h"
#include "actors/learner_factory.h"
#include "actors/pipeline.h"
#include "actors/rollout_factory.h"
#include "base/version.h"
#include "configs/loader.h"
#include "data/sample/open_mixture.h"
#include "data/sample/sample_builder.h"
#include "data/sample/tokenize.h"
#include "model/shard/flat_layout.h"
#include "workers/checkpoint/checkpoint_state.h"
#include "workers/checkpoint/role.h"
#include "workers/decoder/decoder_role.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/imitation/demonstrations.h"

namespace troupe::actors {

namespace {

template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(result).value();
}

BuildSample decode_samples(const JobConfig& job) {
  const auto data = value_or_throw(open_mixture(job));
  auto builder = std::make_shared<SampleBuilder>(
      value_or_throw(SampleBuilder::make(data, job, value_or_throw(make_tokenize(job.model.text_encoder)))));
  return [builder](Split split, std::int64_t position, std::span<std::byte> slot) -> Result<std::size_t> {
    const auto bytes = static_cast<std::size_t>(builder->layout().bytes);
    TROUPE_TRY(builder->build(split, position, slot.first(bytes)));
    return bytes;
  };
}

BuildSample read_demonstrations(const JobConfig& job) {
  const Agent agent = value_or_throw(make_agent(job));
  const auto data = value_or_throw(Demonstrations::open(job.data, agent.shape));
  const auto seed = static_cast<std::uint64_t>(job.job.seed);
  return [data, seed, held_out = job.eval.max_samples](Split split, std::int64_t position,
                                                       std::span<std::byte> slot) -> Result<std::size_t> {
    const auto bytes = static_cast<std::size_t>(data->layout().bytes);
    TROUPE_TRY(data->build(split, position, seed, held_out, slot.first(bytes)));
    return bytes;
  };
}

std::unique_ptr<Role> make_decoder(const RoleContext& context, const RoleIdentity& identity, Outbox outbox) {
  BuildSample build =
      is_imitation(context.config) ? read_demonstrations(context.config) : decode_samples(context.config);
  return std::make_unique<DecoderRole>(identity, std::move(build), value_or_throw(feed_dial(context)),
                                       std::move(outbox));
}

/// The part of a manifest that is the same for every checkpoint of a job, from specifications and files alone: the
/// network and its frozen encoders are in the learner's memory, not here.
Manifest job_manifest(const JobConfig& job, const Pipeline& pipeline) {
  std::vector<FlatLayout> layouts;
  const std::vector<UnitSpec> units = state_units(pipeline.units());
  for (const UnitSpec& unit : units) layouts.push_back(make_flat_layout(unit.params));
  Manifest manifest;
  manifest.units = manifest_units(units, layouts);
  manifest.layout_hash = hash_of(layouts);
  manifest.optimizer = {.name = job.optimizer.name,
                        .lr = job.optimizer.lr,
                        .betas = job.optimizer.betas,
                        .eps = job.optimizer.eps,
                        .weight_decay = job.optimizer.weight_decay};
  manifest.seed = job.job.seed;
  manifest.dataset_fingerprint = pipeline.fingerprint();
  manifest.config = to_yaml(job);
  manifest.encoder_hash = value_or_throw(pipeline.encoder_hash());
  manifest.version = kTroupeVersion;
  return manifest;
}

std::unique_ptr<Role> make_checkpointer(const RoleContext& context, const RoleIdentity& identity, Outbox outbox) {
  const auto pipeline = value_or_throw(open_pipeline(context.config));
  CheckpointerRole::Describe describe = [manifest = job_manifest(context.config, *pipeline), pipeline,
                                         batch = context.plan.batch.global](const CheckpointBegin& request) {
    CheckpointerRole::Description description{.manifest = manifest, .attachments = pipeline->attachments()};
    Manifest& m = description.manifest;
    m.step = request.step;
    m.fence = request.fence;
    m.world = static_cast<std::int64_t>(request.snapshots.size());
    m.next_position = request.step * batch;
    m.optimizer.updates = request.updates;
    nlohmann::ordered_json ledger = nlohmann::ordered_json::parse(
        pipeline->state_json(static_cast<std::uint64_t>(m.seed), static_cast<std::uint64_t>(m.next_position)));
    ledger["void_positions"] = request.void_positions;
    description.attachments.push_back({.name = "ledger.json", .bytes = ledger.dump(2) + "\n"});
    return description;
  };
  return std::make_unique<CheckpointerRole>(identity, std::move(describe), std::move(outbox));
}

}  // namespace

std::unique_ptr<Role> make_role(const RoleContext& context, const RoleIdentity& identity, const std::string& role,
                                Outbox outbox) {
  if (role == "decoder") return make_decoder(context, identity, std::move(outbox));
  if (role == "encoder") return value_or_throw(make_encoder(context, identity, std::move(outbox)));
  if (role == "env") return value_or_throw(make_simulator(context, identity, std::move(outbox)));
  if (role == "rollout") return value_or_throw(make_rollout(context, identity, std::move(outbox)));
  if (role == "learner") return value_or_throw(make_learner(context, identity, std::move(outbox)));
  if (role == "checkpointer") return make_checkpointer(context, identity, std::move(outbox));
  throw std::runtime_error(fmt::format("no role '{}'", role));
}

}  // namespace troupe::actors
