#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/dense_layer.h"
#include "model/policy/mlp.h"

namespace troupe::model {

/// One run of an Mlp forward and, if wanted, backward without autograd, into memory that is kept from run to run. For
/// small networks whose time goes into bookkeeping otherwise. f32 on the CPU; no layer norm. Equal to Mlp::forward and
/// its gradients up to rounding (kernels/dense_layer.h). Its bits do not depend on num_threads(), which it uses, and
/// those of a row's outputs not on the other rows. Not thread-safe: borrow one per call from a SparePool. Callers have
/// switched gradient recording off.
class MlpPass {
 public:
  /// Allocates for `rows` rows. `mlp` must outlive it. Errors: throws c10::Error on an Mlp with layer norm.
  MlpPass(const Mlp& mlp, std::int64_t rows);

  std::int64_t rows() const noexcept { return rows_; }
  /// Numbers of its largest weight.
  std::int64_t largest_layer() const noexcept;

  /// x [rows,inputs] f32 contiguous. Saves the output of every layer for backward. Returns [rows,outputs], valid until
  /// the next forward.
  const at::Tensor& forward(const ParamView& view, const at::Tensor& x);
  /// The same of rows that lie x_stride numbers apart.
  const at::Tensor& forward(const ParamView& view, const float* x, std::int64_t x_stride);
  /// With delta_n = d_output and f' from the saved output h (tanh: 1 - h^2; relu: h > 0):
  ///     dW_i = delta_i^T h_{i-1}    db_i = sum over rows of delta_i    delta_{i-1} = (delta_i W_i) f'(h_{i-1})
  /// After forward with the same view and x, for the gradient d_output [rows,outputs] contiguous. Overwrites this Mlp's
  /// tensors in `gradients`, if it is given, and d_input [rows,inputs], if it is given.
  void backward(const ParamView& view, const at::Tensor& x, const at::Tensor& d_output, const ParamView* gradients,
                const at::Tensor* d_input = nullptr);

 private:
  const Mlp& mlp_;
  const std::int64_t rows_;
  /// of every layer, after its activation
  std::vector<at::Tensor> outputs_;
  /// gradients of outputs_ but the last, before the activation
  std::vector<at::Tensor> deltas_;
  DenseWorkspace workspace_;
};

}  // namespace troupe::model
