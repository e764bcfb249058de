#include "model/program/unit_program.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/program/gradient.h"
#include "model/program/memory_plan.h"
#include "model/program/recompute.h"

namespace troupe::model {
namespace {

/// The values one after the other.
std::vector<PlacedValue> in_stash(const Graph& graph, const std::vector<ValueId>& ids, std::int64_t& bytes) {
  std::vector<Lifetime> lifetimes;
  for (const auto id : ids) lifetimes.push_back({graph.value(id).bytes(), 0, 0});
  const auto plan = plan_memory(lifetimes);
  std::vector<PlacedValue> placed;
  for (std::size_t i = 0; i < ids.size(); ++i) placed.push_back({ids[i], PlannedArena::stash, plan.offsets[i]});
  bytes = plan.bytes;
  return placed;
}

}  // namespace

UnitProgram::UnitProgram(Graph graph, const std::set<std::string>& trained, RecomputeLevel level)
    : graph_(std::move(graph)) {
  const auto forward = graph_.operations().size();
  input_gradient_ = GradientBuilder(graph_, trained).build();

  const Replay replay = plan_replay(graph_, forward, level);
  std::vector<ValueId> kept{graph_.output()};
  for (std::size_t i = 0; i < replay.kept.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (replay.kept[i] && id != graph_.output()) kept.push_back(id);
  }
  std::int64_t stash_bytes = 0;
  auto fixed = in_stash(graph_, kept, stash_bytes);

  std::vector<std::size_t> operations(forward);
  std::iota(operations.begin(), operations.end(), std::size_t{0});
  auto first = make_pass(graph_, operations, fixed);
  first.stash_bytes = stash_bytes;
  forward_ = std::make_shared<const Pass>(std::move(first));

  operations = replay.operations;
  for (std::size_t i = forward; i < graph_.operations().size(); ++i) operations.push_back(i);
  fixed.push_back({input_gradient_, PlannedArena::gradient, 0});
  auto second = make_pass(graph_, operations, fixed);
  second.stash_bytes = stash_bytes;
  second.gradient_bytes = graph_.value(input_gradient_).bytes();
  backward_ = std::make_shared<const Pass>(std::move(second));

  for (std::size_t i = 0; i < graph_.values().size(); ++i) {
    const auto& value = graph_.values()[i];
    const auto id = static_cast<ValueId>(i);
    if (value.role == ValueRole::conditioning || value.role == ValueRole::parameter) inputs_.push_back(id);
    if (value.role == ValueRole::output_gradient) output_gradient_ = id;
    if (value.role == ValueRole::conditioning_gradient) sums_.push_back(id);
    if (value.role == ValueRole::parameter_gradient) parameter_gradients_[value.name] = id;
  }
}

void UnitProgram::bind(std::vector<at::Tensor>& tensors, ValueId id, const at::Tensor& tensor, const char* what) const {
  const auto& value = graph_.value(id);
  TORCH_CHECK(tensor.defined() && tensor.sizes() == value.sizes && tensor.scalar_type() == value.dtype &&
                  tensor.is_contiguous(),
              "program: ", what, " ", value.name, " is not dense ", value.dtype, " ", at::IntArrayRef(value.sizes));
  tensors[index_of(id)] = tensor.requires_grad() ? tensor.detach() : tensor;
}

void UnitProgram::bind_inputs(std::vector<at::Tensor>& tensors, const UnitInputs& inputs) const {
  bind(tensors, graph_.input(), inputs.x, "input");
  std::string name(inputs.prefix);
  for (const auto id : inputs_) {
    const auto& value = graph_.value(id);
    if (value.role == ValueRole::conditioning) {
      TORCH_CHECK(value.index < inputs.conditioning.size(), "program: conditioning ", value.index, " is missing");
      bind(tensors, id, inputs.conditioning[value.index], "conditioning");
      continue;
    }
    name.resize(inputs.prefix.size());
    const auto found = inputs.parameters.find(name += value.name);
    TORCH_CHECK(found != inputs.parameters.end(), "program: parameter ", name, " is missing");
    bind(tensors, id, found->second, "parameter");
  }
}

void UnitProgram::bind_gradients(std::vector<at::Tensor>& tensors, const UnitGradients& gradients,
                                 std::string_view prefix) const {
  for (const auto id : sums_) {
    const auto& value = graph_.value(id);
    auto& sum = gradients.conditioning.at(value.index);
    const auto options = at::TensorOptions().dtype(value.dtype);
    sum = sum.defined() ? sum.to(value.dtype).contiguous() : at::zeros(value.sizes, options);
    bind(tensors, id, sum, "gradient of conditioning");
  }
  std::size_t bound = 0;
  for (const auto& [name, target] : gradients.parameters) {
    const auto id = parameter_gradients_.find(std::string_view(name).substr(std::min(name.size(), prefix.size())));
    if (id == parameter_gradients_.end()) {
      target.zero_();
      continue;
    }
    bind(tensors, id->second, target, "gradient of");
    ++bound;
  }
  TORCH_CHECK(bound == parameter_gradients_.size(), "program: ", bound, " gradients of parameters, want ",
              parameter_gradients_.size());
}

void UnitProgram::run(const Pass& pass, std::vector<at::Tensor>& tensors) const {
  for (const auto* operation : pass.operations) operation->run(tensors);
  // what was bound is the caller's
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto role = graph_.values()[i].role;
    if (role != ValueRole::intermediate && role != ValueRole::constant) tensors[i] = at::Tensor();
  }
}

at::Tensor UnitProgram::forward(const UnitInputs& inputs, UnitMemory& memory, int place) const {
  const at::NoGradGuard no_grad;
  auto& tensors = memory.tensors(graph_, forward_, place);
  bind_inputs(tensors, inputs);
  run(*forward_, tensors);
  return tensors[index_of(graph_.output())];
}

at::Tensor UnitProgram::result(UnitMemory& memory, int place) const {
  return memory.tensors(graph_, forward_, place)[index_of(graph_.output())];
}

at::Tensor UnitProgram::backward(const UnitInputs& inputs, const at::Tensor& output_gradient,
                                 const UnitGradients& gradients, UnitMemory& memory, int place) const {
  const at::NoGradGuard no_grad;
  auto& tensors = memory.tensors(graph_, backward_, place);
  bind_inputs(tensors, inputs);
  bind(tensors, output_gradient_, output_gradient.contiguous(), "gradient of the result");
  bind_gradients(tensors, gradients, inputs.prefix);
  run(*backward_, tensors);
  return tensors[index_of(input_gradient_)];
}

}  // namespace troupe::model
