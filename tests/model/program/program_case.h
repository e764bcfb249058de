#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/program/unit_program.h"
#include "tests/support/visible.h"

namespace troupe::testing {

using Named = std::map<std::string, at::Tensor>;

/// A unit as a program and as an ordinary function of the same tensors.
struct ProgramCase {
  at::Tensor x;
  std::vector<at::Tensor> conditioning;
  Named parameters;
  /// Returns the output, given ids in the order of the tensors and by name, those of data too.
  std::function<ValueId(Graph&, ValueId, const std::vector<ValueId>&, std::map<std::string, ValueId>&)> record;
  std::function<at::Tensor(const at::Tensor&, const std::vector<at::Tensor>&, Named&)> function;
  /// not differentiated
  Named data = {};

  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& [name, tensor] : parameters) all.insert(name);
    return all;
  }
  Graph graph() const {
    Graph graph;
    const auto in = graph.add_input(x.sizes().vec(), x.scalar_type());
    std::vector<ValueId> shared;
    for (std::size_t i = 0; i < conditioning.size(); ++i)
      shared.push_back(graph.add_conditioning(i, conditioning[i].sizes().vec(), conditioning[i].scalar_type()));
    std::map<std::string, ValueId> ids;
    for (const auto& [name, tensor] : parameters)
      ids[name] = graph.add_parameter(name, tensor.sizes().vec(), tensor.scalar_type());
    for (const auto& [name, tensor] : data)
      ids[name] = graph.add_data(name, tensor.sizes().vec(), tensor.scalar_type());
    graph.add_output(record(graph, in, shared, ids));
    return graph;
  }
  UnitProgram program(RecomputeLevel level) const { return {graph(), {names(), {}}, level}; }
};

/// What a forward and a backward with the gradient `seed` of the result give.
struct CaseResult {
  at::Tensor y, dx;
  std::vector<at::Tensor> conditioning;
  Named parameters;
};

/// A fixed gradient for a result of these sizes.
inline at::Tensor seed_like(const at::Tensor& y) {
  return at::arange(y.numel(), at::TensorOptions().dtype(at::kDouble))
      .mul(0.7)
      .add(0.5)
      .sin()
      .view(y.sizes())
      .to(y.scalar_type());
}

inline CaseResult run_program(const ProgramCase& c, const UnitProgram& program, UnitMemory& memory, int place = 1) {
  CaseResult result;
  const std::vector<at::Tensor> x{c.x};
  const UnitInputs inputs{x, c.conditioning, c.parameters, "", c.data};
  result.y = program.forward(inputs, memory, place).front();
  const auto acc = c.x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  result.conditioning.resize(c.conditioning.size());
  std::int64_t elements = 0, begin = 0;
  for (const auto& [name, tensor] : c.parameters) elements += tensor.numel();
  // one behind the other, as in a gradient slot; NaN so that a miss shows
  const auto flat = at::full({elements}, std::nan(""), at::TensorOptions().dtype(acc));
  for (const auto& [name, tensor] : c.parameters) {
    result.parameters[name] = flat.narrow(0, begin, tensor.numel()).view(tensor.sizes());
    begin += tensor.numel();
  }
  result.dx =
      program.backward(inputs, {seed_like(result.y)}, {result.conditioning, result.parameters}, memory, place).front();
  result.y = result.y.clone(), result.dx = result.dx.clone();
  return result;
}

inline CaseResult run_function(const ProgramCase& c) {
  const at::AutoGradMode recording(true);
  std::vector<at::Tensor> leaves;
  const auto leaf = [&](const at::Tensor& tensor) {
    leaves.push_back(tensor.detach().clone().requires_grad_(true));
    return leaves.back();
  };
  const auto x = leaf(c.x);
  std::vector<at::Tensor> shared;
  for (const auto& tensor : c.conditioning) shared.push_back(tensor.is_floating_point() ? leaf(tensor) : tensor);
  Named parameters;
  for (const auto& [name, tensor] : c.parameters) parameters[name] = leaf(tensor);
  for (const auto& [name, tensor] : c.data) parameters[name] = tensor;
  CaseResult result;
  const auto y = c.function(x, shared, parameters);
  auto found = torch::autograd::grad({y}, leaves, {seed_like(y)});
  result.y = y.detach();
  result.dx = found[0];
  std::size_t next = 1;
  for (const auto& tensor : shared)
    result.conditioning.push_back(tensor.requires_grad() ? found[next++] : at::Tensor());
  for (const auto& [name, tensor] : c.parameters) result.parameters[name] = found[next++];
  return result;
}

}  // namespace troupe::testing
