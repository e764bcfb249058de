#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/program/graph.h"

namespace troupe::model {

/// What a backward finds gradients of, besides those of the unit's inputs.
struct Differentiated {
  /// names of parameters
  std::set<std::string> parameters = {};
  /// by place in Carry::conditioning: whether it gets a gradient; places behind the end do. Integers never do.
  std::vector<bool> conditioning = {};

  bool has_conditioning(std::size_t index) const { return index >= conditioning.size() || conditioning[index]; }
};

/// Records a graph's backward: walks the forward's operations from last to first and lets each turn the gradients of
/// what it wrote into those of what it read. Gradients of a value that is used twice are summed in that order; those of
/// the conditioning are added, in f32, to sums over the units; those of parameters are written in f32 where they are
/// bound. What needs no gradient gets no operation. Used once, by the thread that records.
class GradientBuilder {
 public:
  /// The graph has outputs and no backward yet.
  GradientBuilder(Graph& graph, const Differentiated& differentiated);

  /// Records all, for gradients of those outputs that depend on what is differentiated; returns the gradients of the
  /// graph's inputs, intermediates of their dtypes; kNoValue for one on which no output depends.
  std::vector<ValueId> build();

  // What Operation::differentiate calls.
  Graph& graph() { return graph_; }
  /// Whether someone asks for the gradient of `value`. False for kNoValue.
  bool needs(ValueId value) const;
  /// The gradient of a value that an operation wrote, in the value's dtype or in a wider one; kNoValue: none flows.
  ValueId gradient(ValueId value) const { return gradients_[index_of(value)]; }
  /// The same in the value's own dtype.
  ValueId rounded_gradient(ValueId value);
  /// A part of the gradient of `value`; the first is taken as it is, or copied to its place among columns. Nothing
  /// happens where none is needed.
  void add(ValueId value, ValueId gradient);
  /// Where to write the gradient of a parameter, f32 (f64 for f64), of the parameter's shape: its place in the gradient
  /// slot, or scratch where it is not trained. Once for each parameter.
  ValueId parameter_gradient(ValueId parameter);
  void record(std::unique_ptr<Operation> operation) { graph_.add(std::move(operation)); }
  /// Memory for a gradient of `value`: a new intermediate; for columns, in their own dtype, their place in the gradient
  /// of the whole.
  ValueId like(ValueId value, at::ScalarType dtype);
  /// The sum over the units that the gradient of a conditioning that needs one is added to, f32 (f64 for f64).
  ValueId conditioning_sum(ValueId conditioning);

 private:
  /// The gradient of an input: an intermediate of its own, or kNoValue.
  ValueId input_gradient(ValueId input);
  /// The place of columns in the gradient of the whole, which is made for the first of them.
  ValueId place_in_whole(ValueId columns);
  /// Whether all columns of a value, if it is read by columns, have got a gradient.
  bool has_all_columns(ValueId whole) const;

  Graph& graph_;
  const std::size_t forward_;
  std::vector<bool> needs_;
  /// of forward values
  std::vector<ValueId> gradients_;
  /// columns whose place in the gradient of the whole is written
  std::set<ValueId> written_columns_;
};

}  // namespace troupe::model
