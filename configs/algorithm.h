#pragma once

#include <array>

#include "base/enum_names.h"

namespace troupe::configs {

/// How a policy learns from experience (`algorithm.name`; docs/rl.md#algorithms).
enum class Algorithm { ppo, grpo, decoupled_ppo, vtrace, sac };
constexpr auto enum_names(Algorithm) { return std::array{"ppo", "grpo", "decoupled_ppo", "vtrace", "sac"}; }

/// The critic that is trained with the policy: none, one network of states, or several of states and actions
/// (algorithm.sac.critics).
enum class CriticKind { none, value, q };
constexpr auto enum_names(CriticKind) { return std::array{"none", "value", "q"}; }

/// How old the experience of the algorithm may be. none: collected with the weights that are trained; bounded: at most
/// rollout.staleness versions older; any: experience is replayed.
enum class Staleness { none, bounded, any };
constexpr auto enum_names(Staleness) { return std::array{"none", "bounded", "any"}; }

/// How the algorithm uses demonstrations. imitated: kind sft trains its policy on them, and kind rl goes on from there;
/// replayed: batches hold recorded transitions beside its own (algorithm.demonstration_share).
enum class DemonstrationUse { imitated, replayed };
constexpr auto enum_names(DemonstrationUse) { return std::array{"imitated", "replayed"}; }

/// Where advantages come from: a critic's values, the returns of a group that began in one state, or values corrected
/// by importance weights (V-trace).
enum class AdvantageSource { none, critic, group, trace };
constexpr auto enum_names(AdvantageSource) { return std::array{"none", "critic", "group", "trace"}; }

/// Which actor loss. ppo: clipped ratio; decoupled: against the proximal policy; vtrace: -adv logp, with advantages
/// that hold their importance weights (model/loss/policy_gradient_loss.h).
enum class ActorLoss { ppo, decoupled, vtrace };

/// What differs by algorithm. One row each in traits_of(); docs/config.md prints it.
struct AlgorithmTraits {
  CriticKind critic = CriticKind::value;
  Staleness staleness = Staleness::none;
  DemonstrationUse demonstrations = DemonstrationUse::imitated;
  AdvantageSource advantages = AdvantageSource::critic;
  ActorLoss actor_loss = ActorLoss::ppo;

  /// Trains on replayed transitions; the others train on the rollouts of one iteration.
  constexpr bool is_off_policy() const { return staleness == Staleness::any; }
  /// Whether it compares the returns of env.group_size environments.
  constexpr bool compares_groups() const { return advantages == AdvantageSource::group; }
  constexpr bool has_critic() const { return critic != CriticKind::none; }
};

constexpr AlgorithmTraits traits_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ppo:
      break;
    case Algorithm::grpo:
      return {.critic = CriticKind::none, .advantages = AdvantageSource::group};
    case Algorithm::decoupled_ppo:
      return {.staleness = Staleness::bounded, .actor_loss = ActorLoss::decoupled};
    case Algorithm::vtrace:
      return {.staleness = Staleness::bounded, .advantages = AdvantageSource::trace, .actor_loss = ActorLoss::vtrace};
    case Algorithm::sac:
      return {.critic = CriticKind::q,
              .staleness = Staleness::any,
              .demonstrations = DemonstrationUse::replayed,
              .advantages = AdvantageSource::none};
  }
  return {};
}

}  // namespace troupe::configs
