#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/namespaces.h"
#include "model/shard/network.h"

namespace troupe::model {

/// Sizes of the test network; odd ones leave gaps in the layout.
struct ChainShape {
  std::int64_t inputs = 7, width = 24, hidden = 37, outputs = 5, blocks = 4;
};

/// A small residual MLP that uses everything a Network may do: conditioning that every unit reads, conditioning that
/// nobody reads, conditioning that is not differentiated, and parameters that no unit uses.
///     x = tanh(input W + b);  c = input Wc
///     x = x + gain * tanh(x W1 + c Wm) W2        for each block
///     loss = mean((x Wo + c Wq - target)^2)
class ChainNetwork final : public Network {
 public:
  explicit ChainNetwork(ChainShape shape = {});
  const std::vector<UnitSpec>& units() const override { return units_; }
  Carry prologue(const ParamView& params, const Batch& batch) const override;
  at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry, const Batch& batch) const override;
  Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const override;

 private:
  std::vector<UnitSpec> units_;
};

/// Inputs and targets of micro-batch `index`, a function of the index alone: targets are a fixed function of the
/// inputs.
Batch chain_batch(std::int64_t index, std::int64_t samples = 4);

/// The same network as one ordinary autograd graph over leaf parameters, without units, shards or recompute.
class PlainChain {
 public:
  PlainChain(const ChainNetwork& network, std::uint64_t seed);
  /// Loss of one micro-batch; adds weight * gradient to gradients().
  double accumulate(const Batch& batch, double weight);
  void zero_gradients();
  /// By parameter name.
  const std::map<std::string, at::Tensor>& parameters() const { return parameters_; }
  std::map<std::string, at::Tensor>& gradients() { return gradients_; }

 private:
  const ChainNetwork& network_;
  std::map<std::string, at::Tensor> parameters_, gradients_;
};

}  // namespace troupe::model
