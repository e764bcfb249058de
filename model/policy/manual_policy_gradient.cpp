#include "model/policy/manual_policy_gradient.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "model/loss/rl_keys.h"
#include "model/policy/actor_critic.h"
#include "model/policy/side_by_side.h"

namespace troupe::model {
namespace {

at::Tensor plain_rows(const at::Tensor& x) { return x.to(at::kFloat).contiguous(); }

}  // namespace

/// of_actor(), and of_critic() where there is a critic, side by side.
template <class Actor, class Critic>
void ManualPolicyGradient::both(const Workspace& work, const Actor& of_actor, const Critic& of_critic) {
  side_by_side(work.critic == nullptr ? 1 : 2, work.actor,
               [&](std::int64_t part) { part == 0 ? of_actor() : of_critic(); });
}

ManualPolicyGradient::Workspace::Workspace(const ActorCritic& model, const PolicyGradientOptions& options,
                                           std::int64_t rows)
    : actor(model.actor().mlp(), rows),
      head(model.head(), rows),
      critic(model.critic() ? std::make_unique<MlpPass>(model.critic()->mlp(), rows) : nullptr),
      loss(options, rows, model.logp_width(), model.value_width()) {}

ManualPolicyGradient::ManualPolicyGradient(std::shared_ptr<const ActorCritic> model,
                                           const PolicyGradientOptions& options)
    : model_(std::move(model)), options_(options) {}

MicroResult ManualPolicyGradient::run(const std::vector<ParamView>& params, const Batch& batch, double weight,
                                      const std::vector<ParamView>& gradients) const {
  const at::NoGradGuard no_grad;
  TORCH_CHECK(params.size() == model_->units().size() && gradients.size() == params.size(), "views of ", params.size(),
              " and gradients of ", gradients.size(), " units; the chain has ", model_->units().size());
  const auto state = plain_rows(model_->actor().state(batch));
  const std::int64_t rows = state.size(0);
  const auto work = spares_.borrow(rows, [&] { return std::make_unique<Workspace>(*model_, options_, rows); });

  const auto critic_state = work->critic ? plain_rows(model_->critic()->state(batch)) : at::Tensor();
  const auto mask = model_->mask(batch);
  auto inputs = policy_gradient_inputs(batch);
  if (options_.kl_beta == 0) inputs.reference_logp = at::Tensor();
  work->loss.begin(std::move(inputs), weight);

  const auto& d = work->loss.gradients();
  const auto actor_backward = [&] {
    if (gradients[0].tensors().empty()) return;
    work->actor.backward(params[0], state, work->head.backward(d.logp, d.entropy, gradients[0]), &gradients[0]);
  };
  const auto critic_backward = [&] {
    if (!gradients[1].tensors().empty()) work->critic->backward(params[1], critic_state, d.value, &gradients[1]);
  };
  // neither waits for the other
  both(
      *work,
      [&] {
        work->head.forward(params[0], work->actor.forward(params[0], state), plain_rows(batch.at(rl_keys::kAction)),
                           mask.defined() ? plain_rows(mask) : mask);
        if (work->loss.actor(work->head.logp(), work->head.entropy())) actor_backward();
      },
      [&] {
        if (work->loss.critic(work->critic->forward(params[1], critic_state))) critic_backward();
      });
  if (auto result = work->loss.result()) return std::move(*result);
  auto result = work->loss.by_autograd();
  both(*work, actor_backward, critic_backward);
  return result;
}

}  // namespace troupe::model
