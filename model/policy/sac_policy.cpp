#include "model/policy/sac_policy.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/random.h"
#include "model/loss/flow_matching.h"
#include "model/policy/act_by_rows.h"
#include "model/policy/manual_sac.h"
#include "model/policy/mlp_pass.h"
#include "model/policy/sac_objective.h"
#include "model/policy/squashed_rows.h"

namespace troupe::model {

struct SacPolicyNet::Acting {
  Acting(const SacModel& model, std::int64_t rows)
      : pass(model.actor_net().mlp(), rows),
        sample(rows, model.range(), model.log_std_min(), model.log_std_max()),
        noise(static_cast<std::size_t>(rows * model.action_width())) {}
  std::int64_t rows() const { return pass.rows(); }

  MlpPass pass;
  SquashedRows sample;
  std::vector<float> noise;
};

SacPolicyNet::SacPolicyNet(std::shared_ptr<const SacModel> model, const AlgorithmConfig& algorithm)
    : model_(std::move(model)), acts_on_rows_(model_->actor_net().is_plain_mlp()) {
  std::unique_ptr<const ManualBackward> critic, actor;
  if (algorithm.explicit_backward && has_manual_sac(*model_)) {
    critic = std::make_unique<ManualSacCritic>(model_);
    actor = std::make_unique<ManualSacActor>(model_);
  }
  critic_objective_ = std::make_shared<SacCriticObjective>(model_, std::move(critic));
  actor_objective_ = std::make_shared<SacActorObjective>(model_, std::move(actor));
}

SacPolicyNet::~SacPolicyNet() = default;

void SacPolicyNet::act_on_rows(const UnitViews& views, const RowsToAct& rows) const {
  const auto acting = spares_.borrow(rows.rows, [&] { return std::make_unique<Acting>(*model_, rows.rows); });
  const float* const outputs =
      acting->pass.forward(views.at("actor"), rows.state, rows.state_dim).const_data_ptr<float>();
  if (rows.deterministic) return acting->sample.mode(outputs, rows.action, model_->action_width());
  draw_keyed_noise(rows.seed, rng_stream::policy_action, rows.keys, acting->noise);
  acting->sample.forward(outputs, acting->noise.data(), rows.action, model_->action_width());
}

ActResult SacPolicyNet::act(const UnitViews& views, const ActRequest& request) const {
  const at::NoGradGuard no_grad;
  if (auto acted = act_by_rows(*this, model_->action_width(), views, request)) return *std::move(acted);
  const auto [mean, log_std] = model_->distribution(views.at("actor"), request.observation);
  if (request.deterministic) return {squashed_mode(mean, model_->range()), {}, {}, {}};
  const auto noise = keyed_noise(request.seed, rng_stream::policy_action, request.keys, {model_->action_width()});
  return {sample_squashed(mean, log_std, noise, model_->range()).action, {}, {}, {}};
}

at::Tensor SacPolicyNet::value(const UnitViews&, const Batch&) const {
  TORCH_CHECK(false, "soft actor-critic has no state value for rollout workers");
}

std::shared_ptr<const Network> SacPolicyNet::objective(const std::string& phase) const {
  TORCH_CHECK(phase == "critic" || phase == "actor",
              "soft actor-critic has the phases \"critic\" and \"actor\"; asked for \"", phase, "\"");
  return phase == "critic" ? critic_objective_ : actor_objective_;
}

Result<std::shared_ptr<const PolicyNet>> make_sac_policy_net(const PolicyConfig& policy,
                                                             const AlgorithmConfig& algorithm,
                                                             const PolicyShape& shape) {
  auto model = SacModel::make(policy, algorithm, shape);
  if (!model) return model.error();
  return std::shared_ptr<const PolicyNet>(std::make_shared<SacPolicyNet>(std::move(*model), algorithm));
}

}  // namespace troupe::model
