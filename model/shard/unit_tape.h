#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/shard/network.h"

namespace troupe {

/// Loss and metrics of one micro-batch, as the network returned them (means over its samples).
struct MicroResult {
  double loss = 0;
  std::map<std::string, double> metrics;
};

/// One micro-batch on its way through a network's units: the generic unit of learner.md 4.6, which works for any
/// Network. Forward runs without recording and keeps each unit's input x (the conditioning is shared); backward runs
/// the unit again on detached inputs with recording on, differentiates it with autograd, and hands the gradients down.
/// The last unit runs once, recorded. Gradients of the conditioning are summed in f32 over the units, last unit first.
///
/// Call forward for units 0..n-1 in order, then backward for n-1..0. Parameter views passed to backward (and to the
/// last forward of a training tape) are leaves that require grad and hold the same values as in forward. One thread;
/// CPU gradients run in the calling thread. Throws c10::Error when the network does.
class UnitTape {
 public:
  /// `weight` scales the loss's gradient. `recorded`: backward will follow. The batch must outlive the tape.
  UnitTape(const Network& network, const Batch& batch, double weight, bool recorded);

  void forward(int unit, const ParamView& params);
  /// Writes d(weight * loss)/d(param) into `gradients`, which has the parameters' names and shapes; a parameter that
  /// the unit does not use gets zeros.
  void backward(int unit, const ParamView& params, const ParamView& gradients);

  /// After the last forward.
  const Outputs& outputs() const { return *outputs_; }
  MicroResult result() const;

 private:
  struct Leaves {
    Carry carry;
    std::vector<at::Tensor> inputs;  ///< those of carry that are differentiated: x, then conditioning
  };
  int last_unit() const { return static_cast<int>(network_.units().size()) - 1; }
  bool is_differentiated(const at::Tensor& tensor) const;
  Leaves make_leaves(const at::Tensor& x) const;
  void backward_prologue(const ParamView& params, const ParamView& gradients);
  void differentiate(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& seeds, const Leaves& leaves,
                     const ParamView& params, const ParamView& gradients);

  const Network& network_;
  const Batch& batch_;
  const double weight_;
  const bool recorded_;
  std::vector<at::Tensor> conditioning_;  ///< from the prologue, detached
  std::vector<at::Tensor> x_;             ///< x_[u]: input of unit u + 1
  std::optional<Outputs> outputs_;
  Leaves epilogue_leaves_;
  at::Tensor x_gradient_;
  std::vector<at::Tensor> conditioning_gradients_;  ///< f32; undefined until something flows
};

}  // namespace troupe
