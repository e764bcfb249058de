#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/policy/mlp_pass.h"
#include "model/policy/sac_model.h"
#include "model/policy/spare_pool.h"
#include "model/policy/squashed_rows.h"
#include "model/shard/manual_backward.h"

namespace troupe::model {

/// Every network of a SacModel has a manual backward (MlpPass): Mlps over the state, without layer normalisation.
bool has_manual_sac(const SacModel& model);

/// Working memory of one phase for a number of rows.
struct SacWorkspace {
  SacWorkspace(const SacModel& model, std::int64_t rows, bool with_targets);
  std::int64_t rows() const { return actor.rows(); }

  MlpPass actor;
  std::vector<std::unique_ptr<MlpPass>> critics, targets;
  SquashedRows sample;
  /// [N,D+W]: state and action, what critics and what targets read
  at::Tensor input, next_input;
  /// [N,1] and [N,D+W] of each critic: d(loss) / d(value) and d(loss) / d(input)
  std::vector<at::Tensor> d_values, d_inputs;
  /// [N,2W]: d(loss) / d(outputs of the actor)
  at::Tensor d_outputs;
  /// [N]: the critics' target, or their aggregated values
  std::vector<float> value;
};

/// SacCriticObjective with a manual backward: forward through actor and targets, backward through the critics alone.
/// Networks that do not need each other run side by side (side_by_side.h). Thread-safe.
/// With N rows and Q critics, d(loss)/dQ_i = 2 (Q_i - y) / (N Q).
class ManualSacCritic final : public ManualBackward {
 public:
  /// has_manual_sac(*model) must hold.
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
  const std::shared_ptr<const SacModel> model_;
  mutable SparePool<SacWorkspace> spares_;
};

}  // namespace troupe::model
