#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/wan/infer/context_keys.h"
#include "model/wan/infer/kv_cache.h"

namespace troupe::model {

/// What the transformer keeps of one episode between calls: everything it derived from the prompt, the first frame and
/// the frames seen. An episode may hold several samples that stand at the same frame; a session of a policy has one.
/// Made by DitInference::begin. Not thread-safe.
struct DitEpisode {
  DitEpisode(KvCache keys, std::vector<std::shared_ptr<const TextKeys>> text_keys, ImageKeys image_keys,
             at::Tensor first)
      : cache(std::move(keys)),
        text(std::move(text_keys)),
        image(std::move(image_keys)),
        first_frame(std::move(first)) {}

  KvCache cache;
  std::vector<std::shared_ptr<const TextKeys>> text;  ///< one per branch: with the prompt, then without
  ImageKeys image;
  at::Tensor first_frame;   ///< [B, 4 + Cz, F, h, w] with concat_first_frame_latent, else undefined
  std::int64_t frames = 0;  ///< latent frames in the cache, and so the RoPE position of the next one

  std::int64_t samples() const { return cache.shape().samples; }
  std::int64_t branches() const { return cache.shape().branches; }
};

}  // namespace troupe::model
