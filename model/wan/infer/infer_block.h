#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"
#include "model/wan/infer/dit_episode.h"
#include "model/wan/rope.h"

namespace troupe::model {

/// One episode's share of a forward: samples [begin, begin + episode->samples()) and the rotations of its new tokens.
struct InferPart {
  DitEpisode* episode = nullptr;
  std::int64_t begin = 0;
  /// cosines and sines [T, dh/2] of the part's T new tokens
  RopeTables rope;
};

/// What every block of one inference forward reads. T new tokens per sample: video, then actions, then states.
struct InferPass {
  /// in order of samples; all with the same number of branches
  std::vector<InferPart> parts;
  std::int64_t branches = 1;
  std::int64_t video_tokens = 0;
  std::int64_t action_tokens = 0;
  std::int64_t state_tokens = 0;
  /// e0, a row for each timestep
  at::Tensor modulation_R6d;
  /// i32: each token's row; undefined when there is only one
  at::Tensor time_row_T;
  bool state_self_only = false;

  std::int64_t tokens() const { return video_tokens + action_tokens + state_tokens; }
};

/// One transformer block over new tokens and what the episodes' caches hold (transformer_block of model/wan/dit_parts.h
/// without a mask), in the parameters' dtype. Keys and values of the new tokens are written behind the kept ones, not
/// committed.
///
/// x is [samples, T, d] before layer 0, where both branches are still the same, and [samples * branches, T, d] after it
/// (rows sample, branch). Layer 0 returns the latter. The last layer returns no state tokens, which reach no output.
/// With `keys_only` nothing but keys and values is computed and the result is undefined.
at::Tensor infer_block(const DitConfig& config, const ParamView& params, std::int64_t layer, const at::Tensor& x,
                       const InferPass& pass, bool keys_only);

}  // namespace troupe::model
