#include "tests/model/shard/chain_network.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/random.h"
#include "model/shard/flat_layout.h"
#include "model/shard/init.h"

namespace troupe::model {
namespace {

Init normal(double scale) { return {Init::Kind::normal, scale}; }

}  // namespace

ChainNetwork::ChainNetwork(ChainShape s) {
  units_.push_back({"embed",
                    "embed",
                    {{"embed.weight", {s.inputs, s.width}, normal(0.5)},
                     {"embed.bias", {s.width}, {Init::Kind::uniform, 0.1}},
                     {"embed.condition", {s.inputs, 3}, normal(0.5)},
                     {"embed.spare", {11}, {Init::Kind::ones, 0}}}});
  for (std::int64_t i = 0; i < s.blocks; ++i) {
    const auto prefix = "blocks." + std::to_string(i) + ".";
    units_.push_back({"blocks." + std::to_string(i),
                      "block",
                      {{prefix + "up", {s.width, s.hidden}, normal(0.3)},
                       {prefix + "condition", {3, s.hidden}, normal(0.3)},
                       {prefix + "unused", {5, 5}, normal(1.0)},
                       {prefix + "down", {s.hidden, s.width}, normal(0.2)},
                       {prefix + "gain", {s.width}, {Init::Kind::ones, 0}}}});
  }
  units_.push_back({"head",
                    "head",
                    {{"head.weight", {s.width, s.outputs}, normal(0.3)},
                     {"head.condition", {3, s.outputs}, {Init::Kind::zeros, 0}}}});
}

Carry ChainNetwork::prologue(const ParamView& p, const Batch& batch) const {
  const auto input = batch.at("input").to(p["embed.weight"].scalar_type());
  const auto rows = at::arange(input.size(0), at::kLong);
  return {(input.matmul(p["embed.weight"]) + p["embed.bias"]).tanh(),
          {input.matmul(p["embed.condition"]), input.sum(1) * p["embed.bias"].sum(), rows}};
}

at::Tensor ChainNetwork::block(std::int64_t index, const ParamView& p, const Carry& carry, const Batch&) const {
  const auto prefix = "blocks." + std::to_string(index) + ".";
  const auto condition = carry.conditioning[0].index_select(0, carry.conditioning[2]);
  const auto hidden = (carry.x.matmul(p[prefix + "up"]) + condition.matmul(p[prefix + "condition"])).tanh();
  return carry.x + hidden.matmul(p[prefix + "down"]) * p[prefix + "gain"];
}

Outputs ChainNetwork::epilogue(const ParamView& p, const Carry& carry, const Batch& batch) const {
  const auto y = carry.x.matmul(p["head.weight"]) + carry.conditioning[0].matmul(p["head.condition"]);
  const auto error = y.to(at::kFloat) - batch.at("target");
  return {error.square().mean(), {{"absolute_error", error.abs().mean()}}, {{"y", y}}};
}

Batch chain_batch(std::int64_t index, std::int64_t samples) {
  const ChainShape shape;
  CounterRng rng(17, rng_stream::toy_scene, static_cast<std::uint64_t>(index));
  auto input = at::empty({samples, shape.inputs});
  float* values = input.data_ptr<float>();
  for (std::int64_t i = 0; i < input.numel(); ++i) values[i] = rng.normal();
  const auto target = (input.narrow(1, 0, shape.outputs) * 1.5).sin() + input.sum(1, true) * 0.1;
  return {{"input", input}, {"target", target}};
}

PlainChain::PlainChain(const ChainNetwork& network, std::uint64_t seed) : network_(network) {
  for (const auto& unit : network.units()) {
    const auto layout = make_flat_layout(unit.params);
    auto flat = at::zeros({layout.numel});
    fill_initial(unit, layout, seed, 0, {flat.data_ptr<float>(), static_cast<std::size_t>(layout.numel)});
    for (const auto& entry : layout.entries) {
      auto value = flat.narrow(0, entry.offset, entry.numel).view(entry.shape).clone();
      parameters_[entry.name] = value.requires_grad_(true);
      gradients_[entry.name] = at::zeros_like(value);
    }
  }
}

void PlainChain::zero_gradients() {
  for (auto& [name, gradient] : gradients_) gradient.zero_();
}

double PlainChain::accumulate(const Batch& batch, double weight) {
  std::vector<ParamView> views;
  std::vector<at::Tensor> inputs;
  std::vector<std::string> names;
  for (const auto& unit : network_.units()) {
    auto& view = views.emplace_back();
    for (const auto& param : unit.params) {
      view.set(param.name, parameters_.at(param.name));
      inputs.push_back(parameters_.at(param.name));
      names.push_back(param.name);
    }
  }
  auto carry = network_.prologue(views.front(), batch);
  for (std::size_t u = 1; u + 1 < views.size(); ++u) {
    carry.x = network_.block(static_cast<std::int64_t>(u) - 1, views[u], carry, batch);
  }
  const auto loss = network_.epilogue(views.back(), carry, batch).loss;
  const auto found = torch::autograd::grad({loss * weight}, inputs, {}, std::nullopt, false, true);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].defined()) gradients_.at(names[i]).add_(found[i]);
  }
  return loss.item<double>();
}

}  // namespace troupe::model
