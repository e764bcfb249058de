#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"
#include "model/wan/rope.h"
#include "model/wan/sequence_layout.h"

namespace troupe {

// The pieces of DitNetwork (model/wan/dit.h), for it and its tests. B samples, N tokens, d channels, H heads, D head
// size, R time rows.

/// The tensor `key` of the batch; throws c10::Error that names it when it is missing.
const at::Tensor& batch_tensor(const Batch& batch, const char* key);

/// Patches of latents [B, Cin, F, h, w] as tokens [B, F*(h/2)*(w/2), d]; an odd last row or column is dropped (2.1).
at::Tensor embed_patches(const ParamView& params, const at::Tensor& latents);

/// Tokens [B, F*gh*gw, 4*C] (time, row, column, channel fastest) as latents [B, C, F, 2gh, 2gw] (2.9).
at::Tensor unpatchify(const at::Tensor& tokens, const SequenceLayout& layout);

/// Text and image features projected to d (2.5).
at::Tensor embed_text(const ParamView& params, const at::Tensor& context);
at::Tensor embed_image(const ParamView& params, const at::Tensor& clip);

/// Action tokens [B, A, d] from noisy actions and their timesteps [B, A] f32; state tokens [B, S, d] (2.3).
at::Tensor embed_actions(const ParamView& params, const at::Tensor& noisy_actions, const at::Tensor& timesteps);
at::Tensor embed_states(const ParamView& params, const at::Tensor& states);

/// Gives each token its time row: [B, R, d] -> [B, N, d] in sequence order; with `outputs_only` the rows of
/// SequenceLayout::output_segments(). Copies by broadcasting, so its gradient is a plain sum in a fixed order.
at::Tensor spread_time_rows(const at::Tensor& rows_BRd, const SequenceLayout& layout, bool decoupled,
                            bool outputs_only);

/// Self attention by segments: q holds the segments' queries one after the other, k and v every row of the sequence.
/// Returns [B, T, H, D] like q. Segments that see only themselves copy their value; no mask is ever built.
at::Tensor segment_attention(const at::Tensor& q_BTHD, const at::Tensor& k_BNHD, const at::Tensor& v_BNHD,
                             const std::vector<AttentionSegment>& segments);

/// One transformer block (2.7) whose parameters start with `prefix` ("blocks.3."). With `outputs_only` the rows that
/// reach no loss contribute only keys and values, and the result has the rows of SequenceLayout::output_segments().
at::Tensor transformer_block(const DitConfig& config, const ParamView& params, const std::string& prefix,
                             const Carry& carry, const SequenceLayout& layout, const RopeTables& rope, bool decoupled,
                             bool outputs_only);

}  // namespace troupe
