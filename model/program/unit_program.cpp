#include "model/program/unit_program.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/program/device_pass.h"
#include "model/program/gradient.h"
#include "model/program/memory_plan.h"
#include "model/program/recompute.h"

namespace troupe::model {
namespace {

/// The values one after the other in an arena.
std::vector<PlacedValue> in_order(const Graph& graph, const std::vector<ValueId>& ids, PlannedArena arena,
                                  std::int64_t& bytes) {
  std::vector<Lifetime> lifetimes;
  for (const auto id : ids) lifetimes.push_back({graph.value(id).bytes(), 0, 0});
  const auto plan = plan_memory(lifetimes);
  std::vector<PlacedValue> placed;
  for (std::size_t i = 0; i < ids.size(); ++i) placed.push_back({ids[i], arena, plan.offsets[i]});
  bytes = plan.bytes;
  return placed;
}

/// A tensor by name, or those of a parameter that is several as one over the same memory.
at::Tensor named_tensor(const std::map<std::string, at::Tensor>& given, std::string_view prefix, const Value& value,
                        const char* what) {
  std::string name(prefix);
  const auto find = [&](const std::string& rest) -> const at::Tensor& {
    name.resize(prefix.size());
    name += rest;
    const auto found = given.find(name);
    TORCH_CHECK(found != given.end(), "program: ", what, " ", name, " is missing");
    return found->second;
  };
  const at::Tensor& first = find(value.name);
  if (value.followers.empty()) return first;
  const char* end = static_cast<const char*>(first.const_data_ptr()) + first.nbytes();
  for (const auto& follower : value.followers) {
    const at::Tensor& next = find(follower);
    TORCH_CHECK(next.const_data_ptr() == end && next.is_contiguous(), "program: ", what, " ", name,
                " does not lie right behind the one before it");
    end += next.nbytes();
  }
  return first.as_strided({value.numel()}, {1}).view(value.sizes);
}

/// The forward's results that are its own.
std::vector<ValueId> own_results(const Graph& graph) {
  std::vector<ValueId> own;
  for (const auto& output : graph.outputs()) {
    if (graph.value(output.value).role == ValueRole::intermediate) own.push_back(output.value);
  }
  return own;
}

bool is_result(const Graph& graph, ValueId id) {
  const auto& outputs = graph.outputs();
  return std::any_of(outputs.begin(), outputs.end(), [&](const GraphOutput& output) { return output.value == id; });
}

}  // namespace

UnitProgram::UnitProgram(Graph graph) : graph_(std::move(graph)), output_gradients_(graph_.outputs().size(), kNoValue) {
  std::int64_t stash_bytes = 0;
  const auto fixed = in_order(graph_, own_results(graph_), PlannedArena::stash, stash_bytes);
  plan_forward(graph_.operations().size(), fixed, stash_bytes);
  list_bound();
}

UnitProgram::UnitProgram(Graph graph, const Differentiated& differentiated, RecomputeLevel level)
    : graph_(std::move(graph)), output_gradients_(graph_.outputs().size(), kNoValue) {
  const auto forward = graph_.operations().size();
  input_gradients_ = GradientBuilder(graph_, differentiated).build();

  const Replay replay = plan_replay(graph_, forward, level);
  auto kept = own_results(graph_);
  for (std::size_t i = 0; i < replay.kept.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (replay.kept[i] && !is_result(graph_, id)) kept.push_back(id);
  }
  std::int64_t stash_bytes = 0, gradient_bytes = 0;
  auto fixed = in_order(graph_, kept, PlannedArena::stash, stash_bytes);
  plan_forward(forward, fixed, stash_bytes);

  auto operations = replay.operations;
  for (std::size_t i = forward; i < graph_.operations().size(); ++i) operations.push_back(i);
  auto handed_down = input_gradients_;
  std::erase(handed_down, kNoValue);
  for (const auto& placed : in_order(graph_, handed_down, PlannedArena::gradient, gradient_bytes))
    fixed.push_back(placed);
  auto second = make_pass(graph_, operations, fixed);
  second.stash_bytes = stash_bytes;
  second.gradient_bytes = gradient_bytes;
  backward_ = std::make_shared<const Pass>(std::move(second));
  list_bound();
}

void UnitProgram::plan_forward(std::size_t count, const std::vector<PlacedValue>& fixed, std::int64_t stash_bytes) {
  std::vector<std::size_t> operations(count);
  std::iota(operations.begin(), operations.end(), std::size_t{0});
  auto pass = make_pass(graph_, operations, fixed);
  pass.stash_bytes = stash_bytes;
  forward_ = std::make_shared<const Pass>(std::move(pass));
}

void UnitProgram::list_bound() {
  for (std::size_t i = 0; i < graph_.values().size(); ++i) {
    const auto& value = graph_.values()[i];
    const auto id = static_cast<ValueId>(i);
    if (value.role == ValueRole::input || value.role == ValueRole::conditioning || value.role == ValueRole::data ||
        value.role == ValueRole::parameter)
      inputs_.push_back(id);
    if (value.role == ValueRole::output_gradient) output_gradients_[value.index] = id;
    if (value.role == ValueRole::conditioning_gradient) sums_.push_back(id);
    if (value.role != ValueRole::parameter_gradient) continue;
    parameter_gradients_[value.name] = id;
    for (const auto& follower : value.followers) parameter_gradients_[follower] = id;
  }
}

bool UnitProgram::differentiates(std::size_t output) const { return output_gradients_[output] != kNoValue; }

void UnitProgram::bind(std::vector<at::Tensor>& tensors, ValueId id, const at::Tensor& tensor, const char* what) const {
  const auto& value = graph_.value(id);
  TORCH_CHECK(tensor.defined() && tensor.sizes() == value.sizes && tensor.scalar_type() == value.dtype &&
                  tensor.is_contiguous(),
              "program: ", what, " ", value.name, " is not dense ", value.dtype, " ", at::IntArrayRef(value.sizes));
  tensors[index_of(id)] = tensor.requires_grad() ? tensor.detach() : tensor;
}

void UnitProgram::bind_inputs(std::vector<at::Tensor>& tensors, const UnitInputs& inputs, UnitMemory& memory) const {
  for (const auto id : inputs_) {
    const auto& value = graph_.value(id);
    if (value.role == ValueRole::input || value.role == ValueRole::conditioning) {
      const bool is_input = value.role == ValueRole::input;
      const auto& given = is_input ? inputs.inputs : inputs.conditioning;
      const char* what = is_input ? "input" : "conditioning";
      TORCH_CHECK(value.index < given.size(), "program: ", what, " ", value.index, " is missing");
      bind(tensors, id, memory.placed(given[value.index]), what);
      continue;
    }
    const bool is_data = value.role == ValueRole::data;
    const char* what = is_data ? "data" : "parameter";
    bind(tensors, id,
         is_data ? memory.placed(named_tensor(inputs.data, "", value, what))
                 : named_tensor(inputs.parameters, inputs.prefix, value, what),
         what);
  }
}

void UnitProgram::bind_gradients(std::vector<at::Tensor>& tensors, const UnitGradients& gradients,
                                 std::string_view prefix, UnitMemory& memory) const {
  for (const auto id : sums_) {
    const auto& value = graph_.value(id);
    auto& sum = gradients.conditioning.at(value.index);
    sum = sum.defined() ? sum.to(value.dtype).contiguous() : memory.zeros(graph_, id);
    bind(tensors, id, sum, "gradient of conditioning");
  }
  std::size_t bound = 0;
  for (const auto& [name, target] : gradients.parameters) {
    const auto own_name = std::string_view(name).substr(std::min(name.size(), prefix.size()));
    const auto id = parameter_gradients_.find(own_name);
    if (id == parameter_gradients_.end()) {
      memory.clear(target);
      continue;
    }
    const auto& value = graph_.value(id->second);
    // the first of several binds all
    if (value.name == own_name)
      bind(tensors, id->second, named_tensor(gradients.parameters, prefix, value, "gradient of"), "gradient of");
    ++bound;
  }
  TORCH_CHECK(bound == parameter_gradients_.size(), "program: ", bound, " gradients of parameters, want ",
              parameter_gradients_.size());
}

void UnitProgram::run(const std::shared_ptr<const Pass>& pass, std::vector<at::Tensor>& tensors,
                      UnitMemory& memory) const {
  if (const DeviceCompute* device = memory.compute()) {
    const auto enqueued = memory.graphs().run(pass, tensors, *device);
    TORCH_CHECK(enqueued, enqueued ? "" : enqueued.error().message());
  } else {
    for (const auto* operation : pass->operations) operation->run(tensors);
  }
  // what was bound is the caller's
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto role = graph_.values()[i].role;
    if (role != ValueRole::intermediate && role != ValueRole::constant) tensors[i] = at::Tensor();
  }
}

std::vector<at::Tensor> UnitProgram::forward(const UnitInputs& inputs, UnitMemory& memory, int place) const {
  const at::NoGradGuard no_grad;
  auto& tensors = memory.tensors(graph_, forward_, place);
  bind_inputs(tensors, inputs, memory);
  std::vector<at::Tensor> results;
  for (const auto& output : graph_.outputs()) results.push_back(tensors[index_of(output.value)].view(output.sizes));
  run(forward_, tensors, memory);
  return results;
}

at::Tensor UnitProgram::result(UnitMemory& memory, int place) const {
  return memory.tensors(graph_, forward_, place)[index_of(graph_.outputs().front().value)];
}

std::vector<at::Tensor> UnitProgram::backward(const UnitInputs& inputs, const std::vector<at::Tensor>& output_gradients,
                                              const UnitGradients& gradients, UnitMemory& memory, int place) const {
  TORCH_CHECK(backward_ != nullptr, "program: a forward alone has no backward");
  const at::NoGradGuard no_grad;
  auto& tensors = memory.tensors(graph_, backward_, place);
  bind_inputs(tensors, inputs, memory);
  for (std::size_t i = 0; i < output_gradients_.size(); ++i) {
    const auto id = output_gradients_[i];
    if (id == kNoValue) continue;
    const auto& value = graph_.value(id);
    const auto given = output_gradients.at(i).defined() ? output_gradients[i].contiguous().view(value.sizes)
                                                        : memory.zeros(graph_, id);
    bind(tensors, id, memory.placed(given), "gradient of a result");
  }
  bind_gradients(tensors, gradients, inputs.prefix, memory);
  run(backward_, tensors, memory);
  std::vector<at::Tensor> found;
  for (const auto id : input_gradients_) found.push_back(id == kNoValue ? at::Tensor() : tensors[index_of(id)]);
  return found;
}

}  // namespace troupe::model
