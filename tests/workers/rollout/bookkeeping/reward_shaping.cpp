#include "tests/workers/rollout/bookkeeping/reward_shaping.h"

namespace troupe::workers {

double RewardShaper::shape(double raw) {
  const double now = shaping_.coefficient * raw - shaping_.step_penalty;
  const double out = shaping_.is_relative ? now - last_ : now;
  last_ = now;
  return out;
}

double mix_rewards(double env_reward, double env_weight, double model_reward, double model_weight) {
  return env_weight * env_reward + model_weight * model_reward;
}

}  // namespace troupe::workers
