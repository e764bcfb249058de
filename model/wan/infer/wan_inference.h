#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "configs/model_config.h"
#include "model/shard/network.h"
#include "model/wan/features.h"
#include "model/wan/infer/dit_infer.h"
#include "model/wan/infer/infer_options.h"

namespace troupe::model {

/// What one robot shows in one call.
struct InferenceInput {
  /// u8 [T, H, W, 3], canvases; T is one of CallProtocol::accepted(): 1, 4, 8 or 9
  at::Tensor frames;
  /// f32 [states_per_block, max_state_dim], normalised and padded
  at::Tensor state;
  /// i64 [L], the tokenised prompt and 1 on its real tokens, which come first
  at::Tensor ids, mask;
};

struct InferenceOutput {
  /// f32 [actions_per_block, action_dim], still normalised
  at::Tensor actions;
  /// latents f32 [Cz, n, h, w]; the first call of an episode starts with frame 0
  at::Tensor video;
  /// this call started an episode: no earlier frame was seen
  bool reset = false;
  /// RoPE position of the first predicted latent frame
  std::int64_t start_frame = 0;
  std::int64_t evaluated_steps = 0;
};

/// What is kept of one robot's episode between calls: KV caches of both branches, first-frame features, language.
class InferenceSession;

/// DreamZero's answer to observations (docs/inference.md#a-call), for any number of robots at once. Sessions may stand
/// at different frames and still share every forward pass. Not thread-safe: one thread at a time.
class WanInference {
 public:
  /// `dit` has every tensor of dit_units(config); `features` outlives this. `max_blocks` is the window's
  /// length (data.window.chunks), `actions_per_block` data.window.action_horizon. negative_ids, negative_mask: the
  /// tokenised negative prompt, i64 [L]. `where`: of the transformer; encoders, codec and sampler stay on cores. Throws
  /// as DitInference does.
  WanInference(ModelConfig config, std::int64_t max_blocks, std::int64_t actions_per_block, ParamView dit,
               FeatureEncoder& features, const at::Tensor& negative_ids, const at::Tensor& negative_mask,
               InferOptions options = {}, const InferDevice& where = {});
  ~WanInference();

  /// Whether configuration and options can run at all; act() returns the same error. invalid_argument names the key.
  static Result<void> check(const ModelConfig& config, const InferOptions& options);

  std::shared_ptr<InferenceSession> open_session() const;
  /// Forgets the episode: the next call starts one.
  void reset(InferenceSession& session) const;

  /// One call for each session; no session twice. Errors: invalid_argument for a shape that does not fit, naming the
  /// input, with no session changed; internal when the network failed and resource_exhausted without memory for it, and
  /// then the sessions have been reset.
  Result<std::vector<InferenceOutput>> act(std::span<InferenceSession* const> sessions,
                                           std::span<const InferenceInput> inputs);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::model
