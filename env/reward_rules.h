#pragma once

#include <memory>

#include "env/reward_model.h"

namespace troupe::env {

/// How the reward that is trained on is made of the environment's own reward R_t (env.reward):
///     r_t = coef R_t, or with `relative` coef (R_t - R_(t-1)), R = 0 before an episode's first step
///           - step_penalty + weight m_t
/// m_t is the model's reward; with `is_terminal` only of the step that ends an episode. As made: r_t = R_t.
struct RewardRules {
  double coef = 1;
  double step_penalty = 0;
  bool relative = false;
  /// Null: none.
  std::shared_ptr<const RewardModel> model = {};
  bool is_terminal = false;
  double weight = 1;

  bool is_own() const { return coef == 1 && step_penalty == 0 && !relative && !model; }
};

}  // namespace troupe::env
