#include "model/policy/policy_net.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "model/policy/actor_critic.h"
#include "model/policy/flow_policy.h"
#include "model/policy/sac_policy.h"

namespace troupe::model {

Result<void> check_policy_sizes(const PolicyConfig& policy, const AlgorithmConfig& algorithm,
                                const PolicyShape& shape) {
  const auto wrong = [](std::string text) -> Result<void> { return Error{Errc::invalid_argument, std::move(text)}; };
  for (const auto& [key, widths] :
       {std::pair{"policy.hidden", &policy.hidden}, {"policy.critic_hidden", &policy.critic_hidden}}) {
    for (const auto width : *widths) {
      if (width < 1) return wrong(fmt::format("{} contains {}; a layer is at least 1 wide", key, width));
    }
  }
  if (shape.chunk < 1 || shape.action_dim < 1) {
    return wrong(fmt::format("a chunk of {} actions of {} numbers: both are at least 1 (env.chunk)", shape.chunk,
                             shape.action_dim));
  }
  const auto& gradient = algorithm.policy_gradient;
  if (algorithm.traits().is_off_policy()) return {};
  if (gradient.reward_level == "action" && gradient.logprob_level == Granularity::chunk && shape.chunk > 1) {
    return wrong(
        "algorithm.policy_gradient.logprob_level is chunk and reward_level is action: rewards of actions need "
        "log-probabilities of actions or tokens; or set reward_level to chunk");
  }
  if (gradient.aggregation == "trajectory" && shape.max_episode_steps < 1) {
    return wrong(
        "algorithm.policy_gradient.aggregation is trajectory; the environment has no longest episode to weigh by: use "
        "mean");
  }
  return {};
}

void PolicyNet::act_on_rows(const UnitViews&, const RowsToAct&) const {
  TORCH_CHECK(false, "this policy does not act on plain rows");
}

at::Tensor PolicyNet::logp(const UnitViews&, const Batch&) const {
  TORCH_CHECK(false, "this policy states no log-probabilities: logp_width() is ", logp_width());
}

Result<std::shared_ptr<const PolicyNet>> make_policy_net(const PolicyConfig& policy, const AlgorithmConfig& algorithm,
                                                         const PolicyShape& shape) {
  TROUPE_TRY(check_policy_sizes(policy, algorithm, shape));
  const bool is_off_policy = algorithm.traits().is_off_policy();
  if (policy.memory != PolicyMemory::none && (is_off_policy || policy.kind == PolicyKind::flow)) {
    return Error{Errc::invalid_argument,
                 fmt::format("policy.memory is {}, which policies of kind {} with algorithm.name {} do not have: none",
                             enum_name(policy.memory), enum_name(policy.kind), enum_name(algorithm.name))};
  }
  switch (policy.kind) {
    case PolicyKind::mlp:
    case PolicyKind::cnn:
      return is_off_policy ? make_sac_policy_net(policy, algorithm, shape)
                           : make_actor_critic_net(policy, algorithm, shape);
    case PolicyKind::flow:
      if (!is_off_policy) return make_flow_policy_net(policy, algorithm, shape);
      break;
    case PolicyKind::dreamzero:  // made of model and data, too: DreamZeroNet
      break;
  }
  return Error{Errc::invalid_argument, fmt::format("policy.kind is {}, which algorithm.name {} cannot train",
                                                   enum_name(policy.kind), enum_name(algorithm.name))};
}

}  // namespace troupe::model
