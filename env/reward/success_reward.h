#pragma once

#include <fmt/format.h>

#include <memory>

#include "env/env_options.h"
#include "env/env_spec.h"
#include "env/reward_model.h"

namespace troupe::env {

/// `success`: 1 at a step after which the task is solved, else 0. With env.reward.coef 0 a task with a dense reward is
/// trained on its success alone.
class SuccessReward final : public RewardModel {
 public:
  /// Errors: invalid_argument (an environment that does not know success; options).
  static Result<std::shared_ptr<const RewardModel>> make(const NamedOptions& options, const EnvSpec& spec, double) {
    TROUPE_TRY(check_options("it", options, {}));
    if (!spec.has_success) return invalid_argument(fmt::format("{} does not say when its task is solved", spec.id));
    return std::shared_ptr<const RewardModel>(std::make_shared<SuccessReward>());
  }
  Result<double> reward(const RewardStep& step) const override { return step.is_success ? 1.0 : 0.0; }
};

}  // namespace troupe::env
