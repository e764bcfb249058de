#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace troupe::model {

/// Sizes of a KvCache.
struct KvCacheShape {
  std::int64_t layers = 0;
  std::int64_t samples = 1;   ///< robots of one episode
  std::int64_t branches = 2;  ///< conditional, unconditional
  std::int64_t tokens = 0;    ///< room, in tokens: the window's video and one block's actions and states
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
};

/// Self-attention keys (after RMSNorm and RoPE) and values of the frames an episode has seen, for every layer. Memory
/// is taken once for the whole window. Rows are [sample, branch], branch fastest; in layer 0 there is one row for each
/// sample, because what enters it does not depend on the prompt.
///
/// Tokens behind size() are scratch: a forward writes there what it attends to, and commit() keeps it.
/// Not thread-safe. Views share the cache's memory.
class KvCache {
 public:
  /// Allocates everything at once, uninitialised, with the dtype and device of `options`.
  /// Errors: throws c10::Error on a size below 1.
  KvCache(const KvCacheShape& shape, at::TensorOptions options);

  const KvCacheShape& shape() const { return shape_; }
  /// Tokens kept, and how many more fit.
  std::int64_t size() const { return size_; }
  std::int64_t room() const { return shape_.tokens - size_; }

  /// Writes keys and values [rows, T, H, D] behind the kept tokens. Throws c10::Error when they do not fit.
  void write(std::int64_t layer, const at::Tensor& k, const at::Tensor& v);
  /// Kept tokens and `extra` written ones, [rows, size() + extra, H, D].
  at::Tensor keys(std::int64_t layer, std::int64_t extra) const;
  at::Tensor values(std::int64_t layer, std::int64_t extra) const;
  /// Keeps the last `count` tokens that were written to every layer.
  void commit(std::int64_t count);

 private:
  struct Layer {
    at::Tensor k, v;
  };
  KvCacheShape shape_;
  std::int64_t size_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace troupe::model
