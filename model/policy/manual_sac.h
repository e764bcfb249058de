#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/policy/mlp_pass.h"
#include "model/policy/sac_model.h"
#include "model/policy/spare_pool.h"
#include "model/shard/manual_backward.h"

namespace troupe::model {

/// Every network of a SacModel has a manual backward (MlpPass): Mlps over the state, without layer normalisation.
bool has_manual_sac(const SacModel& model);

/// Working memory of one phase for a number of rows: a pass of every network, and the critics' inputs.
class SacWorkspace {
 public:
  SacWorkspace(const SacModel& model, std::int64_t rows, bool with_targets);
  std::int64_t rows() const { return actor.rows(); }
  /// [state, action] of every row, for critics and targets.
  const at::Tensor& critic_input(const at::Tensor& state, const at::Tensor& action);
  /// Q of every network, [rows,Q].
  static at::Tensor values(std::vector<std::unique_ptr<MlpPass>>& passes, const ParamView& view,
                           const at::Tensor& input);

  MlpPass actor;
  std::vector<std::unique_ptr<MlpPass>> critics, targets;
  /// [rows, D+W]: what critic_input() returns, overwritten by each call
  at::Tensor input;
};

/// SacCriticObjective with a manual backward: forward through actor and targets, backward through the critics alone.
/// Thread-safe.
/// With N rows and Q critics, d(loss)/dQ_i = 2 (Q_i - y) / (N Q).
class ManualSacCritic final : public ManualBackward {
 public:
  /// `model` must has_explicit_sac().
  explicit ManualSacCritic(std::shared_ptr<const SacModel> model) : model_(std::move(model)) {}
  MicroResult run(const std::vector<ParamView>& params, const Batch& batch, double weight,
                  const std::vector<ParamView>& gradients) const override;

 private:
  const std::shared_ptr<const SacModel> model_;
  mutable SparePool<SacWorkspace> spares_;
};

/// SacActorObjective with a manual backward: no gradient of the critics' weights is ever formed. Thread-safe.
class ManualSacActor final : public ManualBackward {
 public:
  explicit ManualSacActor(std::shared_ptr<const SacModel> model) : model_(std::move(model)) {}
  MicroResult run(const std::vector<ParamView>& params, const Batch& batch, double weight,
                  const std::vector<ParamView>& gradients) const override;

 private:
  /// d(loss)/d(outputs of the actor) from d(loss)/d(action) and the d(loss)/d(logp) that is the same for all.
  at::Tensor output_gradient(const at::Tensor& outputs, const SquashedAction& sample, const at::Tensor& noise,
                             const at::Tensor& d_action, double d_logp) const;

  const std::shared_ptr<const SacModel> model_;
  mutable SparePool<SacWorkspace> spares_;
};

}  // namespace troupe::model
