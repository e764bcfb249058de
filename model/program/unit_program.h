#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/graph.h"
#include "model/program/pass.h"
#include "model/program/recompute_level.h"
#include "model/program/unit_memory.h"

namespace troupe::model {

/// What a run of a unit reads. Tensors are dense and have the shapes and dtypes that the program was recorded for.
struct UnitInputs {
  const at::Tensor& x;
  /// Carry::conditioning
  const std::vector<at::Tensor>& conditioning;
  const std::map<std::string, at::Tensor>& parameters;
  /// what stands before the program's names in `parameters`: "blocks.3."
  std::string_view prefix;
};

/// Where a backward puts what it finds.
struct UnitGradients {
  /// f32 sums over the units (f64 for f64), by place in `conditioning`; an undefined one that gets a gradient is made
  std::vector<at::Tensor>& conditioning;
  /// By name, f32 (f64 for f64), dense: written whole; a parameter that the unit does not use gets zeros. Names at
  /// least those that the program was recorded for.
  const std::map<std::string, at::Tensor>& parameters;
};

/// Forward and backward of one unit for one shape, recorded once: operations in order, over memory that is planned.
/// Replayed for every unit of that shape, in every step. Immutable; any number of threads, each with a memory of its
/// own.
/// Errors: c10::Error on a tensor that is missing or does not have the recorded shape and dtype.
class UnitProgram {
 public:
  /// `graph`: a forward with an output. `trained`: its parameters that get a gradient.
  UnitProgram(Graph graph, const std::set<std::string>& trained, RecomputeLevel level);

  /// The unit's result, which lies in the memory's `place` until the next forward there.
  at::Tensor forward(const UnitInputs& inputs, UnitMemory& memory, int place) const;
  /// d loss / d x, which lies in the memory's `place` until the next backward there. But for
  /// RecomputeLevel::full the last run at `place` was this program's forward, on the same inputs.
  at::Tensor backward(const UnitInputs& inputs, const at::Tensor& output_gradient, const UnitGradients& gradients,
                      UnitMemory& memory, int place) const;

  /// What the last forward at `place` gave, where it lies now.
  at::Tensor result(UnitMemory& memory, int place) const;

  const Graph& graph() const { return graph_; }
  const Pass& forward_pass() const { return *forward_; }
  const Pass& backward_pass() const { return *backward_; }

 private:
  void bind_inputs(std::vector<at::Tensor>& tensors, const UnitInputs& inputs) const;
  void bind_gradients(std::vector<at::Tensor>& tensors, const UnitGradients& gradients, std::string_view prefix) const;
  void bind(std::vector<at::Tensor>& tensors, ValueId id, const at::Tensor& tensor, const char* what) const;
  void run(const Pass& pass, std::vector<at::Tensor>& tensors) const;

  Graph graph_;
  ValueId input_gradient_ = kNoValue, output_gradient_ = kNoValue;
  /// what is bound at each run
  std::vector<ValueId> inputs_, sums_;
  std::map<std::string, ValueId, std::less<>> parameter_gradients_;
  std::shared_ptr<const Pass> forward_, backward_;
};

}  // namespace troupe::model
