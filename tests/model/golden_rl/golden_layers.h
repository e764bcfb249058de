#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/model/golden_rl/cases.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// The inputs "<prefix>..." of a case as leaves, without the prefix.
inline TensorMap golden_leaves(const RlCase& golden, const std::string& prefix) {
  auto weights = with_prefix(golden.inputs(), prefix);
  for (auto& [name, tensor] : weights) tensor = leaf(tensor);
  return weights;
}

/// Applies the layers "<prefix><i>.weight" (and ".bias") in the order of i: a matrix is a linear layer, a vector a
/// layer normalisation (eps 1e-5), a missing index between two layers the activation. `ends_active`: the activation
/// follows the last layer too.
inline at::Tensor golden_layers(const TensorMap& weights, const std::string& prefix, at::Tensor x, bool ends_active,
                                const std::function<at::Tensor(const at::Tensor&)>& activation) {
  int last = -1;
  for (const auto& [name, tensor] : with_prefix(weights, prefix)) last = std::max(last, std::stoi(name));
  if (last < 0) throw std::out_of_range("no layers " + prefix + "*");
  for (int i = 0; i <= last; ++i) {
    const auto name = prefix + std::to_string(i);
    const auto found = weights.find(name + ".weight");
    if (found == weights.end()) {
      x = activation(x);
      continue;
    }
    const auto bias = weights.count(name + ".bias") > 0 ? weights.at(name + ".bias") : at::Tensor();
    x = found->second.dim() == 2 ? at::linear(x, found->second, bias)
                                 : at::layer_norm(x, {x.size(-1)}, found->second, bias, 1e-5);
  }
  return ends_active ? activation(x) : x;
}

inline at::Tensor golden_tanh(const at::Tensor& x) { return x.tanh(); }
inline at::Tensor golden_relu(const at::Tensor& x) { return x.relu(); }

/// Compares d(loss)/d(weight) with every "<prefix><weight>" that the variant states; fails when it states none.
inline void expect_gradients(const at::Tensor& loss, const TensorMap& weights, const RlVariant& variant,
                             const std::string& prefix, const RlTolerance& tolerance) {
  std::vector<std::string> names;
  std::vector<at::Tensor> leaves;
  for (const auto& [name, want] : with_prefix(variant.out, prefix)) {
    names.push_back(name);
    leaves.push_back(weights.at(name));
  }
  EXPECT_FALSE(names.empty()) << variant.name << " states no " << prefix << "*";
  const auto found = gradients(loss, leaves);
  for (std::size_t i = 0; i < names.size(); ++i) {
    expect_close(found[i], variant.at(prefix + names[i]), tolerance, variant.name + " " + prefix + names[i]);
  }
}

}  // namespace troupe::testing
