#include "model/wan/vae/vae_stream.h"

#include <ATen/ATen.h>

#include <utility>

namespace troupe::model {
namespace {

std::int64_t bytes_of(const VaeCache& cache) {
  std::int64_t total = 0;
  for (const auto& [name, frames] : cache.past) total += static_cast<std::int64_t>(frames.nbytes());
  return total;
}

/// Runs `step` on a copy of the cache (tensors are replaced, never written), so that a push that fails changes nothing.
template <class Step>
at::Tensor advance(VaeCache& cache, Step step) {
  auto next = cache;
  auto out = step(&next);
  cache = std::move(next);
  return out;
}

}  // namespace

at::Tensor VaeEncodeStream::push(const at::Tensor& video) {
  return advance(cache_, [&](VaeCache* cache) { return network_.encode(video, cache, rounding_); });
}

std::int64_t VaeEncodeStream::bytes() const { return bytes_of(cache_); }

at::Tensor VaeDecodeStream::push(const at::Tensor& latents) {
  return advance(cache_, [&](VaeCache* cache) { return network_.decode(latents, cache); });
}

std::int64_t VaeDecodeStream::bytes() const { return bytes_of(cache_); }

}  // namespace troupe::model
