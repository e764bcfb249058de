#include "app/role_factory.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "app/encoder_role.h"
#include "app/feed_dial.h"
#include "app/feed_keys.h"
#include "app/job_setup.h"
#include "app/tokenize.h"
#include "app/version.h"
#include "model/wan/lora.h"
#include "placement/feeder.h"
#include "placement/memory_model.h"
#include "workers/checkpoint/checkpoint_state.h"
#include "workers/checkpoint/role.h"
#include "workers/data/decoder_role.h"
#include "workers/data/sample_builder.h"
#include "workers/features/encoded_sample.h"
#include "workers/learner/role.h"
#include "workers/learner/sft_task.h"

namespace troupe {

namespace {

template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(result).value();
}

std::unique_ptr<Role> make_decoder(const RoleContext& context, const RoleIdentity& identity, Outbox outbox) {
  const auto data = value_or_throw(open_mixture(context.config));
  auto builder = std::make_shared<SampleBuilder>(
      value_or_throw(SampleBuilder::make(data, context.config, value_or_throw(make_tokenize(context.config.model.text_encoder)))));
  BuildSample build = [builder](Stream stream, std::int64_t position, std::span<std::byte> slot) -> Result<std::size_t> {
    const auto bytes = static_cast<std::size_t>(builder->layout().bytes);
    TROUPE_TRY(builder->build(stream, position, slot.first(bytes)));
    return bytes;
  };
  return std::make_unique<DecoderRole>(identity, std::move(build), value_or_throw(feed_dial(context)), std::move(outbox));
}

const PlannedActor& planned(const Plan& plan, const std::string& actor) {
  for (const PlannedActor& candidate : plan.actors) {
    if (candidate.name == actor) return candidate;
  }
  throw std::runtime_error(fmt::format("{} is not in the plan", actor));
}

std::vector<ChannelOptions> feed_channels(const RoleContext& context, const RoleIdentity& identity) {
  bool threads_only = planned(context.plan, identity.actor).isolation == "thread";
  for (const PlannedActor& actor : context.plan.actors) threads_only &= !is_feeder(actor.role) || actor.isolation == "thread";
  std::string file = identity.instance();
  std::replace(file.begin(), file.end(), '/', '-');
  ChannelOptions local{.name = identity.instance(),
                       .slots = static_cast<std::uint32_t>(feed_slots(context.config, context.plan.batch)),
                       .slot_bytes = 0,
                       .transport = threads_only ? Transport::inproc : Transport::shm,
                       .endpoint = threads_only ? "" : fmt::format("ipc://{}/{}.flow", context.runtime_dir, file)};
  local.slot_bytes = static_cast<std::size_t>(value_or_throw(item_layout(context.config)).bytes);
  std::vector<ChannelOptions> channels{local};
  if (!context.data_host.empty()) {
    ChannelOptions remote = local;
    remote.transport = Transport::zmq;
    remote.endpoint = fmt::format("tcp://{}:*", context.data_host);
    remote.curve = value_or_throw(read_feed_server(context.runtime_dir));
    channels.push_back(remote);
  }
  return channels;
}

std::unique_ptr<Role> make_learner(const RoleContext& context, const RoleIdentity& identity, Outbox outbox) {
  LearnerRole::Setup setup{
      .identity = identity,
      .rank = {.config = context.config, .batch = context.plan.batch, .actor = identity.actor, .incarnation = identity.incarnation,
               .run_dir = context.run_dir},
      .rank_index = planned(context.plan, identity.actor).process_rank,
      .channels = feed_channels(context, identity)};
  auto make_task = [config = context.config]() -> std::unique_ptr<TrainingTask> { return value_or_throw(SftTask::make(config)); };
  return std::make_unique<LearnerRole>(std::move(setup), context.loop, std::move(make_task), std::move(outbox));
}

/// The part of a manifest that is the same for every checkpoint of a job, from specifications and files alone: the
/// network and its frozen encoders are in the learner's memory, not here.
Manifest job_manifest(const JobConfig& job, const Mixture& data) {
  std::vector<FlatLayout> layouts;
  const std::vector<UnitSpec> units = state_units(training_units(job.model));
  for (const UnitSpec& unit : units) layouts.push_back(make_flat_layout(unit.params));
  Manifest manifest;
  manifest.units = manifest_units(units, layouts);
  manifest.layout_hash = hash_of(layouts);
  manifest.optimizer = {.name = job.optimizer.name, .lr = job.optimizer.lr, .betas = job.optimizer.betas, .eps = job.optimizer.eps,
                        .weight_decay = job.optimizer.weight_decay};
  manifest.seed = job.job.seed;
  manifest.dataset_fingerprint = data.fingerprint();
  manifest.config = to_yaml(job);
  const auto hashes = value_or_throw(SftTask::encoder_hashes(job));
  for (const auto& [part, hash] : hashes) manifest.encoder_hash += fmt::format("{}{}={}", manifest.encoder_hash.empty() ? "" : " ", part, hash);
  manifest.version = kTroupeVersion;
  return manifest;
}

std::unique_ptr<Role> make_checkpointer(const RoleContext& context, const RoleIdentity& identity, Outbox outbox) {
  const auto data = value_or_throw(open_mixture(context.config));
  CheckpointerRole::Describe describe = [manifest = job_manifest(context.config, *data), data,
                                         batch = context.plan.batch.global](const CheckpointBegin& request) {
    CheckpointerRole::Description description{.manifest = manifest,
                                              .attachments = {{.name = "metadata.json", .bytes = data->metadata_json()}}};
    Manifest& m = description.manifest;
    m.step = request.step;
    m.fence = request.fence;
    m.world = static_cast<std::int64_t>(request.snapshots.size());
    m.next_position = request.step * batch;
    m.optimizer.updates = request.updates;
    nlohmann::ordered_json ledger =
        nlohmann::ordered_json::parse(data->state_json(static_cast<std::uint64_t>(m.seed), static_cast<std::uint64_t>(m.next_position)));
    ledger["void_positions"] = request.void_positions;
    description.attachments.push_back({.name = "ledger.json", .bytes = ledger.dump(2) + "\n"});
    return description;
  };
  return std::make_unique<CheckpointerRole>(identity, std::move(describe), std::move(outbox));
}

}  // namespace

std::unique_ptr<Role> make_role(const RoleContext& context, const RoleIdentity& identity, const std::string& role, Outbox outbox) {
  if (role == "decoder") return make_decoder(context, identity, std::move(outbox));
  if (role == "encoder") return value_or_throw(make_encoder(context, identity, std::move(outbox)));
  if (role == "learner") return make_learner(context, identity, std::move(outbox));
  if (role == "checkpointer") return make_checkpointer(context, identity, std::move(outbox));
  throw std::runtime_error(fmt::format("no role '{}'", role));
}

}  // namespace troupe
