#include "model/shard/unit_tape.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/dispatch.h"

namespace troupe::model {

UnitTape::UnitTape(const Network& network, const Batch& batch, double weight, std::span<const RecomputeLevel> levels,
                   UnitMemory* memory)
    : network_(network),
      batch_(batch),
      weight_(weight),
      levels_(levels.begin(), levels.end()),
      memory_(memory == nullptr ? own_memory_ : *memory) {
  memory_.begin();
}

void UnitTape::check_host(int unit) const {
  TORCH_CHECK(memory_.compute() == nullptr, network_.units()[static_cast<std::size_t>(unit)].name,
              " has no program for these tensors, and a device runs nothing else");
}

RecomputeLevel UnitTape::level_of(int unit) const {
  return levels_[std::min(static_cast<std::size_t>(unit), levels_.size() - 1)];
}

bool UnitTape::is_differentiated(const at::Tensor& tensor) const {
  return tensor.defined() && tensor.is_floating_point();
}

UnitTape::Leaves UnitTape::make_leaves(const at::Tensor& x) const {
  Leaves leaves;
  const auto leaf = [&](const at::Tensor& value) {
    if (!is_differentiated(value)) return value;
    auto copy = value.detach();
    copy.requires_grad_(true);
    leaves.inputs.push_back(copy);
    return copy;
  };
  leaves.carry.x = leaf(x);
  for (const auto& c : conditioning_) leaves.carry.conditioning.push_back(leaf(c));
  return leaves;
}

UnitTape::Recorded UnitTape::record(int unit, const ParamView& params, const at::Tensor& x) {
  const at::AutoGradMode recording(true);
  if (unit == 0) {
    const auto carry = network_.prologue(params, batch_);
    Recorded recorded{{}, {carry.x}};
    recorded.outputs.insert(recorded.outputs.end(), carry.conditioning.begin(), carry.conditioning.end());
    return recorded;
  }
  Recorded recorded{make_leaves(x), {}};
  if (unit == last_unit()) {
    outputs_ = network_.epilogue(params, recorded.leaves.carry, batch_);
    recorded.outputs = {outputs_->loss};
  } else {
    recorded.outputs = {network_.block(unit - 1, params, recorded.leaves.carry, batch_)};
  }
  return recorded;
}

std::vector<at::Tensor> UnitTape::run(int unit, const ParamView& params) {
  if (has_backward() && (level_of(unit) == RecomputeLevel::none || unit == last_unit())) {
    return (kept_[unit] = record(unit, params, x_)).outputs;
  }
  const at::NoGradGuard no_grad;
  if (unit == 0) {
    const auto carry = network_.prologue(params, batch_);
    std::vector<at::Tensor> outputs{carry.x};
    outputs.insert(outputs.end(), carry.conditioning.begin(), carry.conditioning.end());
    return outputs;
  }
  if (has_backward()) inputs_[unit] = x_;
  const Carry carry{x_, conditioning_};
  if (unit != last_unit()) return {network_.block(unit - 1, params, carry, batch_)};
  outputs_ = network_.epilogue(params, carry, batch_);
  return {outputs_->loss};
}

std::vector<at::Tensor> UnitTape::run_forward(const ProgramRun& run, const ParamView& params, int place) {
  const auto& [program, prefix, data] = run.bound;
  return program->forward({run.inputs, conditioning_, params.tensors(), prefix, data}, memory_, place);
}

bool UnitTape::forward_by_program(int unit, const ParamView& params) {
  Differentiated wanted{{}, differentiated_conditioning_};
  for (const auto& [name, tensor] : params.tensors()) {
    if (tensor.requires_grad()) wanted.parameters.insert(name);
  }
  const bool is_end = unit == 0 || unit == last_unit();
  const auto level = !has_backward()       ? RecomputeLevel::full
                     : unit == last_unit() ? RecomputeLevel::none
                                           : level_of(unit);
  auto bound =
      network_.unit_program(static_cast<std::size_t>(unit), params, {x_, conditioning_}, batch_, level, wanted);
  if (!bound.program) return false;
  ProgramRun run{std::move(bound), unit == 0 ? std::vector<at::Tensor>{} : std::vector{x_}, std::move(wanted)};
  // results of a backward's units lie apart; else those of blocks take turns
  const auto results = run_forward(run, params, has_backward() || is_end ? unit : 1 + unit % 2);
  if (unit == 0) {
    set_prologue(results);
    differentiated_conditioning_.clear();
    for (std::size_t i = 1; i < results.size(); ++i)
      differentiated_conditioning_.push_back(run.bound.program->differentiates(i));
  } else if (unit == last_unit()) {
    finish_by_program(results);
  } else {
    x_ = results.front();
  }
  if (has_backward()) program_runs_[unit] = std::move(run);
  return true;
}

void UnitTape::finish_by_program(const std::vector<at::Tensor>& predictions) {
  ProgramRun run{network_.loss_program(predictions, batch_), predictions, {}};
  const int place = last_unit() + 1;
  if (run.bound.program) losses_there_ = run_forward(run, {}, place);
  for (const auto& prediction : predictions) predictions_.push_back(memory_.downloaded(prediction));
  for (const auto& loss : losses_there_) losses_.push_back(memory_.downloaded(loss));
  if (has_backward()) program_runs_[place] = std::move(run);
}

std::vector<at::Tensor> UnitTape::prediction_gradients() {
  const int place = last_unit() + 1;
  const auto run = program_runs_.extract(place).mapped();
  TORCH_CHECK(run.bound.program, "the batch has no targets to learn from");
  const auto& graph = run.bound.program->graph();
  const auto weight = at::full({}, weight_, graph.value(graph.outputs().front().value).dtype);
  const std::vector<at::Tensor> seeds(graph.outputs().size(), weight);
  std::vector<at::Tensor> no_conditioning;
  return run.bound.program->backward({run.inputs, {}, {}, run.bound.prefix, run.bound.data}, seeds,
                                     {no_conditioning, {}}, memory_, place);
}

void UnitTape::set_prologue(const std::vector<at::Tensor>& outputs) {
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    conditioning_.push_back(outputs[i].defined() ? outputs[i].detach() : outputs[i]);
  }
  conditioning_gradients_.resize(conditioning_.size());
  x_ = outputs.front().detach();
}

void UnitTape::forward(int unit, const ParamView& params) {
  if (forward_by_program(unit, params)) return;
  check_host(unit);
  const auto outputs = run(unit, params);
  if (unit == last_unit()) return;
  if (unit == 0) return set_prologue(outputs);
  x_ = outputs.front().detach();
}

void UnitTape::backward(int unit, const ParamView& params, const ParamView& gradients) {
  if (const auto run = program_runs_.extract(unit); !run.empty()) {
    return backward_by_program(unit, run.mapped(), params, gradients);
  }
  std::vector<at::Tensor> seeds{x_gradient_};
  if (unit == last_unit()) seeds = {at::full({}, weight_, outputs_->loss.options())};
  x_ = at::Tensor();
  const auto input = inputs_.extract(unit);
  auto kept = kept_.extract(unit);
  auto recorded =
      kept.empty() ? record(unit, params, input.empty() ? at::Tensor() : input.mapped()) : std::move(kept.mapped());
  for (std::size_t i = 1; i < recorded.outputs.size(); ++i) {
    const auto& sum = conditioning_gradients_[i - 1];
    seeds.push_back(sum.defined() ? sum.to(recorded.outputs[i].scalar_type()) : sum);
  }
  differentiate(recorded.outputs, seeds, recorded.leaves, params, gradients);
  if (unit == last_unit()) outputs_->loss = outputs_->loss.detach();
}

void UnitTape::backward_by_program(int unit, const ProgramRun& run, const ParamView& params,
                                   const ParamView& gradients) {
  std::vector<at::Tensor> seeds{x_gradient_};
  if (unit == last_unit()) seeds = prediction_gradients();
  if (unit == 0) seeds.insert(seeds.end(), conditioning_gradients_.begin(), conditioning_gradients_.end());
  if (std::none_of(seeds.begin(), seeds.end(), [](const at::Tensor& seed) { return seed.defined(); })) {
    for (const auto& [name, target] : gradients.tensors()) memory_.clear(target);
    return;
  }
  auto inputs = run.inputs;
  // what a stash holds may have moved
  if (const auto before = program_runs_.find(unit - 1); before != program_runs_.end())
    inputs = {before->second.bound.program->result(memory_, unit - 1)};
  Differentiated wanted{{}, run.differentiated.conditioning};
  for (const auto& [name, target] : gradients.tensors()) wanted.parameters.insert(name);
  auto bound = run.bound;
  // an objective that freezes the unit: what was kept is another program's
  if (wanted.parameters != run.differentiated.parameters) {
    const Carry carry{inputs.empty() ? at::Tensor() : inputs.front(), conditioning_};
    bound = network_.unit_program(static_cast<std::size_t>(unit), params, carry, batch_, RecomputeLevel::full, wanted);
  }
  const auto found = bound.program->backward({inputs, conditioning_, params.tensors(), bound.prefix, bound.data}, seeds,
                                             {conditioning_gradients_, gradients.tensors()}, memory_, unit);
  x_gradient_ = found.empty() ? at::Tensor() : found.front();
}

void UnitTape::differentiate(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& seeds,
                             const Leaves& leaves, const ParamView& params, const ParamView& gradients) {
  // outputs that depend on nothing here (a prologue that passes data through) have no gradient to ask for
  std::vector<at::Tensor> from, with;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !outputs[i].requires_grad() || !seeds[i].defined()) continue;
    from.push_back(outputs[i]);
    with.push_back(seeds[i]);
  }
  auto inputs = leaves.inputs;
  for (const auto& [name, target] : gradients.tensors()) inputs.push_back(params[name]);
  std::vector<at::Tensor> found(inputs.size());
  if (!from.empty() && !inputs.empty()) {
    found = torch::autograd::grad(from, inputs, with, /*retain_graph=*/false, /*create_graph=*/false,
                                  /*allow_unused=*/true);
  }

  const at::NoGradGuard no_grad;
  std::size_t next = 0;
  if (is_differentiated(leaves.carry.x)) x_gradient_ = found[next++];
  for (std::size_t i = 0; i < leaves.carry.conditioning.size(); ++i) {
    if (!is_differentiated(leaves.carry.conditioning[i])) continue;
    const auto& gradient = found[next++];
    if (!gradient.defined()) continue;
    auto& sum = conditioning_gradients_[i];
    const auto part = gradient.to(accumulate_dtype(gradient.scalar_type()));
    sum = sum.defined() ? sum + part : part;
  }
  for (const auto& [name, target] : gradients.tensors()) {
    const auto& gradient = found[next++];
    if (gradient.defined())
      target.copy_(gradient);
    else
      target.zero_();
  }
}

const Outputs& UnitTape::outputs() {
  if (!outputs_) outputs_ = network_.outputs(predictions_, losses_, batch_);
  return *outputs_;
}

MicroResult UnitTape::result() {
  MicroResult result{outputs().loss.item<double>(), {}};
  for (const auto& [name, value] : outputs_->metrics) result.metrics[name] = value.item<double>();
  return result;
}

}  // namespace troupe::model
