#pragma once

#include <ATen/core/Tensor.h>

#include "model/shard/network.h"

namespace troupe::model {

/// What stands between an environment and DreamZero's transformer: observations as conditioning, and actions in the
/// environment's units. Shape legend: N rows, one policy call each; Cz latent channels, h w latent rows and columns,
/// nfpb latent frames and nspb state tokens of a block, napb actions of a block, D padded action dimensions, nb blocks
/// of a window; K = napb actions of a chunk with A numbers each, which are the first A of D.
///
/// Thread-safe: rollout threads and the learner ask at the same time. A row's results depend on that row alone, up to
/// rounding. Records no gradient. Results own their memory.
class DreamZeroObserver {
 public:
  virtual ~DreamZeroObserver() = default;

  /// From rows of an observation whose newest frame begins a window, rl_keys::kState [N,D_state] as the environment
  /// gives it and rl_keys::kImagePrefix + name u8 [N,H,W,3], with nb > 1 the frames of a chunk one above the other
  /// (docs/env.md#frames-of-a-chunk), by the names of model/wan/batch_keys.h, floating tensors in f32:
  ///     context        [N,L,text width], zero behind each prompt
  ///     clip           [N,257,image width], of the present frame
  ///     clean_latents  [N,Cz,1,h,w], of the present frame
  ///     state          [N,nspb,max_state_dim], normalised and padded
  ///     first_frame    [N,4+Cz,1+nb*nfpb,h,w], with model.dit.concat_first_frame_latent alone
  /// Other tensors of `observation` are not looked at, so a batch of stored rows may be given whole.
  /// Errors: throws c10::Error on a missing tensor, a wrong shape, and encoders that cannot be loaded.
  virtual Batch encode(const Batch& observation) const = 0;

  /// The same where a window goes on: context and state as encode() gives them, and clean_latents [N,Cz,nfpb,h,w] of
  /// the frames since the call before. Asked with nb > 1 alone. Errors: as encode.
  virtual Batch encode_later(const Batch& observation) const = 0;

  /// Normalised actions f32 [N,napb,D] in the environment's units and order of columns, f32 [N,K*A]. Relative keys add
  /// the observation's state; nothing is clipped. Numbers that are not finite stay so. Errors: as encode.
  virtual at::Tensor actions(const at::Tensor& normalised, const Batch& observation) const = 0;
};

}  // namespace troupe::model
