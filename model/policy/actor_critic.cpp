#include "model/policy/actor_critic.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numbers>

#include "model/loss/rl_keys.h"
#include "model/policy/act_by_rows.h"
#include "model/policy/manual_policy_gradient.h"

namespace troupe::model {

Result<std::shared_ptr<const PolicyNet>> make_actor_critic_net(const PolicyConfig& policy,
                                                               const AlgorithmConfig& algorithm,
                                                               const PolicyShape& shape) {
  auto model = ActorCritic::make(policy, algorithm, shape);
  if (!model) return model.error();
  return std::shared_ptr<const PolicyNet>(std::make_shared<ActorCriticNet>(std::move(*model), algorithm, shape));
}

Result<std::shared_ptr<const ActorCritic>> ActorCritic::make(const PolicyConfig& policy,
                                                             const AlgorithmConfig& algorithm,
                                                             const PolicyShape& shape) {
  auto head = ActionHead::make(policy, shape);
  if (!head) return head.error();
  // actions near zero at first, whatever the state
  auto actor = ObservationNet::make(
      policy, policy.actor_vision(), seen_by_actor(shape),
      make_mlp_shape(policy, "actor", 0, policy.hidden, head->outputs(), 0.01 * std::numbers::sqrt2));
  if (!actor) return actor.error();
  if (!algorithm.traits().has_critic()) {
    return std::shared_ptr<const ActorCritic>(new ActorCritic(std::move(*actor), std::nullopt, *head));
  }
  const std::int64_t values = algorithm.policy_gradient.reward_level == "action" ? shape.chunk : 1;
  auto critic = ObservationNet::make(policy, policy.critic_vision(), seen_by_critic(shape),
                                     make_mlp_shape(policy, "critic", 0, policy.critic_layers(), values, 1.0));
  if (!critic) return critic.error();
  return std::shared_ptr<const ActorCritic>(new ActorCritic(std::move(*actor), std::move(*critic), *head));
}

ActorCritic::ActorCritic(ObservationNet actor, std::optional<ObservationNet> critic, const ActionHead& head)
    : actor_(std::move(actor)), critic_(std::move(critic)), head_(head) {
  auto params = actor_.params();
  for (auto& param : head_.params()) params.push_back(std::move(param));
  units_.push_back(make_group_unit("actor", std::move(params)));
  if (critic_) units_.push_back(make_group_unit("critic", critic_->params()));
  units_.push_back(make_loss_unit());
  if (actor_.has_memory()) memory_.push_back({"actor", actor_.memory_width()});
  if (critic_ && critic_->has_memory()) memory_.push_back({"critic", critic_->memory_width()});
}

ActionDensity ActorCritic::density(const ParamView& actor, const Batch& batch) const {
  return head_.density(actor, actor_.forward(actor, batch), batch.at(rl_keys::kAction), mask(batch));
}

at::Tensor ActorCritic::mask(const Batch& batch) const {
  if (!head_.is_masked()) return {};
  const auto& state = batch.at(rl_keys::kState);
  return state.narrow(1, state.size(1) - head_.choices(), head_.choices());
}

at::Tensor ActorCritic::value(const ParamView& critic, const Batch& batch) const {
  return critic_->forward(critic, batch);
}

bool ActorCritic::has_manual_backward() const { return actor_.is_plain_mlp() && (!critic_ || critic_->is_plain_mlp()); }

ActorCriticNet::ActorCriticNet(std::shared_ptr<const ActorCritic> model, const AlgorithmConfig& algorithm,
                               const PolicyShape& shape)
    : model_(std::move(model)), objective_([&] {
        const auto options = make_policy_gradient_options(algorithm, shape.chunk, shape.max_episode_steps);
        std::unique_ptr<const ManualBackward> manual_backward;
        if (algorithm.explicit_backward && model_->has_manual_backward()) {
          manual_backward = std::make_unique<ManualPolicyGradient>(model_, options);
        }
        return std::make_shared<PolicyGradientObjective>(model_, options, std::move(manual_backward));
      }()) {
  acting_units_.push_back("actor");
  if (model_->critic()) acting_units_.push_back("critic");
}

void ActorCriticNet::act_on_rows(const UnitViews& views, const RowsToAct& rows) const {
  const auto run = [&](const Mlp& mlp, SparePool<MlpPass>& spares, const ParamView& view, const auto& use) {
    const auto pass = spares.borrow(rows.rows, [&] { return std::make_unique<MlpPass>(mlp, rows.rows); });
    use(pass->forward(view, rows.state, rows.state_dim).template const_data_ptr<float>());
  };
  if (rows.action != nullptr) {
    const ParamView& view = views.at("actor");
    const ActionHead& head = model_->head();
    // the mask is the state's last columns
    run(model_->actor().mlp(), actor_spares_, view, [&](const float* outputs) {
      head.draw(view, rows.rows,
                {.outputs = outputs,
                 .mask = head.is_masked() ? rows.state + rows.state_dim - head.choices() : nullptr,
                 .mask_stride = rows.state_dim,
                 .seed = rows.seed,
                 .keys = rows.keys,
                 .deterministic = rows.deterministic,
                 .action = rows.action,
                 .logp = rows.logp});
    });
  }
  if (rows.value == nullptr) return;
  run(model_->critic()->mlp(), critic_spares_, views.at("critic"),
      [&](const float* values) { std::copy_n(values, rows.rows * value_width(), rows.value); });
}

ActResult ActorCriticNet::act(const UnitViews& views, const ActRequest& request) const {
  const at::NoGradGuard no_grad;
  if (auto acted = act_by_rows(*this, model_->head().action_width(), views, request)) return *std::move(acted);
  ActResult result;
  const auto& actor = views.at("actor");
  auto acted = model_->actor().forward_remembering(actor, request.observation);
  auto sample = model_->head().sample(actor, acted.outputs, request.seed, request.keys, request.deterministic,
                                      model_->mask(request.observation));
  result.action = std::move(sample.action);
  result.logp = std::move(sample.logp);
  if (acted.memory.defined()) result.memory["actor"] = std::move(acted.memory);
  if (!model_->critic()) return result;
  auto valued = model_->critic()->forward_remembering(views.at("critic"), request.observation);
  result.value = std::move(valued.outputs);
  if (valued.memory.defined()) result.memory["critic"] = std::move(valued.memory);
  return result;
}

at::Tensor ActorCriticNet::value(const UnitViews& views, const Batch& observation) const {
  TORCH_CHECK(model_->critic().has_value(), "this policy has no critic");
  const at::NoGradGuard no_grad;
  if (auto values = value_by_rows(*this, views, observation)) return *std::move(values);
  return model_->critic()->forward(views.at("critic"), observation);
}

at::Tensor ActorCriticNet::logp(const UnitViews& views, const Batch& batch) const {
  const at::NoGradGuard no_grad;
  return model_->density(views.at("actor"), batch).logp;
}

std::shared_ptr<const Network> ActorCriticNet::objective(const std::string& phase) const {
  TORCH_CHECK(phase == "policy", "an on-policy policy has the phase \"policy\"; asked for \"", phase, "\"");
  return objective_;
}

}  // namespace troupe::model
