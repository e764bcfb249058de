#include "model/policy/policy_net.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "model/policy/actor_critic.h"
#include "model/policy/flow_policy.h"
#include "model/policy/sac_policy.h"

namespace troupe::model {
namespace {

using Factory = Result<std::shared_ptr<const PolicyNet>> (*)(const PolicyConfig&, const AlgorithmConfig&,
                                                             const PolicyShape&);

/// Who makes the networks of a kind of policy, for soft actor-critic and for on-policy algorithms; null: nobody.
struct Maker {
  const char* kind;
  Factory on_policy, soft;
};
constexpr Maker kMakers[] = {
    {"mlp", make_actor_critic_net, make_sac_policy_net},
    {"cnn", make_actor_critic_net, make_sac_policy_net},
    {"flow", make_flow_policy_net, nullptr},
};

Result<void> check_sizes(const PolicyConfig& policy, const AlgorithmConfig& algorithm, const PolicyShape& shape) {
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
  if (algorithm.name == "sac") return {};
  if (gradient.reward_level == "action" && gradient.logprob_level == "chunk" && shape.chunk > 1) {
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

}  // namespace

at::Tensor PolicyNet::logp(const UnitViews&, const Batch&) const {
  TORCH_CHECK(false, "this policy states no log-probabilities: logp_width() is ", logp_width());
}

Result<std::shared_ptr<const PolicyNet>> make_policy_net(const PolicyConfig& policy, const AlgorithmConfig& algorithm,
                                                         const PolicyShape& shape) {
  if (auto sizes = check_sizes(policy, algorithm, shape); !sizes) return sizes.error();
  const bool is_soft = algorithm.name == "sac";
  for (const auto& maker : kMakers) {
    if (policy.kind != maker.kind) continue;
    const Factory make = is_soft ? maker.soft : maker.on_policy;
    if (make != nullptr) return make(policy, algorithm, shape);
    return Error{Errc::invalid_argument,
                 fmt::format("policy.kind is {}, which algorithm.name {} cannot train", policy.kind, algorithm.name)};
  }
  return Error{Errc::invalid_argument, fmt::format("policy.kind is {}; it is mlp, cnn or flow", policy.kind)};
}

}  // namespace troupe::model
