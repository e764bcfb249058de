#include "model/policy/mlp_pass.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/threads.h"

namespace troupe::model {
namespace {

DenseActivation activation_of(Activation activation) {
  return activation == Activation::tanh ? DenseActivation::tanh : DenseActivation::relu;
}

DenseShape shape_of(const Mlp::Layer& layer, std::int64_t rows) {
  return {.rows = rows, .inputs = layer.inputs, .outputs = layer.outputs};
}

const float* plain(const at::Tensor& x) {
  TORCH_CHECK(x.scalar_type() == at::kFloat && x.is_contiguous(), "the explicit pass takes contiguous f32 tensors");
  return x.const_data_ptr<float>();
}

float* plain_out(const at::Tensor& x) {
  plain(x);
  return x.data_ptr<float>();
}

}  // namespace

MlpPass::MlpPass(const Mlp& mlp, std::int64_t rows) : mlp_(mlp), rows_(rows) {
  TORCH_CHECK(!mlp.shape().layer_norm, "an Mlp with layer norm has no explicit pass");
  for (const auto& layer : mlp.layers()) {
    outputs_.push_back(at::empty({rows, layer.outputs}, at::kFloat));
    if (!layer.is_head) deltas_.push_back(at::empty({rows, layer.outputs}, at::kFloat));
  }
}

std::int64_t MlpPass::largest_layer() const noexcept {
  std::int64_t largest = 0;
  for (const auto& layer : mlp_.layers()) largest = std::max(largest, layer.inputs * layer.outputs);
  return largest;
}

const at::Tensor& MlpPass::forward(const ParamView& view, const at::Tensor& x) {
  TORCH_CHECK(x.size(0) == rows_, "a pass over ", rows_, " rows got ", x.size(0));
  return forward(view, plain(x), x.size(1));
}

const at::Tensor& MlpPass::forward(const ParamView& view, const float* input, std::int64_t stride) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto& layer = mlp_.layers()[i];
    const auto f = layer.is_head ? DenseActivation::none : activation_of(mlp_.shape().activation);
    const float* const bias = layer.bias.empty() ? nullptr : plain(view[layer.bias]);
    float* const out = outputs_[i].data_ptr<float>();
    dense_forward(shape_of(layer, rows_), input, stride, plain(view[layer.weight]), bias, f, out, workspace_,
                  num_threads());
    input = out;
    stride = layer.outputs;
  }
  return outputs_.back();
}

void MlpPass::backward(const ParamView& view, const at::Tensor& x, const at::Tensor& d_output,
                       const ParamView* gradients, const at::Tensor* d_input) {
  const float* delta = plain(d_output);
  for (std::size_t i = outputs_.size(); i-- > 0;) {
    const auto& layer = mlp_.layers()[i];
    const DenseShape shape = shape_of(layer, rows_);
    const float* const input = plain(i == 0 ? x : outputs_[i - 1]);
    if (gradients != nullptr) {
      float* const d_bias = layer.bias.empty() ? nullptr : plain_out((*gradients)[layer.bias]);
      dense_backward_params(shape, delta, input, layer.inputs, plain_out((*gradients)[layer.weight]), d_bias,
                            workspace_, num_threads());
    }
    const at::Tensor* const target = i > 0 ? &deltas_[i - 1] : d_input;
    if (target == nullptr) return;
    // below the first layer there is no activation
    const auto f = i > 0 ? activation_of(mlp_.shape().activation) : DenseActivation::none;
    float* const out = plain_out(*target);
    dense_backward_input(shape, delta, plain(view[layer.weight]), f, input, out, workspace_, num_threads());
    delta = out;
  }
}

}  // namespace troupe::model
