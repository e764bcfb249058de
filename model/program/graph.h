#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/cores/kernel_work.h"
#include "model/program/recompute_level.h"

namespace troupe::model {

/// A value's index in its graph.
using ValueId = std::int32_t;
/// Stands for no value, such as the bias of a layer without one, or a gradient that is not needed.
inline constexpr ValueId kNoValue = -1;

/// Where a value's memory comes from.
enum class ValueRole : std::uint8_t {
  /// what the unit before made: x; of a loss the predictions; bound at each run
  input,
  /// what the prologue made for all units, bound at each run
  conditioning,
  /// of the micro-batch, not differentiated; bound at each run by name
  data,
  /// bound at each run by name
  parameter,
  /// a tensor of the graph itself: tables that depend on the shape alone
  constant,
  /// planned memory of the program
  intermediate,
  /// of one of the unit's results, bound at each backward
  output_gradient,
  /// f32 sums (f64 for f64) over the units, bound at each backward; operations add to them
  conditioning_gradient,
  /// f32 (f64 for f64) in a gradient slot, bound at each backward; written whole
  parameter_gradient,
};

/// One tensor of a graph: of a shape and dtype that never change, and dense but for columns of another.
struct Value {
  /// of data; of a parameter or its gradient: the parameter's, without the unit's prefix
  std::string name;
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype = at::kFloat;
  ValueRole role = ValueRole::intermediate;
  /// of a conditioning or its gradient: its place in Carry::conditioning; of an input its number; of the gradient of a
  /// result the result's
  std::size_t index = 0;
  /// of a constant
  at::Tensor constant = {};
  /// Of a parameter or its gradient that is several, each right behind the one before: names of those behind the first.
  std::vector<std::string> followers = {};
  /// Of columns (Graph::split_columns): the value that they lie in, and the first of them there. The only values that
  /// are not dense: a row begins where the whole's does, plus `first_column`.
  ValueId whole = kNoValue;
  std::int64_t first_column = 0;

  std::int64_t numel() const;
  std::int64_t bytes() const;
};

/// The tensor of every value, by id; those that no operation of the pass names are undefined.
using ValueTensors = std::span<const at::Tensor>;

/// Of what is listed by value.
inline std::size_t index_of(ValueId id) { return static_cast<std::size_t>(id); }
inline const at::Tensor& tensor_of(ValueTensors values, ValueId id) { return values[index_of(id)]; }

class Graph;
class GradientBuilder;
struct DeviceCompute;

/// One of a unit's results.
struct GraphOutput {
  /// an intermediate, or data that is handed on
  ValueId value = kNoValue;
  /// of the tensor that callers get: as many elements as the value has
  std::vector<std::int64_t> sizes;
  /// of the gradient that a backward is given
  at::ScalarType gradient_dtype = at::kFloat;
};

/// One step of a program: reads values and writes others, each value being written by one operation (but for gradient
/// sums, which operations add to in turn). Immutable; runs on any thread, sharing its work among kernels::num_threads()
/// with bits that do not depend on them.
class Operation {
 public:
  Operation(std::vector<ValueId> reads, std::vector<ValueId> writes);
  virtual ~Operation() = default;
  /// Without kNoValue. Scratch that only the operation itself uses is written.
  const std::vector<ValueId>& reads() const { return reads_; }
  const std::vector<ValueId>& writes() const { return writes_; }

  virtual void run(ValueTensors values) const = 0;
  /// The same on a device, enqueued; values are its tensors (kernels/device_tensor.h). Errors: those of the kernels.
  virtual Result<void> launch(ValueTensors values, const DeviceCompute& on) const = 0;
  /// Of running it again in a backward.
  virtual OperationCost cost() const { return OperationCost::cheap; }
  /// Adds the kernels of a run of it, for its time on cores. The default is one of family() that touches all that is
  /// read and written, once.
  virtual void add_work(const Graph& graph, std::vector<KernelWork>& work) const;
  /// Records the operations that turn the gradients of what this wrote into those of what it read. The default is that
  /// of an operation of a backward, which is not differentiated: it aborts the process.
  virtual void differentiate(GradientBuilder& gradients) const;

 protected:
  virtual KernelFamily family() const { return KernelFamily::elementwise; }

 private:
  std::vector<ValueId> reads_, writes_;
};

/// A unit as values and the operations on them, in the order in which they run: first those of the forward, then, once
/// a GradientBuilder has walked them, those of the backward. Owns both. Recorded on one thread, then immutable.
class Graph {
 public:
  ValueId add_input(std::vector<std::int64_t> sizes, at::ScalarType dtype);
  ValueId add_conditioning(std::size_t index, std::vector<std::int64_t> sizes, at::ScalarType dtype);
  ValueId add_data(const std::string& name, std::vector<std::int64_t> sizes, at::ScalarType dtype);
  ValueId add_parameter(const std::string& name, std::vector<std::int64_t> sizes, at::ScalarType dtype);
  /// Parameters of these sizes that lie one behind the other, as one with the rows of all.
  ValueId add_joined_parameters(std::vector<std::string> names, std::vector<std::int64_t> sizes, at::ScalarType dtype);
  ValueId add_constant(const at::Tensor& value);
  ValueId add_intermediate(std::vector<std::int64_t> sizes, at::ScalarType dtype);
  ValueId add_value(Value value);
  /// The columns of an intermediate [B, N, n d] as n values [B, N, d] over the same memory. Each is read by one
  /// operation of a forward.
  std::vector<ValueId> split_columns(ValueId whole, std::int64_t n);
  /// `sizes.back()` columns of `whole`.
  ValueId add_columns(ValueId whole, std::int64_t first_column, std::vector<std::int64_t> sizes);
  void add(std::unique_ptr<Operation> operation) { operations_.push_back(std::move(operation)); }
  /// The next of what the unit returns, whose gradient has its dtype.
  void add_output(ValueId value);
  /// The same for what later units read as conditioning, as a tensor of these sizes: its gradient is a sum over them,
  /// f32 (f64 for f64).
  void add_conditioning_output(ValueId value, std::vector<std::int64_t> sizes);

  const Value& value(ValueId id) const { return values_[index_of(id)]; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<std::unique_ptr<Operation>>& operations() const { return operations_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }

  /// The value that has the memory: `id`, or what it is columns of.
  ValueId memory_of(ValueId id) const { return value(id).whole == kNoValue ? id : value(id).whole; }

  /// Writes `from` to `to`, in to's dtype.
  void copy(ValueId from, ValueId to);
  /// A copy of `value` in `dtype`.
  ValueId copied(ValueId value, at::ScalarType dtype);
  /// `value` in `dtype`: itself, or the result of a conversion that is recorded once, and once more for the backward,
  /// so that it need not be kept between the two.
  ValueId converted(ValueId value, at::ScalarType dtype);
  /// `value` in the dtype that its products are computed in (kernels/product.h).
  ValueId operand(ValueId value);
  /// Forgets the conversions so far: the backward records its own.
  void begin_backward() { converted_.clear(); }

 private:
  std::vector<Value> values_;
  std::vector<std::unique_ptr<Operation>> operations_;
  std::vector<ValueId> inputs_;
  std::vector<GraphOutput> outputs_;
  std::map<std::pair<ValueId, at::ScalarType>, ValueId> converted_;
};

}  // namespace troupe::model
