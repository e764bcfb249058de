#pragma once

#include <array>

#include "base/enum_names.h"

namespace troupe::configs {

/// How a policy learns from experience (`algorithm.name`; docs/rl.md#algorithms).
enum class Algorithm { ppo, grpo, decoupled_ppo, vtrace, sac };
constexpr auto enum_names(Algorithm) { return std::array{"ppo", "grpo", "decoupled_ppo", "vtrace", "sac"}; }

/// Where advantages come from: a critic's values, the returns of a group that began in one state, or values corrected
/// by importance weights (V-trace).
enum class AdvantageSource { critic, group, trace };

/// Which actor loss. ppo: clipped ratio; decoupled: against the proximal policy; vtrace: -adv logp, with advantages
/// that hold their importance weights (model/loss/policy_gradient_loss.h).
enum class ActorLoss { ppo, decoupled, vtrace };

/// What differs by algorithm. One row each in traits_of().
struct AlgorithmTraits {
  /// Trains on replayed transitions; the others train on the rollouts of one iteration.
  bool is_off_policy = false;
  /// Knows that a rollout may come from an older policy: rollout.staleness may be above 0.
  bool takes_stale = false;
  AdvantageSource advantages = AdvantageSource::critic;
  ActorLoss actor_loss = ActorLoss::ppo;

  /// Whether it compares the returns of env.group_size environments; it has no critic then.
  constexpr bool compares_groups() const { return advantages == AdvantageSource::group; }
};

constexpr AlgorithmTraits traits_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ppo:
      break;
    case Algorithm::grpo:
      return {.advantages = AdvantageSource::group};
    case Algorithm::decoupled_ppo:
      return {.takes_stale = true, .actor_loss = ActorLoss::decoupled};
    case Algorithm::vtrace:
      return {.takes_stale = true, .advantages = AdvantageSource::trace, .actor_loss = ActorLoss::vtrace};
    case Algorithm::sac:
      return {.is_off_policy = true};
  }
  return {};
}

}  // namespace troupe::configs
