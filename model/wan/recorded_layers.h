#pragma once

#include <ATen/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/cores/kernel_work.h"
#include "model/shard/network.h"

namespace troupe::model {

/// A linear layer among what autograd records: `rows` rows of `in` channels to `out`.
struct RecordedLinear {
  /// before ".weight" or ".W"
  std::string name;
  std::int64_t rows = 0, in = 0, out = 0;
  /// elementwise operators on its result
  double operators = 0;
  /// LibTorch's own linear, not kernels/linear.h
  bool is_library = false;
};

/// Counts the kernels of a unit that autograd records and differentiates: chains of linear layers and operators between
/// them. A layer's weight gets a gradient where it is trained; its input where something before it is trained.
class RecordedLayers {
 public:
  /// `unit`: what is trained.
  RecordedLayers(const UnitSpec& unit, at::ScalarType dtype);

  /// Layers that follow each other. `is_differentiated`: the input of the first gets a gradient.
  void add_chain(const std::vector<RecordedLinear>& chain, bool is_differentiated);
  /// `count` operators of LibTorch on so many elements.
  void add_operators(double count, double elements, at::ScalarType dtype);
  void add_kernels(const KernelWork& forward, const KernelWork& backward);

  const std::vector<KernelWork>& forward() const { return forward_; }
  const std::vector<KernelWork>& backward() const { return backward_; }

 private:
  bool is_trained(const std::string& name) const;
  /// Rank of the adapters on a linear; 0: none.
  std::int64_t adapter_rank(const std::string& name) const;
  /// One linear, and whether its weight and input get gradients.
  void add_linear(const RecordedLinear& linear, bool trains, bool to_input);
  /// A pass over that many elements of both dtypes, where they differ.
  void add_conversion(std::vector<KernelWork>& to, std::int64_t elements);

  const UnitSpec& unit_;
  const at::ScalarType dtype_;
  std::vector<KernelWork> forward_, backward_;
};

}  // namespace troupe::model
