#include "workers/inference/agent/agent_export.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/durable_file.h"
#include "configs/loader.h"
#include "model/policy/flow_step.h"
#include "workers/rollout/policy_shape_of.h"

namespace troupe::workers {

namespace {

using Json = nlohmann::ordered_json;

Json bound(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json environment_of(const LoadedAgent& loaded) {
  const EnvConfig& env = loaded.job.env;
  const EnvSpec& spec = loaded.agent.spec();
  return {{"id", env.id},
          {"profile", env.profile},
          {"options", env.options},
          {"chunk", env.chunk},
          {"exec_steps", env.executed()},
          {"control_hz", spec.control_hz},
          {"max_steps", spec.max_steps}};
}

/// Fields in order: vectors with their columns of the state, frames as they are.
Json observation_of(const EnvSpec& spec) {
  const ObservationParts parts = observation_parts(spec);
  Json fields = Json::array();
  for (std::size_t i = 0; i < spec.observation.size(); ++i) {
    const EnvField& field = spec.observation[i];
    Json entry = {{"name", field.name}, {"shape", field.shape}, {"dtype", enum_name(field.dtype)}};
    if (!field.unit.empty()) entry["unit"] = field.unit;
    if (field.reader != EnvReader::policy) entry["reader"] = enum_name(field.reader);
    const auto part =
        std::find_if(parts.vectors.begin(), parts.vectors.end(), [&](const auto& vector) { return vector.field == i; });
    if (part != parts.vectors.end()) entry["state_columns"] = {part->column, part->column + part->numel};
    fields.push_back(std::move(entry));
  }
  return fields;
}

Json action_of(const ActionSpace& space) {
  if (space.is_discrete()) return {{"kind", "discrete"}, {"choices", space.choices}};
  Json low = Json::array(), high = Json::array();
  for (const float value : space.low) low.push_back(bound(value));
  for (const float value : space.high) high.push_back(bound(value));
  return {{"kind", "continuous"}, {"size", space.size}, {"low", low}, {"high", high}, {"unit", space.unit}};
}

Json normaliser_of(const LoadedAgent& loaded) {
  const Moments& observed = loaded.weights.normaliser.observed;
  if (observed.dim() == 0) return Json();
  Json mean = Json::array(), variance = Json::array(), raw = Json::array();
  const std::vector<std::uint8_t> normalised = observation_parts(loaded.agent.spec()).normalised;
  for (std::size_t i = 0; i < observed.dim(); ++i) {
    mean.push_back(normalised[i] != 0 ? observed.mean(i) : 0.0);
    variance.push_back(normalised[i] != 0 ? observed.variance(i) : 1.0);
    if (normalised[i] == 0) raw.push_back(i);
  }
  Json json = {{"formula", "clamp((state - mean) / sqrt(variance + epsilon), -clip, clip)"},
               {"count", observed.count()},
               {"mean", mean},
               {"variance", variance},
               {"epsilon", 1e-8},
               {"clip", loaded.job.rollout.clip_obs}};
  if (!raw.empty()) json["columns_left_as_they_are"] = raw;
  return json;
}

/// What `auto` stands for.
std::string distribution_of(const LoadedAgent& loaded) {
  const PolicyConfig& policy = loaded.job.policy;
  if (policy.kind == PolicyKind::flow) return "flow";
  if (policy.distribution != "auto") return policy.distribution;
  if (is_off_policy(loaded.job)) return "squashed_gaussian";
  return loaded.agent.spec().action.is_discrete() ? "categorical" : "gaussian";
}

Json policy_of(const LoadedAgent& loaded) {
  const PolicyConfig& policy = loaded.job.policy;
  Json json = {{"algorithm", enum_name(loaded.job.algorithm.name)},
               {"kind", enum_name(policy.kind)},
               {"distribution", distribution_of(loaded)},
               {"hidden", policy.hidden},
               {"activation", enum_name(policy.activation)}};
  if (policy.actor_vision() != Vision::none) {
    json["vision"] = enum_name(policy.actor_vision());
    json["cnn_channels"] = policy.cnn_channels;
  }
  if (policy.reads_text())
    json["text"] = {{"kind", enum_name(policy.text)}, {"vocab", policy.text_vocab}, {"width", policy.text_width}};
  if (policy.memory != PolicyMemory::none)
    json["memory"] = {{"kind", enum_name(policy.memory)}, {"width", policy.memory_width}};
  if (is_off_policy(loaded.job)) json["log_std"] = {policy.log_std_min, policy.log_std_max};
  if (policy.kind == PolicyKind::flow) {
    json["flow"] = {{"denoise_steps", policy.flow.denoise_steps},
                    {"sampler", policy.flow.sampler},
                    {"joint", policy.flow.joint},
                    {"noise_level", flow_noise_level(policy.flow, loaded.weights.version)}};
  }
  return json;
}

/// Names and shapes of every tensor by unit; those that act() reads are marked.
Json units_of(const PolicyNet& policy) {
  Json units = Json::array();
  for (const UnitSpec& unit : policy.units()) {
    if (unit.params.empty()) continue;
    const auto& acting = policy.acting_units();
    Json tensors = Json::object();
    for (const ParamSpec& param : unit.params) tensors[param.name] = param.shape;
    units.push_back({{"unit", unit.name},
                     {"acts", std::find(acting.begin(), acting.end(), unit.name) != acting.end()},
                     {"tensors", tensors}});
  }
  return units;
}

}  // namespace

std::string describe_agent(const LoadedAgent& loaded) {
  const Json json = {{"format", "troupe-policy-1"},
                     {"job", loaded.job.job.name},
                     {"step", loaded.weights.version},
                     {"environment", environment_of(loaded)},
                     {"observation", observation_of(loaded.agent.spec())},
                     {"normaliser", normaliser_of(loaded)},
                     {"action", action_of(loaded.agent.spec().action)},
                     {"policy", policy_of(loaded)},
                     {"units", units_of(*loaded.agent.policy)}};
  return json.dump(2) + "\n";
}

Result<void> write_agent_description(const LoadedAgent& loaded, const std::string& folder) {
  TROUPE_TRY(write_file_durably(folder + "/job.yaml", to_yaml(loaded.job)));
  return write_file_durably(folder + "/policy.json", describe_agent(loaded));
}

}  // namespace troupe::workers
