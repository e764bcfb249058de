#pragma once

#include "configs/model_config.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// UMT5 of two blocks, 16 channels wide.
inline TextEncoderConfig tiny_text_encoder() {
  return {.vocab = 300,
          .dim = 16,
          .dim_attn = 16,
          .dim_ff = 24,
          .num_heads = 2,
          .num_layers = 2,
          .num_buckets = 8,
          .max_length = 12,
          .tokenizer = {}};
}

/// CLIP of three blocks, four patches, 16 channels wide.
inline ImageEncoderConfig tiny_image_encoder() {
  return {
      .image_size = 28, .patch_size = 14, .dim = 16, .mlp_dim = 24, .num_heads = 2, .num_layers = 3, .head_dim_out = 8};
}

}  // namespace troupe::testing
