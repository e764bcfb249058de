#include "model/program/graph.h"

#include <ATen/ATen.h>

#include "base/check.h"
#include "kernels/dispatch.h"
#include "kernels/product.h"
#include "model/program/device_pass.h"
#include "model/program/gradient.h"
#include "model/program/slices.h"

namespace troupe::model {
namespace {

std::vector<ValueId> without_missing(std::vector<ValueId> ids) {
  std::erase(ids, kNoValue);
  return ids;
}

class ConvertOperation final : public Operation {
 public:
  ConvertOperation(ValueId from, ValueId to) : Operation({from}, {to}), from_(from), to_(to) {}
  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    const auto &to = tensor_of(values, to_), &from = tensor_of(values, from_);
    to.is_contiguous() && from.is_contiguous() ? convert_out(to, from) : copy_rows(to, from);
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto &to = tensor_of(values, to_), &from = tensor_of(values, from_);
    if (!to.is_contiguous() || !from.is_contiguous()) {
      return on.kernels.copy_rows(to.size(0), to.size(1), to.size(2), block_of(from), block_of(to), on.stream);
    }
    if (to.scalar_type() == from.scalar_type()) {
      on.stream.copy(bytes_of(to), bytes_of(from), static_cast<std::int64_t>(to.nbytes()));
      return {};
    }
    element_type(from);
    return on.kernels.convert(element_type(to), to.numel(), from.const_data_ptr(), to.data_ptr(), on.stream);
  }
  /// Operations name the value that was converted, not its operand: nothing arrives here.
  void differentiate(GradientBuilder&) const override {}

 private:
  ValueId from_, to_;
};

}  // namespace

std::int64_t Value::numel() const {
  std::int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return count;
}

std::int64_t Value::bytes() const { return numel() * static_cast<std::int64_t>(c10::elementSize(dtype)); }

Operation::Operation(std::vector<ValueId> reads, std::vector<ValueId> writes)
    : reads_(without_missing(std::move(reads))), writes_(without_missing(std::move(writes))) {}

void Operation::add_work(const Graph& graph, std::vector<KernelWork>& work) const {
  double bytes = 0;
  bool is_bf16 = false;
  for (const auto* ids : {&reads_, &writes_}) {
    for (const auto id : *ids) {
      bytes += static_cast<double>(graph.value(id).bytes());
      is_bf16 = is_bf16 || graph.value(id).dtype == at::kBFloat16;
    }
  }
  work.push_back({.family = family(), .is_bf16 = is_bf16, .bytes = bytes});
}

void Operation::differentiate(GradientBuilder&) const {
  TROUPE_CHECK(false, "only operations of a forward are differentiated");
}

ValueId Graph::add_value(Value value) {
  values_.push_back(std::move(value));
  return static_cast<ValueId>(values_.size()) - 1;
}

ValueId Graph::add_input(std::vector<std::int64_t> sizes, at::ScalarType dtype) {
  const auto id = add_value({"x", std::move(sizes), dtype, ValueRole::input, inputs_.size()});
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_conditioning(std::size_t index, std::vector<std::int64_t> sizes, at::ScalarType dtype) {
  return add_value({"", std::move(sizes), dtype, ValueRole::conditioning, index});
}

ValueId Graph::add_data(const std::string& name, std::vector<std::int64_t> sizes, at::ScalarType dtype) {
  return add_value({name, std::move(sizes), dtype, ValueRole::data});
}

void Graph::add_output(ValueId id) { outputs_.push_back({id, value(id).sizes, value(id).dtype}); }

void Graph::add_conditioning_output(ValueId id, std::vector<std::int64_t> sizes) {
  const auto dtype = value(id).dtype;
  outputs_.push_back({id, std::move(sizes), c10::isFloatingType(dtype) ? accumulate_dtype(dtype) : dtype});
}

ValueId Graph::add_parameter(const std::string& name, std::vector<std::int64_t> sizes, at::ScalarType dtype) {
  return add_value({name, std::move(sizes), dtype, ValueRole::parameter});
}

ValueId Graph::add_joined_parameters(std::vector<std::string> names, std::vector<std::int64_t> sizes,
                                     at::ScalarType dtype) {
  sizes.front() *= static_cast<std::int64_t>(names.size());
  const auto id = add_parameter(names.front(), std::move(sizes), dtype);
  values_.back().followers.assign(names.begin() + 1, names.end());
  return id;
}

ValueId Graph::add_constant(const at::Tensor& value) {
  return add_value({"", value.sizes().vec(), value.scalar_type(), ValueRole::constant, 0, value.contiguous()});
}

ValueId Graph::add_intermediate(std::vector<std::int64_t> sizes, at::ScalarType dtype) {
  return add_value({"", std::move(sizes), dtype, ValueRole::intermediate});
}

ValueId Graph::add_columns(ValueId whole, std::int64_t first_column, std::vector<std::int64_t> sizes) {
  const auto id = add_intermediate(std::move(sizes), value(whole).dtype);
  values_.back().whole = whole, values_.back().first_column = first_column;
  return id;
}

std::vector<ValueId> Graph::split_columns(ValueId whole, std::int64_t n) {
  auto sizes = value(whole).sizes;
  sizes.back() /= n;
  std::vector<ValueId> columns;
  for (std::int64_t i = 0; i < n; ++i) columns.push_back(add_columns(whole, i * sizes.back(), sizes));
  return columns;
}

void Graph::copy(ValueId from, ValueId to) { add(std::make_unique<ConvertOperation>(from, to)); }

ValueId Graph::copied(ValueId from, at::ScalarType dtype) {
  const auto to = add_intermediate(value(from).sizes, dtype);
  copy(from, to);
  return to;
}

ValueId Graph::converted(ValueId from, at::ScalarType dtype) {
  if (value(from).dtype == dtype) return from;
  const auto known = converted_.find({from, dtype});
  if (known != converted_.end()) return known->second;
  return converted_[{from, dtype}] = copied(from, dtype);
}

ValueId Graph::operand(ValueId id) { return converted(id, product_dtype(value(id).dtype)); }

}  // namespace troupe::model
