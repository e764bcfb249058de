#include "model/wan/infer/kv_cache.h"

#include <ATen/ATen.h>

namespace troupe::model {

KvCache::KvCache(const KvCacheShape& shape, at::TensorOptions options) : shape_(shape) {
  TORCH_CHECK(shape.layers >= 1 && shape.samples >= 1 && shape.branches >= 1 && shape.tokens >= 1,
              "KvCache: ", shape.layers, " layers, ", shape.samples, " samples, ", shape.branches, " branches, ",
              shape.tokens, " tokens");
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const auto rows = i == 0 ? shape.samples : shape.samples * shape.branches;
    const std::vector<std::int64_t> size{rows, shape.tokens, shape.heads, shape.head_dim};
    layers_.push_back({at::empty(size, options), at::empty(size, options)});
  }
}

void KvCache::write(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) {
  auto& to = layers_.at(static_cast<std::size_t>(layer));
  TORCH_CHECK(k.dim() == 4 && k.size(1) <= room(), "KvCache: ", k.sizes(), " tokens behind ", size_,
              " do not fit into a window of ", shape_.tokens);
  to.k.narrow(1, size_, k.size(1)).copy_(k);
  to.v.narrow(1, size_, v.size(1)).copy_(v);
}

at::Tensor KvCache::keys(std::int64_t layer, std::int64_t extra) const {
  return layers_.at(static_cast<std::size_t>(layer)).k.narrow(1, 0, size_ + extra);
}

at::Tensor KvCache::values(std::int64_t layer, std::int64_t extra) const {
  return layers_.at(static_cast<std::size_t>(layer)).v.narrow(1, 0, size_ + extra);
}

void KvCache::commit(std::int64_t count) {
  TORCH_CHECK(count <= room(), "KvCache: ", count, " tokens kept, room for ", room());
  size_ += count;
}

}  // namespace troupe::model
