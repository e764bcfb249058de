#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "configs/model_config.h"
#include "model/loss/policy_gradient_loss.h"
#include "model/policy/policy_net.h"
#include "model/wan/dit.h"
#include "model/wan/infer/noise_levels.h"

namespace troupe::model {

/// Extras of DreamZeroNet, in a batch behind rl_keys::kExtraPrefix; all are of the step that drew.
namespace dreamzero_extra {
inline constexpr char kVideo[] = "video";      ///< f32 [N,Cz,nfpb,h,w], before the step
inline constexpr char kActions[] = "actions";  ///< f32 [N,napb,D], before the step
inline constexpr char kNext[] = "next";        ///< f32 [N,napb,D], as drawn
inline constexpr char kStep[] = "step";        ///< i64 [N,1]; -1 where none drew
}  // namespace dreamzero_extra

/// objective("policy") of DreamZeroNet: the transformer's training forward over windows of one or several policy calls,
/// the density of each row's drawn step (action_density.h), and the policy gradient's loss of it. Rows may be at
/// different steps. Units, programs and carry are DitNetwork's, but that all units are of group "actor". The loss has a
/// program where it is the clipped objective alone (is_clipped_alone); else the head, which holds it, runs by autograd.
///
/// Inputs: DitNetwork's, in which a row is a block whose timestep ids are its step; kSlots; the extras of DreamZeroNet;
/// kFiniteRows; rl_keys::kNoiseLevel; and what policy_gradient_inputs takes. Of a block's actions the first K and of
/// their columns the first A count; the others take no part.
/// Outputs: loss and metrics of policy_gradient_loss, without a critic; the entropy, which no weight changes, counts as
/// 0. Predictions as DitNetwork. Densities and loss are f32 (f64 for f64) whatever the network's dtype.
/// Errors: throws c10::Error on a missing tensor or a shape that does not fit. Stateless and thread-safe.
class DitPolicyNetwork final : public Network {
 public:
  /// bool [N]: rows whose stored numbers are finite. The log-probabilities of others are NaN, so that the loss leaves
  /// them out, and have no gradient; what the transformer is given of them should be finite.
  static constexpr const char* kFiniteRows = "finite_rows";
  /// i64 [N]: each row's block, counted through all windows (WindowedRows::slots). Absent with windows of one block,
  /// which are the rows.
  static constexpr const char* kSlots = "slots";

  /// `max_blocks`: of a window. `levels`: those of the policy's calls. `action_dim`: A; options.chunk is K.
  DitPolicyNetwork(const ModelConfig& model, std::int64_t max_blocks, NoiseLevels levels, std::int64_t action_dim,
                   const PolicyGradientOptions& options);
  ~DitPolicyNetwork() override;

  const std::vector<UnitSpec>& units() const override { return units_; }
  Carry prologue(const ParamView& params, const Batch& batch) const override { return dit_.prologue(params, batch); }
  at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry, const Batch& batch) const override {
    return dit_.block(index, params, carry, batch);
  }
  BoundProgram unit_program(std::size_t unit, const ParamView& params, const Carry& carry, const Batch& batch,
                            RecomputeLevel level, const Differentiated& differentiated) const override;
  BoundProgram loss_program(const std::vector<at::Tensor>& velocities, const Batch& batch) const override;
  Outputs outputs(const std::vector<at::Tensor>& velocities, const std::vector<at::Tensor>& losses,
                  const Batch& batch) const override;
  Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const override;

  /// L = K*A.
  std::int64_t logp_width() const { return options_.chunk * action_dim_; }
  /// What counts of a block's actions [N,napb,D]: [N,L].
  at::Tensor counted(const at::Tensor& of_block) const;
  /// Log-probabilities [N,L] of a batch by the whole chain. Records no gradient.
  at::Tensor logp(const UnitViews& views, const Batch& batch) const;

 private:
  /// [N,napb,D], of the blocks that rows are.
  static at::Tensor of_rows(const at::Tensor& velocity, const Batch& batch);
  /// [N,L], from the velocities of the actions [R,blocks*napb,D].
  at::Tensor density(const at::Tensor& velocity, const Batch& batch) const;
  /// What the loss' program reads, in `dtype`.
  Batch loss_data(const Batch& batch, at::ScalarType dtype) const;
  /// Loss and metrics of those velocities, added to what is predicted.
  void add_loss(Outputs& outputs, const Batch& batch) const;

  const DitNetwork dit_;
  const NoiseLevels levels_;
  const std::int64_t action_dim_;
  const PolicyGradientOptions options_;
  std::vector<UnitSpec> units_;
  /// of the loss
  const std::unique_ptr<ProgramCache> programs_;
};

}  // namespace troupe::model
