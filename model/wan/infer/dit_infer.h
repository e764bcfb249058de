#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"
#include "model/wan/infer/dit_episode.h"
#include "model/wan/infer/infer_block.h"
#include "model/wan/sequence_layout.h"

namespace troupe::model {

/// What an episode starts from.
struct EpisodeContext {
  /// one per branch; each for all samples, or one sample for all
  std::vector<std::shared_ptr<const TextKeys>> text;
  /// [B, 257, image width]: CLIP features of the first frame
  at::Tensor clip;
  /// [B, 4 + Cz, F, h, w] with concat_first_frame_latent (batch_keys.h), else not read
  at::Tensor first_frame;
  /// of the latents, both even
  std::int64_t height = 0, width = 0;
};

/// Velocities of one evaluation; axis 1 is the branch.
struct Velocities {
  /// [B, branches, Cz, n, h, w], estimate of noise - latents
  at::Tensor video;
  /// [B, branches, A, D], estimate of noise - actions
  at::Tensor actions;
};

/// Noisy samples of all episodes of an evaluation, one after the other in axis 0, and their timesteps.
struct NoisyBlock {
  /// [B, Cz, nfpb, h, w]
  at::Tensor video;
  /// [B, napb, D]
  at::Tensor actions;
  /// [B, nspb, state dimensions]
  at::Tensor states;
  double t_video = 0;
  double t_action = 0;
};

/// DreamZero's transformer as a policy runs it: new tokens against the caches of their episodes, without gradients, in
/// the parameters' dtype throughout (P-infer of docs/precision.md#profiles). Episodes that stand at different frames
/// run as one batch; only attention is per episode. Not thread-safe.
class DitInference {
 public:
  /// `params` has every tensor of dit_units(config), on one device, and outlives this. `max_blocks` is the window's
  /// length in blocks.
  DitInference(const ModelConfig& config, std::int64_t max_blocks, std::int64_t actions_per_block, ParamView params,
               bool state_self_only = false);

  /// Keys and values of a prompt, from its text features [B, L, text width].
  std::shared_ptr<const TextKeys> text_keys(const at::Tensor& context_BLC) const;

  /// An episode that has seen nothing yet. Throws c10::Error for an odd latent height or width, of which the
  /// transformer would drop a row, or features that do not fit.
  std::unique_ptr<DitEpisode> begin(const EpisodeContext& context) const;

  /// Takes clean latents [B, Cz, n, h, w] into the caches (t = 0, no register): frame 0 for episodes that have seen
  /// nothing, the next nfpb frames for others, so n must fit all of them. Afterwards each episode has n frames more.
  void prefill(std::span<DitEpisode* const> episodes, const at::Tensor& latents);

  /// Velocities of the block behind each episode's frames; caches keep what they have.
  Velocities evaluate(std::span<DitEpisode* const> episodes, const NoisyBlock& noisy);

  const ModelConfig& config() const { return config_; }
  std::int64_t max_blocks() const { return max_blocks_; }
  std::int64_t actions_per_block() const { return actions_per_block_; }
  /// Dtype and device of the parameters.
  at::TensorOptions options() const;

 private:
  /// e and e0 of one timestep t: e = Linear(SiLU(Linear(time_sinusoid(t)))), e0 = Linear(SiLU(e)) as 6 rows of d.
  struct TimeRow {
    at::Tensor e_1d, e0_16d;
  };
  /// The window's rotations for one size of latents.
  struct Window {
    SequenceLayout layout;
    RopeTables rope;
  };
  const TimeRow& time_row(double t);
  const Window& window(std::int64_t height, std::int64_t width);
  InferPass make_pass(std::span<DitEpisode* const> episodes, const at::Tensor& latents, bool with_register);
  at::Tensor embed_video(std::span<DitEpisode* const> episodes, const at::Tensor& latents) const;

  ModelConfig config_;
  std::int64_t max_blocks_, actions_per_block_;
  ParamView params_;
  bool state_self_only_;
  std::map<double, TimeRow> time_rows_;
  std::map<std::pair<std::int64_t, std::int64_t>, Window> windows_;
};

}  // namespace troupe::model
