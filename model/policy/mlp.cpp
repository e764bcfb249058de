#include "model/policy/mlp.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

namespace troupe::model {

MlpShape make_mlp_shape(const PolicyConfig& policy, std::string prefix, std::int64_t inputs,
                        std::vector<std::int64_t> hidden, std::int64_t outputs, std::optional<double> head_gain) {
  MlpShape shape{.prefix = std::move(prefix),
                 .inputs = inputs,
                 .hidden = std::move(hidden),
                 .outputs = outputs,
                 .activation = policy.activation};
  if (head_gain) shape.head = Init{Init::Kind::orthogonal, *head_gain};
  return shape;
}

Mlp::Mlp(MlpShape shape) : shape_(std::move(shape)) {
  auto widths = shape_.hidden;
  widths.push_back(shape_.outputs);
  std::int64_t inputs = shape_.inputs;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const auto name = shape_.prefix + "." + std::to_string(i);
    const bool is_head = i + 1 == widths.size();
    Layer layer{inputs, widths[i], name + ".weight", name + ".bias", {}, {}, is_head};
    if (is_head && !shape_.head_bias) layer.bias.clear();
    if (shape_.layer_norm && !is_head) {
      layer.norm_weight = name + ".norm.weight";
      layer.norm_bias = name + ".norm.bias";
    }
    layers_.push_back(std::move(layer));
    inputs = widths[i];
  }
}

std::vector<ParamSpec> Mlp::params() const {
  std::vector<ParamSpec> list;
  for (const auto& layer : layers_) {
    const Init uniform{Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(layer.inputs))};
    const bool by_fan_in = shape_.init == MlpInit::fan_in;
    Init weight = by_fan_in ? uniform : Init{Init::Kind::orthogonal, std::numbers::sqrt2};
    if (layer.is_head && shape_.head) weight = *shape_.head;
    list.push_back({layer.weight, {layer.outputs, layer.inputs}, weight});
    if (!layer.bias.empty()) list.push_back({layer.bias, {layer.outputs}, by_fan_in ? uniform : Init{}});
    if (!layer.norm_weight.empty()) {
      list.push_back({layer.norm_weight, {layer.outputs}, {Init::Kind::ones, 0}});
      list.push_back({layer.norm_bias, {layer.outputs}, {}});
    }
  }
  return list;
}

at::Tensor Mlp::forward(const ParamView& view, const at::Tensor& x) const {
  at::Tensor h = x;
  for (const auto& layer : layers_) {
    const auto& weight = view[layer.weight];
    h = at::linear(h.to(weight.scalar_type()), weight, layer.bias.empty() ? at::Tensor() : view[layer.bias]);
    if (layer.is_head) break;
    if (!layer.norm_weight.empty())
      h = at::layer_norm(h, {layer.outputs}, view[layer.norm_weight], view[layer.norm_bias], 1e-5);
    h = shape_.activation == Activation::tanh ? h.tanh() : h.relu();
  }
  return h.to(at::kFloat);
}

}  // namespace troupe::model
