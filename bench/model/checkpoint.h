#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>
#include <utility>

namespace troupe::bench {

/// A part of a program that can be run again: all its inputs as a list, its outputs as a list.
using Segment = std::function<torch::autograd::variable_list(const torch::autograd::variable_list&)>;

/// Carries a segment from forward to backward.
struct HeldSegment final : torch::CustomClassHolder {
  explicit HeldSegment(Segment s) : run(std::move(s)) {}
  Segment run;
};

/// A segment whose inputs alone are kept; backward runs it again, recorded, and differentiates it.
struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const Segment& segment,
                                                at::TensorList inputs) {
    const at::NoGradGuard no_grad;
    context->save_for_backward(inputs.vec());
    context->saved_data["segment"] = c10::IValue::make_capsule(c10::make_intrusive<HeldSegment>(segment));
    return segment(inputs.vec());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const at::AutoGradMode recording(true);
    torch::autograd::variable_list inputs, wanted;
    for (const auto& saved : context->get_saved_variables()) {
      auto input = saved.detach();
      input.requires_grad_(saved.requires_grad());
      if (saved.requires_grad()) wanted.push_back(input);
      inputs.push_back(std::move(input));
    }
    const auto held = c10::static_intrusive_pointer_cast<HeldSegment>(context->saved_data["segment"].toCapsule());
    torch::autograd::variable_list from, with;
    const auto outputs = held->run(inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad() || !gradients[i].defined()) continue;
      from.push_back(outputs[i]);
      with.push_back(gradients[i]);
    }
    const auto found = torch::autograd::grad(from, wanted, with, std::nullopt, false, /*allow_unused=*/true);
    torch::autograd::variable_list result(1);  // the segment itself
    std::size_t next = 0;
    for (const auto& input : inputs) result.push_back(input.requires_grad() ? found[next++] : at::Tensor());
    return result;
  }
};

}  // namespace troupe::bench
