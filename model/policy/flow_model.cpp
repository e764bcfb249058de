#include "model/policy/flow_model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <numbers>

#include "model/loss/rl_keys.h"
#include "model/policy/action_bounds.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kTimeWaves = 8;     // sines and cosines of the time each
constexpr std::int64_t kNoiseHidden = 64;  // width of Flow-Noise's two hidden layers

Error bad(std::string message) { return {Errc::invalid_argument, std::move(message)}; }

Result<void> check(const PolicyConfig& policy, const PolicyShape& shape) {
  const auto& flow = policy.flow;
  if (!enum_value<FlowMethod>(flow.sampler))
    return bad("policy.flow.sampler is " + flow.sampler + "; wanted is ode, sde, cps or noise");
  TROUPE_TRY(check_action_bounds(shape, "policy.kind flow"));
  if (policy.distribution != "auto")
    return bad("policy.distribution is " + policy.distribution + "; policy.kind flow has its own: use auto");
  if (flow.sampler == "noise" && !flow.joint)
    return bad("policy.flow.sampler is noise with policy.flow.joint off; Flow-Noise needs joint");
  if (flow.sampler == "cps" && !flow.joint && !flow.ignore_last) {
    return bad(
        "policy.flow.sampler is cps with policy.flow.ignore_last off; the last step of Flow-CPS has no density: switch "
        "ignore_last on");
  }
  TROUPE_TRY(check_drawing_steps(flow));
  if (flow.logprob_reduce == "per_step" && !flow.joint) {
    return bad(
        "policy.flow.logprob_reduce is per_step with policy.flow.joint off, where one step alone has a "
        "log-probability");
  }
  return {};
}

/// sin and cos of pi k t, k = 1.., [N, 2 kTimeWaves]: smooth in t, and distinct over (0, 1].
at::Tensor embed_time(const at::Tensor& t_N) {
  const auto waves = at::arange(1, kTimeWaves + 1, t_N.options()) * std::numbers::pi;
  const auto angle = t_N.unsqueeze(1) * waves;
  return at::cat({angle.sin(), angle.cos()}, 1);
}

}  // namespace

Result<std::shared_ptr<const FlowModel>> FlowModel::make(const PolicyConfig& policy, const AlgorithmConfig& algorithm,
                                                         const PolicyShape& shape) {
  TROUPE_TRY(check(policy, shape));
  TROUPE_ASSIGN(auto seen, ObservationFeatures::make(policy, policy.actor_vision(), seen_by_actor(shape), "actor"));
  const std::int64_t width = shape.chunk * shape.action_dim, inputs = seen.width() + width + 2 * kTimeWaves;
  // small velocities at first: chunks start as the noise they came from
  Mlp velocity(make_mlp_shape(policy, "actor", inputs, policy.hidden, width, 0.1));
  std::optional<Mlp> noise;
  std::optional<ObservationNet> critic;
  if (policy.flow.sampler == "noise") {
    auto mlp = make_mlp_shape(policy, "actor.noise", inputs, {kNoiseHidden, kNoiseHidden}, width, 0.1);
    mlp.activation = Activation::tanh;
    noise.emplace(std::move(mlp));
  }
  if (algorithm.traits().has_critic()) {
    const std::int64_t values = algorithm.policy_gradient.reward_level == "action" ? shape.chunk : 1;
    TROUPE_ASSIGN(critic,
                  ObservationNet::make(policy, policy.critic_vision(), seen_by_critic(shape),
                                       make_mlp_shape(policy, "critic", 0, policy.critic_layers(), values, 1.0)));
  }
  return std::shared_ptr<const FlowModel>(
      new FlowModel(policy.flow, shape, std::move(seen), std::move(velocity), std::move(noise), std::move(critic)));
}

FlowModel::FlowModel(const FlowPolicyConfig& config, const PolicyShape& shape, ObservationFeatures seen, Mlp velocity,
                     std::optional<Mlp> noise, std::optional<ObservationNet> critic)
    : config_(config),
      chunk_(shape.chunk),
      action_dim_(shape.action_dim),
      range_(make_action_range(shape.action_low, shape.action_high, shape.chunk)),
      seen_(std::move(seen)),
      velocity_(std::move(velocity)),
      noise_(std::move(noise)),
      critic_(std::move(critic)) {
  auto params = seen_.params();
  for (auto& param : velocity_.params()) params.push_back(std::move(param));
  if (noise_) {
    for (auto& param : noise_->params()) params.push_back(std::move(param));
  }
  units_.push_back(make_group_unit("actor", std::move(params)));
  if (critic_) units_.push_back(make_group_unit("critic", critic_->params()));
  units_.push_back(make_loss_unit());
}

FlowSampling FlowModel::sampling(double noise_level) const {
  FlowSampling sampling;
  sampling.method = enum_value<FlowMethod>(config_.sampler).value();
  sampling.times = flow_times(config_.denoise_steps);
  sampling.noise_level = noise_level;
  sampling.joint = config_.joint;
  sampling.safe = config_.safe_logprob;
  using Reduce = FlowSampling::Reduce;
  sampling.reduce = config_.logprob_reduce == "mean"  ? Reduce::mean
                    : config_.logprob_reduce == "sum" ? Reduce::sum
                                                      : Reduce::per_step;
  return sampling;
}

std::int64_t FlowModel::logp_width() const {
  return width() * (config_.logprob_reduce == "per_step" ? config_.denoise_steps : 1);
}

FlowNetwork FlowModel::network(const ParamView& actor, const Batch& observation) const {
  // pictures are looked at and texts read once a chain, not once a step
  return [this, &actor, seen = seen_.forward(actor, observation)](const at::Tensor& x, const at::Tensor& t) {
    const auto input = at::cat({seen, x, embed_time(t)}, 1);
    FlowPrediction predicted{velocity_.forward(actor, input), {}, {}};
    if (noise_) predicted.std = flow_noise_std(noise_->forward(actor, input));
    return predicted;
  };
}

at::Tensor FlowModel::flatten(const at::Tensor& logp) const {
  if (logp.dim() == 2) return logp;
  // [N,S,K*A] -> [N,K,S,A]: what belongs to one action of the chunk stands together
  const auto rows = logp.size(0), steps = logp.size(1);
  return logp.view({rows, steps, chunk_, action_dim_}).transpose(1, 2).reshape({rows, -1});
}

ActionDensity FlowModel::density(const ParamView& actor, const Batch& batch) const {
  const auto level = batch.find(rl_keys::kNoiseLevel);
  const auto s = sampling(level != batch.end() ? level->second.item<double>() : config_.noise_level);
  const std::string prefix = rl_keys::kExtraPrefix;
  const auto index = batch.at(prefix + "denoise_inds").view({-1});
  const auto result = flow_chain_density(network(actor, batch), batch.at(prefix + "chains"), index, s);
  const auto logp = flatten(result.logp);
  // a mean over steps: spread over the steps so that sums over them count it once
  const auto repeats = logp.size(1) / width();
  if (repeats == 1) return {logp, result.entropy};
  return {logp,
          flatten((result.entropy / static_cast<double>(repeats)).unsqueeze(1).expand({-1, repeats, -1}).contiguous())};
}

at::Tensor FlowModel::value(const ParamView& critic, const Batch& batch) const {
  TORCH_CHECK(critic_.has_value(), "this policy has no critic");
  return critic_->forward(critic, batch);
}

at::Tensor FlowModel::to_action(const at::Tensor& chunk) const {
  return range_.scale * chunk.clamp(-1.0, 1.0) + range_.bias;
}

at::Tensor FlowModel::from_action(const at::Tensor& action) const { return (action - range_.bias) / range_.scale; }

}  // namespace troupe::model
