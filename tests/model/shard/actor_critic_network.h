#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/namespaces.h"
#include "model/shard/manual_backward.h"
#include "model/shard/network.h"

namespace troupe::model {

/// A small actor-critic: units "actor" (group actor), "critic" (group critic), "target" (the moving average of
/// critic) and "temperature" (group temperature), with losses over
///     a(s) = tanh(s W + b),  Q(s, a) = tanh(s U + a V) c
/// critic: mean((Q(s, action) - (reward + 0.9 Q_target(s, action)))^2)
/// actor:  mean(exp(t) |a(s)|^2 - Q(s, a(s))) + t^2
/// policy: both at once.
class ActorCriticNetwork final : public Network {
 public:
  enum class Loss { critic, actor, policy };
  /// With `declares`, units() says `trainable = false` of units that this loss only uses.
  explicit ActorCriticNetwork(Loss loss, bool declares = true);

  const std::vector<UnitSpec>& units() const override { return units_; }
  Carry prologue(const ParamView& params, const Batch& batch) const override;
  at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry, const Batch& batch) const override;
  Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const override;

 private:
  bool trains_actor() const { return loss_ != Loss::critic; }
  bool trains_critic() const { return loss_ != Loss::actor; }
  const Loss loss_;
  std::vector<UnitSpec> units_;
};

/// States, actions and rewards of micro-batch `index`, a function of the index alone.
Batch actor_critic_batch(std::int64_t index, std::int64_t samples = 4);

/// loss = mean((tanh(x W) u - y)^2) in two units, with the backward written by hand as well.
class TwoLayerNetwork final : public Network, public ManualBackward {
 public:
  TwoLayerNetwork();
  const std::vector<UnitSpec>& units() const override { return units_; }
  Carry prologue(const ParamView& params, const Batch& batch) const override;
  at::Tensor block(std::int64_t, const ParamView&, const Carry& carry, const Batch&) const override { return carry.x; }
  Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const override;
  const ManualBackward* manual_backward() const override { return this; }
  MicroResult run(const std::vector<ParamView>& params, const Batch& batch, double weight,
                  const std::vector<ParamView>& gradients) const override;

  mutable std::atomic<int> manual_runs = 0;

 private:
  std::vector<UnitSpec> units_;
};

}  // namespace troupe::model
