#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/namespaces.h"
#include "model/optim/adamw.h"
#include "model/shard/network.h"

namespace troupe::bench {

/// The peer that the sharded learner is measured against: the same Network in one process as plain LibTorch autograd.
/// Every parameter is a leaf tensor, the prologue and each block are checkpointed (inputs kept, run again in
/// backward; the epilogue runs once, as in the engine), gradients land in .grad, and LibTorch's own fused AdamW
/// updates everything. One thread at a time.
class PlainTrainer {
 public:
  /// Initial values are those that an Engine draws from the same seed.
  PlainTrainer(std::shared_ptr<const Network> network, std::uint64_t seed, const AdamWOptions& adamw,
               double clip_grad_norm);

  /// One optimizer step; returns the loss before it.
  double step(const Batch& batch, double lr);

 private:
  at::Tensor loss(const Batch& batch) const;
  void update(double lr);

  const std::shared_ptr<const Network> network_;
  const AdamWOptions adamw_;
  const double clip_grad_norm_;
  std::vector<ParamView> units_;
  std::vector<at::Tensor> params_, m_, v_, updates_;
};

}  // namespace troupe::bench
