#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"

namespace troupe::model {

/// Keys (after their linear and RMS norm) and values of one layer's cross attention, [B, L, H, D] in the parameters'
/// dtype; cross attention has no RoPE.
struct ContextLayer {
  at::Tensor k, v;
};

/// Cross-attention keys and values of a prompt in every layer: they depend on neither the step nor the frames, so they
/// are computed once. Immutable, so that sessions with one prompt, and the unconditional branches of all, share one.
///
/// The rows behind a prompt are zero in the text features, so in each layer they have one key and one value in common.
/// Only the first of them is kept, and attended `pad_rows` times by adding ln(pad_rows) to its logits, which is exact
/// but for rounding.
struct TextKeys {
  std::vector<ContextLayer> layers;
  /// f32 [1, 1, 1, L] (f64 with f64), added to the logits; undefined: nothing left out
  at::Tensor mask;
  /// zero rows behind the prompt, all of which the last kept row stands for
  std::int64_t pad_rows = 0;
};

/// Cross-attention keys and values of an episode's first frame in every layer; both branches share them. Immutable.
struct ImageKeys {
  std::vector<ContextLayer> layers;
};

/// From text features [B, L, text width], zero behind each prompt.
TextKeys make_text_keys(const DitConfig& config, const ParamView& params, const at::Tensor& context_BLC);
/// From CLIP features [B, 257, image width].
ImageKeys make_image_keys(const DitConfig& config, const ParamView& params, const at::Tensor& clip_BLC);

/// Attention of queries [B, T, H, D] over all keys [B or 1, L, H, D]; mask, if defined, is added to the logits.
at::Tensor attend(const at::Tensor& q_BTHD, const at::Tensor& k_BLHD, const at::Tensor& v_BLHD,
                  const at::Tensor& mask = {});

}  // namespace troupe::model
