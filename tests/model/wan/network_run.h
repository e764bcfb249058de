#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "model/shard/flat_layout.h"
#include "model/shard/network.h"
#include "model/wan/frozen_params.h"
#include "tests/support/visible.h"

namespace troupe::testing {

using NamedTensors = std::map<std::string, at::Tensor>;

/// Views of these parameters over one buffer, as a slot lays them out, each element `fill`.
inline ParamView laid_out(const std::vector<ParamSpec>& params, at::ScalarType dtype, double fill) {
  const auto layout = make_flat_layout(params);
  return views_of(layout, at::full({layout.padded(1)}, fill, dtype), /*leaves=*/false);
}

/// Every parameter of a DiT in one view.
inline ParamView whole_view(const NamedTensors& parameters) {
  ParamView view;
  for (const auto& [name, tensor] : parameters) view.set(name, tensor);
  return view;
}

/// Parameters of every unit, larger than initial ones so that all paths matter (a zero head would hide everything).
inline NamedTensors random_parameters(const std::vector<UnitSpec>& units, std::uint64_t seed, at::ScalarType dtype) {
  NamedTensors out;
  for (const auto& unit : units) {
    const auto views = laid_out(unit.params, dtype, 0);
    for (auto spec : unit.params) {
      const bool gain = spec.init.kind == Init::Kind::ones;
      const double fan_in = spec.shape.size() > 1 ? static_cast<double>(spec.shape[1]) : 16.0;
      spec.init = {Init::Kind::normal, gain ? 0.2 : 1.0 / std::sqrt(fan_in)};
      out[spec.name] = views[spec.name];
      out[spec.name].copy_(initial_tensor(spec, seed) + (gain ? 1.0 : 0.0));
    }
  }
  return out;
}

/// The view of one unit, which holds nothing but its own parameters and residents.
inline ParamView view_of(const UnitSpec& unit, const NamedTensors& parameters) {
  ParamView view;
  for (const auto* list : {&unit.params, &unit.replicated}) {
    for (const auto& spec : *list) view.set(spec.name, parameters.at(spec.name), spec.follows);
  }
  view.set_adapter_scale(unit.adapter_scale);
  return view;
}

/// The whole network unit by unit; block outputs are appended to `trace` when it is given.
inline Outputs run_network(const Network& network, const NamedTensors& parameters, const Batch& batch,
                           std::vector<at::Tensor>* trace = nullptr) {
  const auto& units = network.units();
  auto carry = network.prologue(view_of(units.front(), parameters), batch);
  for (std::size_t i = 1; i + 1 < units.size(); ++i) {
    carry.x = network.block(static_cast<std::int64_t>(i) - 1, view_of(units[i], parameters), carry, batch);
    if (trace != nullptr) trace->push_back(carry.x);
  }
  return network.epilogue(view_of(units.back(), parameters), carry, batch);
}

/// d loss / d parameter for every parameter; a parameter that the loss does not reach gets zeros.
inline NamedTensors gradients(const at::Tensor& loss, const NamedTensors& parameters) {
  std::vector<at::Tensor> leaves;
  for (const auto& [name, tensor] : parameters) leaves.push_back(tensor);
  const auto grads = torch::autograd::grad({loss}, leaves, {}, std::nullopt, false, /*allow_unused=*/true);
  NamedTensors out;
  std::size_t i = 0;
  for (const auto& [name, tensor] : parameters) {
    out[name] = grads[i].defined() ? grads[i] : at::zeros_like(tensor);
    ++i;
  }
  return out;
}

/// Copies that record gradients.
inline NamedTensors recording(const NamedTensors& parameters) {
  NamedTensors out;
  for (const auto& [name, tensor] : parameters) out[name] = tensor.detach().clone().set_requires_grad(true);
  return out;
}

}  // namespace troupe::testing
