#pragma once

namespace troupe {

/// How an environment's raw reward becomes the one that is trained on (rl.md 1.6).
struct RewardShaping {
  double coefficient = 1;    ///< times the raw reward
  double step_penalty = 0;   ///< taken off at every step
  bool is_relative = false;  ///< the change since the step before, so that a success that stays pays once
};

/// The shaped rewards of one environment. Not thread-safe.
///     x_t = coefficient raw_t - step_penalty     r_t = x_t, or x_t - x_{t-1} with x_0 = 0 before the first step when relative
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

}  // namespace troupe
