#include "workers/inference/agent/load_agent.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/hash.h"
#include "base/log.h"
#include "env/env_spec_json.h"
#include "model/shard/flat_layout.h"
#include "workers/checkpoint/reader.h"
#include "workers/rollout/policy_shape_of.h"
#include "workers/rollout/trainer_state.h"

namespace troupe::workers {

namespace {

Result<JobConfig> rl_job_of(const Manifest& manifest, const std::string& folder) {
  TROUPE_ASSIGN(JobConfig job, job_of(manifest, folder));
  if (!trains_agent(job)) {
    return Error{Errc::failed_precondition,
                 fmt::format("checkpoint {}: its job (kind {}) names no environment in env.id; wanted a policy for one",
                             folder, enum_name(job.job.kind))};
  }
  job.env.bridge = {};  // a checkpoint names no program that is started here
  return job;
}

/// Where a unit of the policy is in the checkpoint, laid out alike.
Result<std::int64_t> find_unit(const CheckpointReader& reader, const std::string& name, const FlatLayout& layout) {
  const auto damaged = [&](const std::string& why) {
    return Error{Errc::data_loss,
                 fmt::format("checkpoint {} does not hold the policy that its configuration describes: {}",
                             reader.directory(), why)};
  };
  const auto& units = reader.manifest().units;
  const auto found =
      std::find_if(units.begin(), units.end(), [&](const ManifestUnit& unit) { return unit.name == name; });
  if (found == units.end()) return damaged(fmt::format("it lacks unit '{}'", name));
  for (std::size_t i = 0; i < std::min(found->params.size(), layout.entries.size()); ++i) {
    const ManifestParam& stored = found->params[i];
    const LayoutEntry& wanted = layout.entries[i];
    if (stored.name == wanted.name && stored.shape == wanted.shape && stored.offset == wanted.offset) continue;
    return damaged(fmt::format("unit '{}' has '{}' [{}] where the policy has '{}' [{}]", name, stored.name,
                               fmt::join(stored.shape, ", "), wanted.name, fmt::join(wanted.shape, ", ")));
  }
  if (found->params.size() != layout.entries.size() || found->layout_hash != layout.hash) {
    return damaged(fmt::format("unit '{}' has {} tensors and layout hash {} where the policy has {} and {}", name,
                               found->params.size(), to_hex(found->layout_hash), layout.entries.size(),
                               to_hex(layout.hash)));
  }
  return found - units.begin();
}

Result<void> read_values(const CheckpointReader& reader, const PolicyNet& policy, WeightSet set,
                         PublishedWeights& weights) {
  TROUPE_ASSIGN(const CheckpointReader::Kind kind, reader.kind_of(set));
  const std::vector<UnitSpec> units = state_units(policy.units());
  for (const std::string& name : policy.acting_units()) {
    const auto unit = std::find_if(units.begin(), units.end(), [&](const UnitSpec& u) { return u.name == name; });
    const FlatLayout layout = make_flat_layout(unit->params);
    TROUPE_ASSIGN(const std::int64_t index, find_unit(reader, name, layout));
    at::Tensor flat = at::zeros({layout.padded(1)}, at::kFloat);
    TROUPE_TRY(reader.read(index, kind, 0, layout.numel, flat.mutable_data_ptr<float>()));
    flat = flat.to(policy.acting_dtype());
    weights.views[name] = views_of(layout, flat, false);
    weights.flats.push_back(flat);
  }
  return {};
}

/// Frozen statistics of observations, as many as the policy's state has numbers.
Result<void> read_statistics(const CheckpointReader& reader, const LoadedAgent& loaded, NormaliserState& out) {
  TROUPE_ASSIGN(RlTrainerState state, RlTrainerState::read(reader));
  const auto dim = static_cast<std::int64_t>(state.normaliser.observed.dim());
  if (loaded.job.rollout.normalize_obs && dim != loaded.agent.shape.state_dim) {
    return Error{Errc::data_loss, fmt::format("checkpoint {}: trainer_state.json has statistics of {} numbers; "
                                              "rollout.normalize_obs is on and the policy's state has {}",
                                              reader.directory(), dim, loaded.agent.shape.state_dim)};
  }
  out = std::move(state.normaliser);
  return {};
}

/// The spec of the environment that the policy was trained in. Checkpoints of earlier versions have none: then the spec
/// of this build's environment.
Result<EnvSpec> kept_env(const CheckpointReader& reader, const EnvConfig& env) {
  TROUPE_ASSIGN(const std::string text, reader.attachment(kEnvSpecFile));
  return env_spec_from_text(text, fmt::format("{}/{}", reader.directory(), kEnvSpecFile), env);
}

Result<LoadedAgent> load(const CheckpointReader& reader, JobConfig job, EnvSpec env, WeightSet weights) {
  TROUPE_ASSIGN(Agent agent, make_agent(job, std::move(env), reader.directory()));
  LoadedAgent loaded{.job = std::move(job), .agent = std::move(agent), .weights = {}};
  loaded.weights.fence = reader.manifest().fence;
  loaded.weights.version = reader.manifest().step;
  TROUPE_TRY(read_values(reader, *loaded.agent.policy, weights, loaded.weights));
  TROUPE_TRY(read_statistics(reader, loaded, loaded.weights.normaliser));
  return loaded;
}

/// What ids of one family have in common: "arm7/" of "arm7/lift-v1", "HalfCheetah-" of "HalfCheetah-v5".
std::string family_of(const std::string& id) {
  const std::size_t slash = id.find('/');
  return id.substr(0, slash != std::string::npos ? slash + 1 : id.rfind('-') + 1);
}

}  // namespace

Result<JobConfig> read_rl_job(const std::string& folder) {
  TROUPE_ASSIGN(const Manifest manifest, read_manifest(folder));
  return rl_job_of(manifest, folder);
}

bool holds_agent(const std::string& folder) {
  const auto job = read_rl_job(folder);
  return job && !trains_dreamzero(*job);
}

Result<LoadedAgent> load_agent(const std::string& folder, WeightSet weights) {
  TROUPE_ASSIGN(const auto reader, CheckpointReader::open(folder));
  TROUPE_ASSIGN(JobConfig job, rl_job_of(reader->manifest(), folder));
  TROUPE_ASSIGN(EnvSpec env, kept_env(*reader, job.env));
  return load(*reader, std::move(job), std::move(env), weights);
}

Result<LoadedAgent> load_agent(const std::string& folder, const EnvConfig& env, WeightSet weights) {
  TROUPE_ASSIGN(const auto reader, CheckpointReader::open(folder));
  TROUPE_ASSIGN(JobConfig job, rl_job_of(reader->manifest(), folder));
  // before a policy is made: the error then names the environment, not a key of the policy
  TROUPE_ASSIGN(const EnvSpec kept, kept_env(*reader, job.env));
  TROUPE_ASSIGN(EnvSpec here, env_spec_of(env));
  TROUPE_ASSIGN(const PolicyShape trained, policy_shape_of(kept, job.env, job.policy));
  TROUPE_ASSIGN(const PolicyShape other, policy_shape_of(here, env, job.policy));
  if (auto same = check_same_shape(trained, other); !same) {
    return same.error().with(fmt::format("{} cannot act in {}: it was trained in {}", folder, env.id, job.env.id));
  }
  if (env.id == job.env.id) {
    const std::string file = fmt::format("{}/{}", folder, kEnvSpecFile);
    if (auto same = check_same_spec(here, kept, file); !same)
      log::warn("the policy acts in another environment than it was trained in: {}", same.error().message());
  }
  job.env = env;
  return load(*reader, std::move(job), std::move(here), weights);
}

EnvConfig moved_env(const EnvConfig& env, const std::string& id) {
  EnvConfig moved = env;
  moved.spec.clear();
  if (id == env.id) return moved;
  moved.id = id;
  moved.max_episode_steps = 0;
  const std::string family = family_of(id);
  if (!family.empty() && family == family_of(env.id)) return moved;
  moved.profile.clear();
  moved.options.clear();
  return moved;
}

Result<void> check_same_shape(const PolicyShape& trained, const PolicyShape& other) {
  const auto differs = [](const std::string& what) { return Error{Errc::invalid_argument, what}; };
  if (trained.state_dim != other.state_dim) {
    return differs(fmt::format("observations have {} numbers, the policy was trained with {}", other.state_dim,
                               trained.state_dim));
  }
  if (trained.critic_dim != other.critic_dim) {
    return differs(fmt::format("{} numbers are for critics alone, the policy was trained with {}", other.critic_dim,
                               trained.critic_dim));
  }
  if (trained.mask_dim != other.mask_dim) {
    return differs(fmt::format("actions are {}, the policy was trained with {}",
                               other.mask_dim > 0 ? "masked" : "not masked",
                               trained.mask_dim > 0 ? "an action mask" : "none"));
  }
  const auto images = [](const PolicyShape& shape) {
    std::vector<std::string> all;
    for (const auto& image : shape.images)
      all.push_back(fmt::format("{} {}x{}x{}{}{}", image.name, image.height, image.width, image.channels,
                                image.is_depth ? " of depth" : "", image.is_for_critic ? " for critics" : ""));
    return fmt::format("[{}]", fmt::join(all, ", "));
  };
  if (images(trained) != images(other)) {
    return differs(fmt::format("images are {}, the policy was trained with {}", images(other), images(trained)));
  }
  const auto texts = [](const PolicyShape& shape) {
    std::vector<std::string> all;
    for (const auto& text : shape.texts) all.push_back(text.name);
    return fmt::format("[{}]", fmt::join(all, ", "));
  };
  if (texts(trained) != texts(other))
    return differs(fmt::format("texts are {}, the policy was trained with {}", texts(other), texts(trained)));
  const auto actions = [](const PolicyShape& shape) {
    return shape.choices > 0 ? fmt::format("one of {}", shape.choices) : fmt::format("{} numbers", shape.action_dim);
  };
  if (actions(trained) != actions(other)) {
    return differs(fmt::format("actions are {}, the policy was trained with {}", actions(other), actions(trained)));
  }
  if (trained.chunk != other.chunk)
    return differs(fmt::format("env.chunk is {}, the policy was trained with {}", other.chunk, trained.chunk));
  return {};
}

}  // namespace troupe::workers
