#pragma once

namespace troupe::workers {

/// How an environment's raw reward becomes the one that is trained on.
struct RewardShaping {
  /// Times the raw reward.
  double coefficient = 1;
  /// Taken off at every step.
  double step_penalty = 0;
  /// The change since the step before, so that a success that stays pays once.
  bool is_relative = false;
};

/// The shaped rewards of one environment; with is_relative a success that stays pays once. Not thread-safe.
///     x_t = coefficient raw_t - step_penalty
///     r_t = x_t, or with is_relative x_t - x_{t-1}, where x_0 = 0 before the first step
///
class RewardShaper {
 public:
  explicit RewardShaper(const RewardShaping& shaping) : shaping_(shaping) {}
  double shape(double raw);
  /// An episode begins.
  void restart() { last_ = 0; }

 private:
  RewardShaping shaping_;
  double last_ = 0;
};

/// Mixes in a reward model's: env_weight r_env + model_weight r_model.
double mix_rewards(double env_reward, double env_weight, double model_reward, double model_weight);

}  // namespace troupe::workers
