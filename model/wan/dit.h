#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "configs/model_config.h"
#include "model/loss/flow_matching.h"
#include "model/shard/network.h"
#include "model/wan/sequence_layout.h"

namespace troupe::model {

/// How the DiT's training forward is evaluated; every choice gives the same loss and gradients up to rounding.
struct DitOptions {
  /// Leave out the last clean block everywhere, and in the last layer all rows that reach no loss
  /// (docs/model.md#order-of-tokens-and-what-attends-to-what).
  bool trim = true;
  /// The rows of zeros behind a prompt are embedded, projected and attended to as one row that stands for all of them
  /// (model/wan/text_rows.h). On the CPU.
  bool collapse_text_pads = false;
  /// Action tokens have timesteps of their own. Off: each block's actions share the block's video timestep.
  bool decoupled_action_timesteps = false;
  /// Timesteps are rounded to bf16 before they are embedded, as FSDP2 with cast forward inputs does
  /// (docs/precision.md#profiles).
  /// Loss weights and the mixing do not see it.
  bool round_timesteps = false;
};

/// What prologue puts into Carry::conditioning, in this order. R time rows: clean, noisy frame 0, blocks 1..nb, then,
/// with decoupled action timesteps, one row for each action token.
namespace dit_conditioning {
inline constexpr std::size_t kText = 0;            ///< [1, T, d], rows of all prompts
inline constexpr std::size_t kImage = 1;           ///< [B, 257, d]
inline constexpr std::size_t kTimeRows = 2;        ///< e, [B, R, d]
inline constexpr std::size_t kModulationRows = 3;  ///< e0, [B, R, 6, d]
inline constexpr std::size_t kTextOfSample = 4;    ///< i64 [B, 3], each sample's rows of kText (model/wan/text_rows.h)
}  // namespace dit_conditioning

struct BlockPlan;
class ProgramCache;

/// DreamZero's causal Wan transformer, training forward with teacher forcing: a clean and a noisy copy of the video in
/// one sequence, and block k's noisy tokens see the clean frames before block k (arXiv:2602.15922; docs/model.md).
///
/// Inputs (model/wan/batch_keys.h): noisy_latents, clean_latents, video_ids, noisy_actions, action_ids, state, context,
/// clip, and first_frame with concat_first_frame_latent. With video_target, action_target, action_mask and
/// has_real_action the outputs have a loss; sample_weight, if present, scales each sample's share of it.
/// The number of blocks follows from F and may be anything up to the window's.
/// Carry: x [B, N, d] in the order of SequenceLayout; after the last block of a trimmed network only the rows of
/// SequenceLayout::output_segments().
/// Outputs: predictions "video" and "actions" always; loss and metrics "loss", "dynamics_loss" (video), "action_loss".
/// Compute happens in the parameters' dtype with norms, softmax and loss in f32 (f64 for f64): the profile
/// P-train of docs/precision.md#profiles.
/// Errors: every function throws c10::Error on a missing tensor or a shape mismatch, naming it.
/// Thread-safe. Deterministic on one thread count: blocks give the same bits when run again, recording or not.
class DitNetwork final : public Network {
 public:
  /// `max_blocks` is the window's length in blocks (data.window.chunks, the reference's max_chunk_size).
  /// Timestep ids index `schedule`.
  DitNetwork(const ModelConfig& config, std::int64_t max_blocks, DitOptions options = {},
             FlowSchedule schedule = make_flow_schedule());
  ~DitNetwork() override;

  const std::vector<UnitSpec>& units() const override { return units_; }
  Carry prologue(const ParamView& params, const Batch& batch) const override;
  at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry, const Batch& batch) const override;
  /// On the CPU, of dense tensors in one dtype (model/wan/prologue_program.h, block_program.h, head_program.h).
  BoundProgram unit_program(std::size_t unit, const ParamView& params, const Carry& carry, const Batch& batch,
                            RecomputeLevel level, const Differentiated& differentiated) const override;
  BoundProgram loss_program(const std::vector<at::Tensor>& velocities, const Batch& batch) const override;
  Outputs outputs(const std::vector<at::Tensor>& velocities, const std::vector<at::Tensor>& losses,
                  const Batch& batch) const override;
  Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const override;

  /// Where the batch's tokens stand.
  SequenceLayout layout(const Batch& batch) const;
  const ModelConfig& config() const { return config_; }
  const DitOptions& options() const { return options_; }

 private:
  std::shared_ptr<const BlockPlan> plan(const SequenceLayout& layout, at::ScalarType dtype, at::Device device,
                                        bool outputs_only) const;
  std::shared_ptr<const BlockPlan> plan_of_block(std::int64_t index, const Carry& carry, const Batch& batch,
                                                 at::Device device) const;
  Batch data_for_prologue(const ParamView& params, const Batch& batch) const;
  void add_losses(Outputs& outputs, const Batch& batch) const;

  ModelConfig config_;
  std::int64_t max_blocks_;
  DitOptions options_;
  std::vector<UnitSpec> units_;
  FlowSchedule schedule_;

  /// Plans of the few shapes that a run has, by what they depend on.
  using PlanKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, int, int, bool>;
  mutable std::mutex plan_mutex_;
  mutable std::map<PlanKey, std::shared_ptr<const BlockPlan>> plans_;
  const std::unique_ptr<ProgramCache> programs_;
};

}  // namespace troupe::model
