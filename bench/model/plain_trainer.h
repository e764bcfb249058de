#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/model/dit_case.h"
#include "model/optim/adamw.h"

namespace troupe::bench {

/// The reference's training step in plain LibTorch: ReferenceDit with every block checkpointed, masters and moments in
/// f32, LibTorch's fused AdamW after a clip by the global norm. In bf16 a copy of the masters is computed with and
/// gradients are summed in f32, as FSDP2's mixed precision does. Threads are ATen's.
class PlainTrainer {
 public:
  /// `dit_case` has the initial values in f32 and must outlive the trainer.
  PlainTrainer(const DitCase& dit_case, at::ScalarType dtype, const AdamWOptions& adamw, double clip_grad_norm);

  /// One optimizer step over the micro-batches' mean; returns the loss before it.
  double step(const std::vector<Batch>& micro_batches, double lr);

  /// Of what lives from step to step: masters, moments and the bf16 copy.
  std::int64_t bytes() const;

 private:
  double add_gradients(const Batch& batch, double weight);
  void update(double lr);

  const DitCase& case_;
  const AdamWOptions adamw_;
  const double clip_grad_norm_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> masters_, m_, v_, updates_;
  std::vector<at::Tensor> leaves_;  ///< computed with: the masters, or their copy
  std::vector<at::Tensor> gradients_;
};

}  // namespace troupe::bench
