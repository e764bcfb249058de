#pragma once

#include <cstdint>
#include <memory>

#include "env/env_options.h"
#include "env/env_spec.h"
#include "env/reward_model.h"

namespace troupe::env {

/// `goal_distance`: pays for coming nearer to a goal, without changing which policy is best. With d the length of the
/// vector from goal to thing that lies in an observation, and the potential phi = -d,
///     r = gamma phi(s') - phi(s),   phi(s') = 0 where the episode terminated
/// gamma is reward_gamma() of the algorithm: with another one the sum over an episode pays for staying far away.
/// Options: `field` (state) names the observation's field, `first` the vector's first number in it, `count` how many
/// there are.
/// Source: Ng, Harada, Russell 1999, "Policy invariance under reward transformations", theorem 1.
class GoalDistance final : public RewardModel {
 public:
  /// Errors: invalid_argument (options; a field that is not there, holds no f32 or f64, or fewer numbers).
  static Result<std::shared_ptr<const RewardModel>> make(const NamedOptions& options, const EnvSpec& spec,
                                                         double gamma);
  /// Numbers [first, first + count) of field `field`.
  GoalDistance(std::size_t field, EnvDType dtype, std::int64_t first, std::int64_t count, double gamma)
      : field_(field), dtype_(dtype), first_(first), count_(count), gamma_(gamma) {}

  bool reads_observations() const noexcept override { return true; }
  Result<double> reward(const RewardStep& step) const override;

 private:
  double distance(const std::byte* field) const;

  const std::size_t field_;
  const EnvDType dtype_;
  const std::int64_t first_, count_;
  const double gamma_;
};

}  // namespace troupe::env
