#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"
#include "model/wan/rope.h"
#include "model/wan/sequence_layout.h"

namespace troupe::model {

// The pieces of DitNetwork (model/wan/dit.h), for it and its tests. B samples, N tokens, d channels, H heads, D head
// size, R time rows.

/// The 2 x 2 patches of latents [B, Cin, F, h, w] as rows [B, F*(h/2)*(w/2), 4 Cin] in the order of frame, row, column;
/// an odd last row or column is dropped. Channel (c*2 + row)*2 + column of a row is input channel c of that pixel.
at::Tensor input_patches(const at::Tensor& latents);

/// Those rows as tokens [.., d]: one linear, patch_embedding.weight [d, Cin, 1, 2, 2].
at::Tensor embed_patches(const ParamView& params, const at::Tensor& patches);

/// Tokens [B, F*gh*gw, 4*C] (time, row, column, channel fastest) as latents [B, C, F, 2gh, 2gw]: channel
/// (row*2 + column)*C + c of a token is pixel (row, column) of its patch.
at::Tensor unpatchify(const at::Tensor& tokens, const SequenceLayout& layout);
/// The inverse: latents of even height and width as tokens.
at::Tensor patchify(const at::Tensor& latents);

/// eps of the image embedding's layer norms, whatever the model's is.
inline constexpr double kImageEps = 1e-5;
/// Text and image features projected to d: linear, tanh GELU, linear of context [B, L, text width] to [B, L, d]; layer
/// norm, linear, GELU, linear, layer norm of clip [B, 257, image width] to [B, 257, d].
at::Tensor embed_text(const ParamView& params, const at::Tensor& context);
at::Tensor embed_image(const ParamView& params, const at::Tensor& clip);

/// Action tokens [B, A, d] from noisy actions [B, A, D] and the action_sinusoid of their timesteps, [B, A, d]:
///     u = a W1 + b1,   h = [u | sinusoid] W2 + b2,   token = SiLU(h) W3 + b3
/// State tokens [B, S, d] from states [B, S, state dimensions]: ReLU(s W1 + b1) W2 + b2.
at::Tensor embed_actions(const ParamView& params, const at::Tensor& noisy_actions, const at::Tensor& sinusoid);
at::Tensor embed_states(const ParamView& params, const at::Tensor& states);

/// For each token, in sequence order, its time row (dit_conditioning): i32 [N]. `decoupled`: each action token has a
/// row of its own, else that of its block.
at::Tensor time_row_of(const SequenceLayout& layout, bool decoupled);

/// Self attention by segments: q holds the segments' queries one after the other, k and v every row of the sequence.
/// Returns [B, T, H, D] like q. Segments that see only themselves copy their value; no mask is ever built.
at::Tensor segment_attention(const at::Tensor& q_BTHD, const at::Tensor& k_BNHD, const at::Tensor& v_BNHD,
                             const std::vector<AttentionSegment>& segments);

/// What a block computes besides its parameters: everything that depends on the layout alone. The same for all blocks
/// but the last. Immutable; tensors are on the device that the block runs on.
struct BlockPlan {
  std::int64_t num_heads = 1;
  double eps = 1e-6;
  /// Rows that reach no loss contribute only keys and values, and the result has the rows of
  /// SequenceLayout::output_segments().
  bool outputs_only = false;
  std::vector<AttentionSegment> segments;
  RopeTables rope, query_rope;          ///< of every row, and of the rows with queries
  at::Tensor time_row, query_time_row;  ///< time_row_of the same
};

BlockPlan make_block_plan(const DitConfig& config, const SequenceLayout& layout, const RopeTables& rope, bool decoupled,
                          bool outputs_only);

/// What a transformer block's forward passes through: the tensors that its backward needs besides the input, and what a
/// test compares. T rows with queries, N rows in all.
struct BlockSave {
  at::Tensor self_in;         ///< h1 [B, N, d], after norm and modulation
  at::Tensor q, k, v;         ///< normed and rotated [B, T, H, D], [B, N, H, D] twice
  at::Tensor self_attended;   ///< o [B, T, d], before the output projection
  at::Tensor self_out;        ///< y1 [B, T, d], before the gate
  at::Tensor cross_attended;  ///< o_c [B, T, d], text and image part added
  at::Tensor ffn_in;          ///< h2 [B, T, d]
  at::Tensor ffn_hidden;      ///< u [B, T, ffn], before GELU
};

/// One transformer block whose parameters start with `prefix` ("blocks.3."): x_BNd to the residual stream behind it,
/// [B, T, d]. With e_i = modulation_i + e0_i of each token's time row, i = shift, scale, gate of attention, then of the
/// feed-forward layer (adaptive layer norm, arXiv:2212.09748):
///     h = LN(x) (1 + e_1) + e_0
///     x = x + e_2 o(attention(rope(rms(q h)), rope(rms(k h)), v h))
///     c = LN3(x)
///     x = x + o'(attention(rms(q' c), text) + attention(rms(q' c), image))
///     x = x + e_5 ffn(LN(x) (1 + e_4) + e_3)
/// `conditioning` as in dit_conditioning. `save`, when given, is filled. Pure: safe on several threads at once.
at::Tensor transformer_block(const BlockPlan& plan, const ParamView& params, const std::string& prefix,
                             const at::Tensor& x_BNd, const std::vector<at::Tensor>& conditioning,
                             BlockSave* save = nullptr);

}  // namespace troupe::model
