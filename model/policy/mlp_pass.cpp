#include "model/policy/mlp_pass.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace troupe::model {
namespace {

void fill_rows(const at::Tensor& out, const at::Tensor& row) {
  const std::int64_t width = row.numel();
  const float* from = row.const_data_ptr<float>();
  float* to = out.data_ptr<float>();
  for (std::int64_t i = 0; i < out.size(0); ++i) std::copy(from, from + width, to + i * width);
}

void activate(at::Tensor& out, Activation activation) {
  if (activation == Activation::tanh) {
    at::tanh_(out);
    return;
  }
  float* data = out.data_ptr<float>();
  for (std::int64_t i = 0, n = out.numel(); i < n; ++i) data[i] = data[i] > 0 ? data[i] : 0.0f;
}

/// Multiplies delta by the activation's slope, which its value tells.
void multiply_slope(const at::Tensor& delta, const at::Tensor& value, Activation activation) {
  float* d = delta.data_ptr<float>();
  const float* v = value.const_data_ptr<float>();
  const std::int64_t n = delta.numel();
  if (activation == Activation::tanh) {
    for (std::int64_t i = 0; i < n; ++i) d[i] *= 1.0f - v[i] * v[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) d[i] = v[i] > 0 ? d[i] : 0.0f;
  }
}

void check_weight(const at::Tensor& weight) {
  TORCH_CHECK(weight.scalar_type() == at::kFloat && weight.is_contiguous(),
              "the explicit pass takes contiguous f32 weights");
}

}  // namespace

MlpPass::MlpPass(const Mlp& mlp, std::int64_t rows) : mlp_(mlp), rows_(rows) {
  TORCH_CHECK(supports(mlp), "an Mlp with layer norm has no explicit pass");
  std::int64_t widest = 0;
  for (const auto& layer : mlp.layers()) {
    outputs_.push_back(at::empty({rows, layer.outputs}, at::kFloat));
    if (!layer.is_head) deltas_.push_back(at::empty({rows, layer.outputs}, at::kFloat));
    widest = std::max(widest, layer.outputs);
  }
  sums_.resize(static_cast<std::size_t>(widest));
}

const at::Tensor& MlpPass::forward(const ParamView& view, const at::Tensor& x) {
  TORCH_CHECK(x.scalar_type() == at::kFloat && x.is_contiguous(), "the explicit pass takes contiguous f32 rows");
  TORCH_CHECK(x.size(0) == rows_, "a pass over ", rows_, " rows got ", x.size(0));
  const at::Tensor* input = &x;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto& layer = mlp_.layers()[i];
    const auto& weight = view[layer.weight];
    check_weight(weight);
    auto& out = outputs_[i];
    if (layer.bias.empty()) {
      at::mm_out(out, *input, weight.t());
    } else {
      fill_rows(out, view[layer.bias]);
      at::addmm_out(out, out, *input, weight.t());
    }
    if (!layer.is_head) activate(out, mlp_.shape().activation);
    input = &out;
  }
  return outputs_.back();
}

void MlpPass::backward(const ParamView& view, const at::Tensor& x, const at::Tensor& d_output,
                       const ParamView* gradients, const at::Tensor* d_input) {
  const at::Tensor* delta = &d_output;
  for (std::size_t i = outputs_.size(); i-- > 0;) {
    const auto& layer = mlp_.layers()[i];
    if (gradients != nullptr) {
      auto d_weight = (*gradients)[layer.weight];
      at::mm_out(d_weight, delta->t(), i == 0 ? x : outputs_[i - 1]);
      if (!layer.bias.empty()) {
        // f64, row by row: the order of the sum is fixed, and long batches lose nothing
        std::fill(sums_.begin(), sums_.begin() + layer.outputs, 0.0);
        const float* d = delta->const_data_ptr<float>();
        for (std::int64_t row = 0; row < rows_; ++row, d += layer.outputs) {
          for (std::int64_t c = 0; c < layer.outputs; ++c)
            sums_[static_cast<std::size_t>(c)] += static_cast<double>(d[c]);
        }
        float* d_bias = (*gradients)[layer.bias].data_ptr<float>();
        for (std::int64_t c = 0; c < layer.outputs; ++c)
          d_bias[c] = static_cast<float>(sums_[static_cast<std::size_t>(c)]);
      }
    }
    if (i == 0) {
      if (d_input != nullptr) {
        at::Tensor out = *d_input;
        at::mm_out(out, *delta, view[layer.weight]);
      }
      return;
    }
    at::mm_out(deltas_[i - 1], *delta, view[layer.weight]);
    multiply_slope(deltas_[i - 1], outputs_[i - 1], mlp_.shape().activation);
    delta = &deltas_[i - 1];
  }
}

}  // namespace troupe::model
