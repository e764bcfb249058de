#include "model/policy/sac_model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "model/loss/rl_keys.h"
#include "model/policy/action_bounds.h"

namespace troupe::model {
namespace {

Error bad(std::string message) { return {Errc::invalid_argument, std::move(message)}; }

MlpShape make_fan_in_shape(const PolicyConfig& policy, std::string prefix, std::vector<std::int64_t> hidden,
                           std::int64_t outputs) {
  auto shape = make_mlp_shape(policy, std::move(prefix), 0, std::move(hidden), outputs, /*head_gain=*/{});
  shape.init = MlpInit::fan_in;
  return shape;
}

/// Those of the tensors `keys` that a batch has.
void copy_tensors(const std::vector<std::string>& keys, const Batch& from, Batch& to) {
  for (const auto& key : keys) {
    if (const auto found = from.find(key); found != from.end()) to[key] = found->second;
  }
}

/// One network per critic, whose state is the observation's with the action behind it.
Result<std::vector<ObservationNet>> make_critics(const PolicyConfig& policy, const SacConfig& sac, PolicyShape shape,
                                                 const std::string& prefix) {
  shape = seen_by_critic(std::move(shape));
  // checked before the action joins the state: it would hide that nothing of the observation is read
  TROUPE_TRY(ObservationFeatures::make(policy, policy.critic_vision(), shape, prefix));
  shape.state_dim += shape.chunk * shape.action_dim;
  std::vector<ObservationNet> nets;
  for (std::int64_t i = 0; i < sac.critics; ++i) {
    auto mlp = make_fan_in_shape(policy, prefix + "." + std::to_string(i), policy.critic_layers(), 1);
    mlp.layer_norm = policy.critic_layer_norm;
    auto net = ObservationNet::make(policy, policy.critic_vision(), shape, std::move(mlp));
    if (!net) return net.error();
    nets.push_back(std::move(*net));
  }
  return nets;
}

UnitSpec make_critic_unit(const std::string& name, const std::vector<ObservationNet>& nets) {
  UnitSpec unit{.name = name, .layout_class = "critic", .params = {}, .group = "critic"};
  for (const auto& net : nets) {
    for (auto& param : net.params()) unit.params.push_back(std::move(param));
  }
  return unit;
}

Result<void> check(const PolicyConfig& policy, const SacConfig& sac, const PolicyShape& shape) {
  TROUPE_TRY(check_action_bounds(shape, "algorithm.name sac"));
  if (policy.distribution != "auto" && policy.distribution != "squashed_gaussian") {
    return bad("policy.distribution is " + policy.distribution + "; sac needs squashed_gaussian");
  }
  if (sac.temperature != TemperatureKind::fixed && !(sac.alpha > 0)) {
    return bad(fmt::format("algorithm.sac.alpha is {}; a temperature that is learned ({}) starts above 0", sac.alpha,
                           enum_name(sac.temperature)));
  }
  if (sac.target_subset > sac.critics) {
    return bad(fmt::format("algorithm.sac.target_subset is {}; there are algorithm.sac.critics = {}", sac.target_subset,
                           sac.critics));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const SacModel>> SacModel::make(const PolicyConfig& policy, const AlgorithmConfig& algorithm,
                                                       const PolicyShape& shape) {
  TROUPE_TRY(check(policy, algorithm.sac, shape));
  auto actor =
      ObservationNet::make(policy, policy.actor_vision(), seen_by_actor(shape),
                           make_fan_in_shape(policy, "actor", policy.hidden, 2 * shape.chunk * shape.action_dim));
  if (!actor) return actor.error();
  auto online = make_critics(policy, algorithm.sac, shape, "critic");
  if (!online) return online.error();
  auto target = make_critics(policy, algorithm.sac, shape, "target");
  if (!target) return target.error();
  return std::shared_ptr<const SacModel>(new SacModel(algorithm, shape, std::move(*actor), std::move(*online),
                                                      std::move(*target), policy.log_std_min, policy.log_std_max));
}

SacModel::SacModel(const AlgorithmConfig& algorithm, const PolicyShape& shape, ObservationNet actor,
                   std::vector<ObservationNet> online, std::vector<ObservationNet> target, double log_std_min,
                   double log_std_max)
    : config_(algorithm.sac),
      range_(make_action_range(shape.action_low, shape.action_high, shape.chunk)),
      log_std_min_(log_std_min),
      log_std_max_(log_std_max),
      target_entropy_(config_.target_entropy != 0 ? config_.target_entropy
                                                  : -static_cast<double>(range_.scale.numel())),
      has_state_(shape.state_dim > 0),
      actor_(std::move(actor)),
      online_(std::move(online)),
      target_(std::move(target)) {
  for (const auto& image : shape.images) {
    image_keys_.push_back(rl_keys::kImagePrefix + image.name);
    next_image_keys_.push_back(rl_keys::kNextImagePrefix + image.name);
  }
  for (const auto& text : shape.texts) text_keys_.push_back(rl_keys::kTextPrefix + text.name);
  auto target_unit = make_critic_unit("target", target_);
  target_unit.trainable = false;
  target_unit.average_of = "critic";
  auto temperature_unit = make_group_unit("temperature", {});
  if (config_.temperature == TemperatureKind::fixed) {
    temperature_unit.trainable = false;
  } else {
    temperature_unit.params.push_back(
        {kTemperatureParam, {1}, {Init::Kind::constant, temperature_parameter(config_.alpha, config_.temperature)}});
  }
  units_ = {make_group_unit("actor", actor_.params()), std::move(target_unit), make_critic_unit("critic", online_),
            std::move(temperature_unit)};
}

SacModel::Distribution SacModel::split(const at::Tensor& outputs) const {
  const auto width = action_width();
  return {outputs.narrow(1, 0, width), squash_log_std(outputs.narrow(1, width, width), log_std_min_, log_std_max_)};
}

SacModel::Distribution SacModel::distribution(const ParamView& actor, const Batch& observation) const {
  return split(actor_.forward(actor, observation));
}

SquashedAction SacModel::sample(const ParamView& actor, const Batch& observation, const at::Tensor& noise) const {
  const auto [mean, log_std] = distribution(actor, observation);
  return sample_squashed(mean, log_std, noise, range_);
}

at::Tensor SacModel::actor_rows(const at::Tensor& state) const {
  return first_columns(state, actor_.mlp().shape().inputs).contiguous();
}

Batch SacModel::critic_input(const Batch& observation, const at::Tensor& action) const {
  Batch input;
  input[rl_keys::kState] = has_state_ ? at::cat({observation.at(rl_keys::kState), action}, 1) : action;
  copy_tensors(image_keys_, observation, input);
  copy_tensors(text_keys_, observation, input);
  return input;
}

Batch SacModel::next_observation(const Batch& batch) const {
  Batch next;
  if (has_state_) next[rl_keys::kState] = batch.at(rl_keys::kNextState);
  for (std::size_t i = 0; i < image_keys_.size(); ++i) {
    if (const auto found = batch.find(next_image_keys_[i]); found != batch.end()) next[image_keys_[i]] = found->second;
  }
  copy_tensors(text_keys_, batch, next);
  return next;
}

namespace {

at::Tensor side_by_side(const std::vector<ObservationNet>& nets, const ParamView& view, const Batch& input) {
  std::vector<at::Tensor> values;
  values.reserve(nets.size());
  for (const auto& net : nets) values.push_back(net.forward(view, input));
  return at::cat(values, 1);
}

}  // namespace

at::Tensor SacModel::values(const ParamView& critic, const Batch& observation, const at::Tensor& action) const {
  return side_by_side(online_, critic, critic_input(observation, action));
}

at::Tensor SacModel::target_values(const ParamView& target, const Batch& observation, const at::Tensor& action) const {
  return side_by_side(target_, target, critic_input(observation, action));
}

at::Tensor SacModel::alpha(const ParamView& view) const {
  if (config_.temperature == TemperatureKind::fixed) return at::full({}, config_.alpha, at::kFloat);
  return temperature(view[kTemperatureParam], config_.temperature).squeeze(0);
}

}  // namespace troupe::model
