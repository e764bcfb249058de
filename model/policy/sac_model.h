#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/algorithm_config.h"
#include "configs/policy_config.h"
#include "model/loss/sac_loss.h"
#include "model/policy/observation_net.h"
#include "model/policy/policy_shape.h"
#include "model/policy/squashed_gaussian.h"
#include "model/shard/network.h"

namespace troupe::model {

/// The networks of soft actor-critic (arXiv:1801.01290, arXiv:1812.05905) as functions over parameter views. A chunk of
/// actions is one action of W = K*A numbers. Shape legend: N batch rows, Q critics. f32; differentiable by autograd.
/// Immutable, thread-safe.
///
/// Units, in the order of both objectives' chain:
///     "actor"        group actor        observation -> mean and raw log_std, [N,2W]
///     "target"       group critic       follows "critic" (UnitSpec::average_of); not trained
///     "critic"       group critic       Q networks over (observation, action), side by side in one unit
///     "temperature"  group temperature  one number, of which alpha is a function; without parameters
///                                       when algorithm.sac.temperature is fixed
class SacModel {
 public:
  /// Places in units().
  static constexpr std::size_t kActor = 0, kTarget = 1, kCritic = 2, kTemperature = 3;

  /// Errors: invalid_argument for discrete actions, bounds that are missing or not finite, another distribution than
  /// squashed_gaussian, a learned temperature that starts at 0, more networks in target_subset than there are; names
  /// the key. Else as ObservationNet::make.
  static Result<std::shared_ptr<const SacModel>> make(const PolicyConfig& policy, const AlgorithmConfig& algorithm,
                                                      const PolicyShape& shape);

  const std::vector<UnitSpec>& units() const noexcept { return units_; }
  const SacConfig& config() const noexcept { return config_; }
  std::int64_t action_width() const noexcept { return range_.scale.numel(); }
  std::int64_t critics() const noexcept { return static_cast<std::int64_t>(online_.size()); }
  const ActionRange& range() const noexcept { return range_; }
  /// H_target: config's, or minus the number of action dimensions (W).
  double target_entropy() const noexcept { return target_entropy_; }
  CriticAggregation target_aggregation() const noexcept { return config_.target_aggregation; }
  CriticAggregation actor_aggregation() const noexcept { return config_.actor_aggregation; }
  TemperatureKind temperature_kind() const noexcept { return config_.temperature; }
  /// lo and hi of squash_log_std.
  double log_std_min() const noexcept { return log_std_min_; }
  double log_std_max() const noexcept { return log_std_max_; }

  struct Distribution {
    /// [N,W], of the Gaussian before tanh; log_std is already squashed into its range
    at::Tensor mean, log_std;
  };
  Distribution distribution(const ParamView& actor, const Batch& observation) const;
  /// The two halves of the actor's output.
  Distribution split(const at::Tensor& outputs) const;
  /// Reparametrised sample of standard normal noise [N,W]; logp unreduced.
  SquashedAction sample(const ParamView& actor, const Batch& observation, const at::Tensor& noise) const;
  /// Q(s,a) of every network, [N,Q]; `action` [N,W] in the environment's units.
  at::Tensor values(const ParamView& critic, const Batch& observation, const at::Tensor& action) const;
  at::Tensor target_values(const ParamView& target, const Batch& observation, const at::Tensor& action) const;
  /// Scalar.
  at::Tensor alpha(const ParamView& temperature) const;
  static constexpr const char* kTemperatureParam = "temperature.value";

  const ObservationNet& actor_net() const noexcept { return actor_; }
  const std::vector<ObservationNet>& online_nets() const noexcept { return online_; }
  const std::vector<ObservationNet>& target_nets() const noexcept { return target_; }
  /// The columns of a state [N,D] that the actor reads, contiguous.
  at::Tensor actor_rows(const at::Tensor& state) const;
  /// What a Q network reads: the state with the action behind it, the images and the texts.
  Batch critic_input(const Batch& observation, const at::Tensor& action) const;
  /// The observation behind the keys rl_keys::kNextState and kNextImagePrefix of a batch of transitions, with the texts
  /// of the present one.
  Batch next_observation(const Batch& batch) const;

 private:
  SacModel(const AlgorithmConfig& algorithm, const PolicyShape& shape, ObservationNet actor,
           std::vector<ObservationNet> online, std::vector<ObservationNet> target, double log_std_min,
           double log_std_max);

  SacConfig config_;
  ActionRange range_;
  double log_std_min_, log_std_max_, target_entropy_;
  /// of a Batch
  std::vector<std::string> image_keys_, next_image_keys_, text_keys_;
  bool has_state_;
  ObservationNet actor_;
  std::vector<ObservationNet> online_, target_;
  std::vector<UnitSpec> units_;
};

}  // namespace troupe::model
