#include "model/policy/flow_policy.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/random.h"
#include "model/policy/flow_imitation.h"

namespace troupe::model {
namespace {

/// The random part of N chains.
struct ChainDraws {
  at::Tensor initial;  ///< [N,W]
  at::Tensor noise;    ///< [S,N,W]; undefined: nothing draws
  at::Tensor index;    ///< i64 [N]
};

void fill_normal(CounterRng& rng, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = rng.normal();
}

ChainDraws draw_chains(const ActRequest& request, std::int64_t width, const FlowPolicyConfig& flow, bool joint) {
  const std::int64_t steps = flow.denoise_steps, choices = request.deterministic ? 0 : flow.drawing_steps();
  const auto rows = static_cast<std::int64_t>(request.keys.size());
  // with one drawing step all steps may share a row's noise: the others do not look at it
  const std::int64_t noises = joint ? steps : 1;
  ChainDraws draws{at::empty({rows, width}, at::kFloat), {}, at::full({rows}, -1, at::kLong)};
  const auto noise = at::empty({rows, noises, width}, at::kFloat);
  for (std::int64_t row = 0; row < rows; ++row) {
    CounterRng rng(request.seed, rng_stream::policy_action, request.keys[static_cast<std::size_t>(row)]);
    fill_normal(rng, draws.initial.data_ptr<float>() + row * width, width);
    if (choices == 0) continue;
    draws.index.data_ptr<std::int64_t>()[row] = flow.ignore_first + rng.below(static_cast<std::uint32_t>(choices));
    fill_normal(rng, noise.data_ptr<float>() + row * noises * width, noises * width);
  }
  if (choices > 0) draws.noise = noise.transpose(0, 1).expand({steps, rows, width});
  return draws;
}

}  // namespace

FlowPolicyNet::FlowPolicyNet(std::shared_ptr<const FlowModel> model, const AlgorithmConfig& algorithm,
                             const PolicyShape& shape)
    : model_(std::move(model)) {
  acting_units_.push_back("actor");
  if (model_->value_width() > 0) acting_units_.push_back("critic");
  extras_.push_back({"chains", {model_->config().denoise_steps + 1, model_->width()}, false});
  extras_.push_back({"denoise_inds", {1}, true});
  policy_objective_ = std::make_shared<PolicyGradientObjective>(
      model_, make_policy_gradient_options(algorithm, shape.chunk, shape.max_episode_steps));
  imitation_objective_ = std::make_shared<FlowImitationObjective>(model_);
}

ActResult FlowPolicyNet::act(const UnitViews& views, const ActRequest& request) const {
  const at::NoGradGuard no_grad;
  auto sampling = model_->sampling(request.noise_level);
  if (request.deterministic) {
    sampling.method = FlowMethod::ode;
    sampling.joint = false;
  }
  const auto draws = draw_chains(request, model_->width(), model_->config(), sampling.joint);
  const auto& actor = views.at("actor");
  const auto chain =
      sample_flow_chain(model_->network(actor, request.observation), draws.initial, draws.noise, draws.index, sampling);

  ActResult result{model_->to_action(chain.action()), {}, {}, {}};
  result.logp = request.deterministic ? at::zeros({chain.action().size(0), logp_width()}, chain.action().options())
                                      : model_->flatten(chain.logp);
  if (value_width() > 0) result.value = model_->value(views.at("critic"), request.observation);
  result.extra["chains"] = chain.chain;
  result.extra["denoise_inds"] = draws.index.unsqueeze(1);
  return result;
}

at::Tensor FlowPolicyNet::value(const UnitViews& views, const Batch& observation) const {
  const at::NoGradGuard no_grad;
  return model_->value(views.at("critic"), observation);
}

at::Tensor FlowPolicyNet::logp(const UnitViews& views, const Batch& batch) const {
  const at::NoGradGuard no_grad;
  return model_->density(views.at("actor"), batch).logp;
}

std::shared_ptr<const Network> FlowPolicyNet::objective(const std::string& phase) const {
  TORCH_CHECK(phase == "policy" || phase == "sft", "a flow policy has the phases \"policy\" and \"sft\"; asked for \"",
              phase, "\"");
  return phase == "policy" ? policy_objective_ : imitation_objective_;
}

Result<std::shared_ptr<const PolicyNet>> make_flow_policy_net(const PolicyConfig& policy,
                                                              const AlgorithmConfig& algorithm,
                                                              const PolicyShape& shape) {
  auto model = FlowModel::make(policy, algorithm, shape);
  if (!model) return model.error();
  return std::shared_ptr<const PolicyNet>(std::make_shared<FlowPolicyNet>(std::move(*model), algorithm, shape));
}

}  // namespace troupe::model
