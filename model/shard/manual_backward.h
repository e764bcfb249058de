#pragma once

#include <vector>

#include "model/shard/network.h"
#include "model/shard/unit_tape.h"

namespace troupe::model {

/// A Network with a manual backward: for small networks the cost of a step is autograd's bookkeeping, not arithmetic.
/// Same function, metrics and gradients as the Network that returns it from manual_backward(), up to rounding.
/// Thread-safe: several threads may be in run() at once.
class ManualBackward {
 public:
  virtual ~ManualBackward() = default;

  /// Loss and metrics of one micro-batch, and d(weight * loss)/d(param) of every trained unit, without autograd.
  ///
  /// `params` and `gradients` are views by chain index, as many as the network has units: f32, contiguous, CPU, all
  /// valid at once (so with as many parameter and gradient slots as units). Every tensor of `gradients` is overwritten;
  /// an empty view's unit is left out (frozen, or without parameters). Parameters may be leaves that require grad.
  /// Errors: throws c10::Error on a missing tensor, a shape or a dtype that does not fit.
  virtual MicroResult run(const std::vector<ParamView>& params, const Batch& batch, double weight,
                          const std::vector<ParamView>& gradients) const = 0;
};

}  // namespace troupe::model
