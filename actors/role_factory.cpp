#include "actors/role_factory.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "actors/actor_catalogue.h"
#include "actors/consumer_dial.h"
#include "actors/encoder_factory.h"
#include "actors/evaluator_factory.h"
#include "actors/learner_factory.h"
#include "actors/rollout_factory.h"
#include "base/version.h"
#include "configs/loader.h"
#include "data/sample/open_mixture.h"
#include "data/sample/sample_builder.h"
#include "data/sample/tokenize.h"
#include "kernels/product.h"
#include "model/shard/flat_layout.h"
#include "workers/checkpoint/checkpoint_ledger.h"
#include "workers/checkpoint/checkpoint_state.h"
#include "workers/checkpoint/role.h"
#include "workers/decoder/decoder_role.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/imitation/demonstration_builder.h"
#include "workers/pipeline/pipeline.h"

namespace troupe::actors {

namespace {

Result<BuildSample> decode_samples(const JobConfig& job) {
  TROUPE_ASSIGN(const auto data, open_mixture(job));
  TROUPE_ASSIGN(Tokenize tokenize, make_tokenize(job.model.text_encoder));
  TROUPE_ASSIGN(SampleBuilder made, SampleBuilder::make(data, job, std::move(tokenize)));
  auto builder = std::make_shared<SampleBuilder>(std::move(made));
  return BuildSample([builder](Split split, std::int64_t position, std::span<std::byte> slot) -> Result<std::size_t> {
    const auto bytes = static_cast<std::size_t>(builder->layout().bytes);
    TROUPE_TRY(builder->build(split, position, slot.first(bytes)));
    return bytes;
  });
}

Result<BuildSample> read_demonstrations(const JobConfig& job, const EnvSpec& env) {
  TROUPE_ASSIGN(const Agent agent, make_agent(job, env));
  TROUPE_ASSIGN(auto data, Demonstrations::open(job, agent.shape));
  TROUPE_ASSIGN(DemonstrationBuilder made, DemonstrationBuilder::make(std::move(data), job));
  auto builder = std::make_shared<DemonstrationBuilder>(std::move(made));
  return BuildSample([builder](Split split, std::int64_t position, std::span<std::byte> slot) -> Result<std::size_t> {
    const auto bytes = static_cast<std::size_t>(builder->layout().bytes);
    TROUPE_TRY(builder->build(split, position, slot.first(bytes)));
    return bytes;
  });
}

Result<std::unique_ptr<Role>> make_decoder(const RoleContext& context, const ActorIdentity& identity, Outbox outbox) {
  TROUPE_ASSIGN(BuildSample build, is_imitation(context.config) ? read_demonstrations(context.config, context.env_spec)
                                                                : decode_samples(context.config));
  TROUPE_ASSIGN(auto dial, consumer_dial(context));
  return make_role_of<DecoderRole>(identity, std::vector<BuildSample>{std::move(build)}, std::move(dial),
                                   std::move(outbox));
}

/// The part of a manifest that is the same for every checkpoint of a job, from specifications and files alone: the
/// network and its frozen encoders are in the learner's memory, not here.
Result<Manifest> job_manifest(const JobConfig& job, const Pipeline& pipeline) {
  std::vector<FlatLayout> layouts;
  const std::vector<UnitSpec> units = state_units(pipeline.units());
  for (const UnitSpec& unit : units) layouts.push_back(make_flat_layout(unit.params));
  Manifest manifest;
  manifest.units = manifest_units(units, layouts, saved_state(job));
  manifest.layout_hash = hash_of(layouts);
  manifest.optimizer = {.name = job.optimizer.name,
                        .lr = job.optimizer.lr,
                        .betas = job.optimizer.name == "sophia" ? job.optimizer.sophia.betas : job.optimizer.betas,
                        .eps = job.optimizer.eps,
                        .weight_decay = job.optimizer.weight_decay};
  manifest.seed = job.job.seed;
  manifest.dataset_fingerprint = pipeline.fingerprint();
  manifest.config = to_yaml(job);
  TROUPE_ASSIGN(manifest.encoder_hash, pipeline.encoder_hash());
  manifest.version = kTroupeVersion;
  return manifest;
}

Result<std::unique_ptr<Role>> make_checkpointer(const RoleContext& context, const ActorIdentity& identity,
                                                Outbox outbox) {
  TROUPE_ASSIGN(const auto pipeline, open_pipeline(context.config, context.env_spec));
  TROUPE_ASSIGN(const Manifest manifest, job_manifest(context.config, *pipeline));
  CheckpointerRole::Describe describe = [manifest, pipeline,
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
    ledger["bad_positions"] = request.bad_positions;
    description.attachments.push_back({.name = CheckpointLedger::kFile, .bytes = ledger.dump(2) + "\n"});
    return description;
  };
  return make_role_of<CheckpointerRole>(identity, std::move(describe), std::move(outbox));
}

struct Factory {
  std::string_view role;
  Result<std::unique_ptr<Role>> (*make)(const RoleContext& context, const ActorIdentity& identity, Outbox outbox);
};
constexpr Factory kFactories[] = {
    {"decoder", make_decoder},          {"encoder", make_encoder},     {"env", make_simulator},
    {"rollout", make_rollout},          {"evaluator", make_evaluator}, {"learner", make_learner},
    {"checkpointer", make_checkpointer}};
static_assert(std::all_of(std::begin(kFactories), std::end(kFactories),
                          [](const Factory& factory) { return !taken_by(factory.role).empty(); }),
              "a role has no row in actors/actor_catalogue.h, so its actors would take nothing");

}  // namespace

LocalActors::MakeRole role_maker(RoleContext context, IoLoop& loop) {
  context.loop = &loop;
  if (const auto form = enum_value<ProductForm>(context.plan.products)) set_product_form(*form);
  return [context = std::move(context)](const ActorIdentity& identity, const std::string& role, Outbox outbox) {
    const auto factory = std::find_if(std::begin(kFactories), std::end(kFactories),
                                      [&](const Factory& each) { return each.role == role; });
    if (factory == std::end(kFactories)) throw std::runtime_error(fmt::format("no role '{}'", role));
    auto made = factory->make(context, identity, std::move(outbox));
    if (!made) throw std::runtime_error(made.error().message());
    return std::move(*made);
  };
}

}  // namespace troupe::actors
