#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "model/shard/network.h"

namespace troupe::model {

/// A whole parameter drawn as the engine draws its shards (model/shard/init.h): f32 on the CPU.
at::Tensor initial_tensor(const ParamSpec& spec, std::uint64_t seed);

/// XXH3-128 over named tensors in the order they are added: name, a zero byte, dtype, a zero byte, bytes.
class ContentHash {
 public:
  /// Adds `tensor` as it is after a cast to `dtype`; of another dtype only a piece is cast at a time.
  void add(const std::string& name, const at::Tensor& tensor, at::ScalarType dtype);
  /// 32 hex digits.
  std::string hex() const { return hash_.hex(); }

 private:
  Xxh3Stream hash_;
};

/// The parameters of a network that is never trained, whole on every rank. Immutable, so threads may share it.
class FrozenParams {
 public:
  /// Random values from the seed. `prefix` stands before each name in the draws' keys (not in the view), so that
  /// networks with equal tensor names differ.
  static FrozenParams random(const std::vector<ParamSpec>& specs, std::uint64_t seed, const std::string& prefix);
  /// Values from elsewhere. invalid_argument names the first tensor that is missing, has another shape, or is not
  /// wanted.
  static Result<FrozenParams> from_tensors(const std::vector<ParamSpec>& specs,
                                           std::map<std::string, at::Tensor> tensors);

  /// By plain names; no leaves, so autograd never records through them.
  const ParamView& view() const { return view_; }
  /// ContentHash of every tensor in the order of names.
  std::string content_hash() const;
  std::int64_t bytes() const;

 private:
  ParamView view_;
};

}  // namespace troupe::model
