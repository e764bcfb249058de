#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/gradient.h"
#include "model/program/graph.h"
#include "model/program/pass.h"
#include "model/program/recompute_level.h"
#include "model/program/unit_memory.h"

namespace troupe::model {

/// What a run of a unit reads. Tensors are dense and have the shapes and dtypes that the program was recorded for.
struct UnitInputs {
  /// in the order of Graph::inputs()
  const std::vector<at::Tensor>& inputs;
  /// Carry::conditioning
  const std::vector<at::Tensor>& conditioning;
  const std::map<std::string, at::Tensor>& parameters;
  /// what stands before the program's names in `parameters`: "blocks.3."
  std::string_view prefix;
  /// by name
  const std::map<std::string, at::Tensor>& data;
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
/// Runs where the memory's programs run. On a device operations are enqueued, what is bound are its tensors
/// (kernels/device_tensor.h), and inputs, conditioning, data and gradients of results that the host has are copied
/// there.
/// Errors: c10::Error on a tensor that is missing or does not have the recorded shape and dtype, and with the sentence
/// of a kernel that was not launched.
class UnitProgram {
 public:
  /// `graph`: a forward with outputs.
  UnitProgram(Graph graph, const Differentiated& differentiated, RecomputeLevel level);
  /// A forward alone, which may write to its inputs (record_append_rows).
  explicit UnitProgram(Graph graph);

  /// The unit's results, which lie in the memory's `place` until the next forward there.
  std::vector<at::Tensor> forward(const UnitInputs& inputs, UnitMemory& memory, int place) const;
  /// The gradients of the inputs, which lie in the memory's `place` until the next backward there; undefined for one on
  /// which no result depends. Not of a forward alone.
  /// `output_gradients`: of each result; an undefined one stands for zeros. But for RecomputeLevel::full the last run
  /// at `place` was this program's forward, on the same inputs.
  std::vector<at::Tensor> backward(const UnitInputs& inputs, const std::vector<at::Tensor>& output_gradients,
                                   const UnitGradients& gradients, UnitMemory& memory, int place) const;

  /// What the last forward at `place` gave, where it lies now: the first result.
  at::Tensor result(UnitMemory& memory, int place) const;

  /// Whether a backward has a gradient of that result to ask for.
  bool differentiates(std::size_t output) const;

  const Graph& graph() const { return graph_; }
  const Pass& forward_pass() const { return *forward_; }
  const Pass& backward_pass() const { return *backward_; }

 private:
  /// The first `count` operations as the forward; `fixed` lies outside of the workspace.
  void plan_forward(std::size_t count, const std::vector<PlacedValue>& fixed, std::int64_t stash_bytes);
  /// Finds what is bound.
  void list_bound();
  void bind_inputs(std::vector<at::Tensor>& tensors, const UnitInputs& inputs, UnitMemory& memory) const;
  void bind_gradients(std::vector<at::Tensor>& tensors, const UnitGradients& gradients, std::string_view prefix,
                      UnitMemory& memory) const;
  void bind(std::vector<at::Tensor>& tensors, ValueId id, const at::Tensor& tensor, const char* what) const;
  void run(const std::shared_ptr<const Pass>& pass, std::vector<at::Tensor>& tensors, UnitMemory& memory) const;

  Graph graph_;
  /// of each input; kNoValue: no result depends on it
  std::vector<ValueId> input_gradients_;
  /// of each output; kNoValue: none is asked for
  std::vector<ValueId> output_gradients_;
  /// what is bound at each run
  std::vector<ValueId> inputs_, sums_;
  std::map<std::string, ValueId, std::less<>> parameter_gradients_;
  std::shared_ptr<const Pass> forward_, backward_;
};

}  // namespace troupe::model
