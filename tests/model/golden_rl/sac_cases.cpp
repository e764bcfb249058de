#include <ATen/ATen.h>

#include <span>
#include <tuple>

#include "model/loss/rl_keys.h"
#include "model/loss/sac_loss.h"
#include "model/optim/moving_average.h"
#include "model/policy/sac_model.h"
#include "model/policy/sac_objective.h"
#include "tests/model/golden_rl/cases.h"
#include "tests/model/golden_rl/golden_layers.h"
#include "tests/model/policy/policy_fixture.h"
#include "tests/support/visible.h"

namespace troupe::testing {
namespace {

constexpr double kLogStdMin = -5, kLogStdMax = 2;  // of the case's network

/// What a variant's config and scalars say, in the words of AlgorithmConfig.
SacConfig config_of(const RlVariant& variant, std::int64_t critics) {
  SacConfig config;
  const auto kind = variant.get<std::string>("alpha_type", "softplus");
  config.temperature = enum_value<TemperatureKind>(kind == "fixed_alpha" ? "fixed" : kind).value();
  config.alpha = variant.config.at("initial_alpha").get<double>();
  const auto aggregation = variant.get<std::string>("agg_q", "min");
  config.target_aggregation = enum_value<CriticAggregation>(aggregation).value();
  config.actor_aggregation = enum_value<CriticAggregation>(variant.get("actor_agg_q", aggregation)).value();
  config.backup_entropy = variant.get("backup_entropy", true);
  config.critics = critics;
  if (variant.scalars.contains("target_entropy"))
    config.target_entropy = variant.scalars.at("target_entropy").get<double>();
  return config;
}

/// The batch of the case under the keys of rl_keys.h.
Batch batch_of(const RlCase& golden, const RlVariant& variant) {
  Batch batch;
  batch[rl_keys::kState] = golden.in("obs");
  batch[rl_keys::kAction] = golden.in("actions");
  batch[rl_keys::kReward] = golden.in("rewards").sum(1, /*keepdim=*/true);
  batch[rl_keys::kNextState] = golden.in("next_obs");
  const auto ended = golden.in("terminations").to(at::kBool).any(1, /*keepdim=*/true);
  const bool always = variant.get<std::string>("bootstrap_type", "standard") == "always";
  batch[rl_keys::kContinues] =
      variant.config.at("gamma").get<double>() * (always ? at::ones_like(ended) : ended.logical_not()).to(at::kFloat);
  batch[rl_keys::kActionNoise] = golden.in("noise_actor");
  batch[rl_keys::kNextNoise] = golden.in("noise_next");
  if (variant.scalars.contains("subsample_heads")) {
    batch[rl_keys::kSubset] =
        at::tensor(variant.scalars.at("subsample_heads").get<std::vector<std::int64_t>>(), at::kLong);
  }
  return batch;
}

std::int64_t count_critics(const TensorMap& weights) {
  std::int64_t count = 0;
  while (!with_prefix(weights, "q_head.qs." + std::to_string(count) + ".").empty()) ++count;
  return count;
}

/// The case's networks, layer by layer.
struct Reference {
  TensorMap w;

  at::Tensor values(const at::Tensor& obs, const at::Tensor& action) const {
    std::vector<at::Tensor> q;
    for (std::int64_t i = 0; i < count_critics(w); ++i) {
      q.push_back(
          golden_layers(w, "q_head.qs." + std::to_string(i) + ".net.", at::cat({obs, action}, 1), false, golden_tanh));
    }
    return at::cat(q, 1);
  }
  SquashedAction sample(const at::Tensor& obs, const at::Tensor& noise) const {
    const auto features = golden_layers(w, "backbone.", obs, true, golden_tanh);
    const auto mean = at::linear(features, w.at("actor_mean.weight"), w.at("actor_mean.bias"));
    const auto raw = at::linear(features, w.at("actor_logstd.weight"), w.at("actor_logstd.bias"));
    return sample_squashed(mean, squash_log_std(raw, kLogStdMin, kLogStdMax), noise,
                           make_action_range({-1}, {1}, mean.size(1)));
  }
};

void expect_scalar(const RlVariant& variant, const nlohmann::json& scalars, const std::string& key,
                   const at::Tensor& got) {
  if (scalars.contains(key))
    expect_close(got.item<double>(), scalars.at(key).get<double>(), kClose, variant.name + " " + key);
}

/// model/loss/sac_loss.h over the case's networks.
void judge_losses(const RlCase& golden, const RlVariant& variant, const SacConfig& config) {
  const Reference online{golden_leaves(golden, "w.")}, target{golden_leaves(golden, "target_w.")};
  const auto batch = batch_of(golden, variant);
  const auto kind = config.temperature;
  const auto parameter = leaf(at::scalar_tensor(temperature_parameter(config.alpha, kind), at::kFloat));
  const auto alpha = temperature(parameter, kind);
  expect_scalar(variant, variant.scalars, "alpha", alpha);
  expect_scalar(variant, variant.scalars, "alpha_param", parameter);

  const auto next = online.sample(golden.in("next_obs"), golden.in("noise_next"));
  const auto subset = batch.count(rl_keys::kSubset) > 0 ? batch.at(rl_keys::kSubset) : at::Tensor();
  const auto next_value =
      aggregate_critics(target.values(golden.in("next_obs"), next.action), config.target_aggregation, subset);
  const auto y = sac_target(batch.at(rl_keys::kReward), batch.at(rl_keys::kContinues), next_value,
                            next.logp.sum(1, true), alpha, config.backup_entropy);
  const auto values = online.values(golden.in("obs"), golden.in("actions"));
  const auto critic_loss = sac_critic_loss(values, y);
  variant.expect("target", y, kClose);
  variant.expect("q_data", values, kClose);
  expect_scalar(variant, variant.scalars, "critic_loss", critic_loss);
  expect_gradients(critic_loss, online.w, variant, "critic_grad.", kGradient);

  const auto acted = online.sample(golden.in("obs"), golden.in("noise_actor"));
  const auto logp = acted.logp.sum(1, true);
  const auto acted_values = online.values(golden.in("obs"), acted.action);
  const auto q_pi = aggregate_critics(acted_values, config.actor_aggregation, {});
  const auto actor_loss = sac_actor_loss(logp, q_pi, alpha);
  expect_scalar(variant, variant.scalars, "actor_loss", actor_loss);
  expect_scalar(variant, variant.scalars, "entropy", -logp.mean());
  expect_gradients(actor_loss, online.w, variant, "actor_grad.", kGradient);
  if (const auto metrics = variant.scalars.find("metrics"); metrics != variant.scalars.end()) {
    expect_scalar(variant, *metrics, "q_pi", q_pi.mean());
    for (std::int64_t i = 0; i < acted_values.size(1); ++i) {
      expect_scalar(variant, *metrics, "q_value_" + std::to_string(i), acted_values.select(1, i).mean());
    }
  }

  if (!variant.scalars.contains("alpha_loss")) return;
  const auto other = online.sample(golden.in("obs"), golden.in("noise_alpha")).logp.sum(1, true);
  const auto alpha_loss = sac_temperature_loss(alpha, other, config.target_entropy);
  expect_scalar(variant, variant.scalars, "alpha_loss", alpha_loss);
  expect_scalar(variant, variant.scalars, "alpha_param_grad", gradients(alpha_loss, {parameter})[0]);
}

/// Outputs of the linear layers "<prefix><i>" but the last, and whether they are normalised.
std::pair<std::vector<std::int64_t>, bool> hidden_layers(const TensorMap& weights, const std::string& prefix,
                                                         bool has_head) {
  std::map<int, std::int64_t> linear;
  bool is_normalised = false;
  for (const auto& [name, tensor] : with_prefix(weights, prefix)) {
    if (!name.ends_with(".weight")) continue;
    if (tensor.dim() == 2) linear[std::stoi(name)] = tensor.size(0);
    is_normalised |= tensor.dim() == 1;
  }
  std::vector<std::int64_t> widths;
  for (const auto& [index, width] : linear) widths.push_back(width);
  if (has_head) widths.pop_back();
  return {widths, is_normalised};
}

/// The tensors of "<from><i>" under the names of an Mlp called `to`.
void rename_layers(const TensorMap& from_weights, const std::string& from, const std::string& to, TensorMap& out) {
  int layer = -1;
  std::map<int, TensorMap> by_index;
  for (const auto& [name, tensor] : with_prefix(from_weights, from))
    by_index[std::stoi(name)][name.substr(name.find('.') + 1)] = tensor;
  for (const auto& [index, tensors] : by_index) {
    const bool is_norm = tensors.at("weight").dim() == 1;
    if (!is_norm) ++layer;
    const auto name = to + "." + std::to_string(layer) + (is_norm ? ".norm." : ".");
    for (const auto& [kind, tensor] : tensors) out[name + kind] = tensor;
  }
}

/// The case's tensors (parameters, or gradients) under the names of SacModel's units.
TensorMap renamed(const TensorMap& w, const std::string& critic) {
  TensorMap out;
  rename_layers(w, "backbone.", "actor", out);
  if (w.count("actor_mean.weight") > 0) {
    const auto layers = hidden_layers(w, "backbone.", false).first.size();
    for (const std::string kind : {"weight", "bias"}) {
      out["actor." + std::to_string(layers) + "." + kind] =
          at::cat({w.at("actor_mean." + kind), w.at("actor_logstd." + kind)}, 0);
    }
  }
  for (std::int64_t i = 0; i < count_critics(w); ++i) {
    rename_layers(w, "q_head.qs." + std::to_string(i) + ".net.", critic + "." + std::to_string(i), out);
  }
  return out;
}

struct Trained {
  MicroResult result;
  std::vector<ParamView> gradients;
};

Trained train(const Network& network, const TensorMap& parameters, const Batch& batch) {
  std::vector<ParamView> params;
  for (const auto& unit : network.units()) {
    auto& view = params.emplace_back();
    for (const auto& param : unit.params) view.set(param.name, leaf(parameters.at(param.name)));
  }
  Trained trained{{}, empty_gradients(network.units())};
  trained.result = run_tape(network, params, batch, 1.0, trained.gradients);
  return trained;
}

/// The same numbers through the two objectives that the engine trains.
void judge_objectives(const RlCase& golden, const RlVariant& variant, const SacConfig& config) {
  const auto w = with_prefix(golden.inputs(), "w.");
  PolicyConfig policy;
  policy.activation = Activation::tanh;
  policy.hidden = hidden_layers(w, "backbone.", false).first;
  std::tie(policy.critic_hidden, policy.critic_layer_norm) = hidden_layers(w, "q_head.qs.0.net.", true);
  policy.log_std_min = kLogStdMin;
  policy.log_std_max = kLogStdMax;
  AlgorithmConfig algorithm;
  algorithm.name = Algorithm::sac;
  algorithm.sac = config;
  PolicyShape shape;
  shape.state_dim = golden.in("obs").size(1);
  shape.chunk = golden.config().at("K").get<std::int64_t>();
  shape.action_dim = golden.in("actions").size(1) / shape.chunk;
  shape.action_low.assign(static_cast<std::size_t>(shape.action_dim), -1);
  shape.action_high.assign(static_cast<std::size_t>(shape.action_dim), 1);
  const auto model = SacModel::make(policy, algorithm, shape);
  ASSERT_TRUE(model) << model.error().to_string();

  auto parameters = renamed(w, "critic");
  for (const auto& [name, tensor] : renamed(with_prefix(golden.inputs(), "target_w."), "target"))
    parameters[name] = tensor;
  parameters[SacModel::kTemperatureParam] = at::full({1}, temperature_parameter(config.alpha, config.temperature));
  const auto batch = batch_of(golden, variant);

  const auto critics = train(SacCriticObjective(*model), parameters, batch);
  expect_close(critics.result.loss, variant.scalars.at("critic_loss").get<double>(), kClose,
               variant.name + " critic objective");
  for (const auto& [name, want] : renamed(with_prefix(variant.out, "critic_grad."), "critic")) {
    expect_close(critics.gradients[SacModel::kCritic][name], want, kGradient,
                 variant.name + " critic objective " + name);
  }
  const auto actor = train(SacActorObjective(*model), parameters, batch);
  expect_close(actor.result.metrics.at("sac/actor_loss"), variant.scalars.at("actor_loss").get<double>(), kClose,
               variant.name + " actor objective");
  auto wanted = with_prefix(variant.out, "actor_grad.");
  std::erase_if(wanted, [](const auto& item) { return item.first.rfind("q_head.", 0) == 0; });
  for (const auto& [name, want] : renamed(wanted, "critic")) {
    expect_close(actor.gradients[SacModel::kActor][name], want, kGradient, variant.name + " actor objective " + name);
  }
}

void judge_average(const RlVariant& variant) {
  const bool heads_only = variant.get<std::string>("target_update_type", "all") == "q_head_only";
  const double tau = variant.config.at("tau").get<double>();
  const auto after = with_prefix(variant.out, "target_after.");
  EXPECT_FALSE(after.empty()) << variant.name << " states no target_after.*";
  for (const auto& [name, want] : after) {
    const auto& online = variant.at("online." + name);
    // the reference copies every other parameter of the target from the online model
    const bool is_copied = heads_only && name.rfind("q_head.", 0) != 0;
    const auto average = is_copied ? at::zeros_like(online) : variant.at("target_before." + name).clone();
    const auto numbers = [](const at::Tensor& x) {
      return std::span(x.data_ptr<float>(), static_cast<std::size_t>(x.numel()));
    };
    move_average(numbers(average), numbers(online), is_copied ? 1 : tau);
    expect_close(average, want, kClose, variant.name + " " + name);
  }
}

void judge_sac(const RlCase& golden) {
  for (const auto& variant : golden.variants()) {
    variant.expect_options({"gamma", "alpha_type", "initial_alpha", "bootstrap_type", "agg_q", "actor_agg_q",
                            "backup_entropy", "tau", "target_update_type"});
    if (variant.config.contains("tau")) {
      judge_average(variant);
      continue;
    }
    const auto config = config_of(variant, count_critics(with_prefix(golden.inputs(), "w.")));
    judge_losses(golden, variant, config);
    judge_objectives(golden, variant, config);
  }
}

}  // namespace

RlHandlers sac_handlers() { return {{"sac", judge_sac}}; }

}  // namespace troupe::testing
