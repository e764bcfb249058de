#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/shard/network.h"

namespace troupe::model {

/// A gated recurrent unit (Cho et al. 2014, arXiv:1406.1078, section 2.3, with the reset gate behind the recurrent
/// product) over sequences in which new episodes begin:
///     r = sigmoid(W_r x + b_r + U_r h + c_r)      z = sigmoid(W_z x + b_z + U_z h + c_z)
///     n = tanh(W_n x + b_n + r (U_n h + c_n))     h' = (1 - z) n + z h
/// Parameters "<prefix>.input.weight" [3W,inputs], "<prefix>.input.bias" [3W], "<prefix>.memory.weight" [3W,W] and
/// "<prefix>.memory.bias" [3W]: r, z and n one below the other. Immutable.
class Gru {
 public:
  Gru(const std::string& prefix, std::int64_t inputs, std::int64_t width);

  std::int64_t width() const noexcept { return width_; }
  std::vector<ParamSpec> params() const;

  /// h' of every row of `x` [T*S,inputs], row t * S + s being step t of sequence s: [T*S,W]. Sequence s begins with
  /// `memory` [S,W]; where `begins` [T*S,1] bool is true, h is zero before the step. Undefined `begins`: nowhere. f32;
  /// differentiable by autograd in x and the parameters, through all T steps.
  /// Errors: throws c10::Error on shapes that do not fit.
  at::Tensor forward(const ParamView& view, const at::Tensor& x, const at::Tensor& memory,
                     const at::Tensor& begins) const;

 private:
  std::int64_t inputs_, width_;
  std::string input_weight_, input_bias_, memory_weight_, memory_bias_;
};

}  // namespace troupe::model
