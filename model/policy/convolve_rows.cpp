#include "model/policy/convolve_rows.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "kernels/threads.h"

namespace troupe::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kRowsOfPart = 16;

/// Parts that so many rows are cut into; without rows one empty part.
std::int64_t num_parts(std::int64_t rows) { return std::max<std::int64_t>(1, (rows + kRowsOfPart - 1) / kRowsOfPart); }

/// Calls body(part, first row, number of rows) for every part of so many rows, on the kernel threads.
template <class F>
void each_part_of_rows(std::int64_t rows, const F& body) {
  kernels::each_part(num_parts(rows), kernels::num_threads(), [&](std::int64_t part) {
    const at::NoGradGuard no_grad;  // each thread has its own mode
    const std::int64_t begin = part * kRowsOfPart;
    body(static_cast<std::size_t>(part), begin, std::min(kRowsOfPart, rows - begin));
  });
}

/// The input of the first layer and the output of every layer, for the pictures of one part.
variable_list activations(const at::Tensor& pictures, const std::vector<ConvolutionLayer>& layers) {
  at::Tensor h = pictures.permute({0, 3, 1, 2}).to(layers.front().weight.scalar_type());
  if (pictures.scalar_type() == at::kByte) h = h.div(255.0);
  variable_list all{h};
  for (const ConvolutionLayer& layer : layers) {
    h = at::conv2d(h, layer.weight, layer.bias, layer.stride);
    if (layer.has_relu) h.relu_();
    all.push_back(h);
  }
  return all;
}

/// Autograd differentiates with respect to the list, weights and biases layer by layer; forward() computes with
/// `layers`, which has the same tensors detached and is not kept.
struct ConvolveRows : torch::autograd::Function<ConvolveRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::TensorList&, const at::Tensor& pictures,
                            const std::vector<ConvolutionLayer>* layers) {
    const std::int64_t rows = pictures.size(0);
    std::vector<variable_list> parts(static_cast<std::size_t>(num_parts(rows)));
    each_part_of_rows(rows, [&](std::size_t part, std::int64_t begin, std::int64_t count) {
      parts[part] = activations(pictures.narrow(0, begin, count), *layers);
    });
    variable_list saved, maps;
    std::vector<std::int64_t> strides, relus;
    for (const ConvolutionLayer& layer : *layers) {
      saved.push_back(layer.weight);
      strides.push_back(layer.stride);
      relus.push_back(layer.has_relu ? 1 : 0);
    }
    for (const variable_list& part : parts) {
      saved.insert(saved.end(), part.begin(), part.end());
      maps.push_back(part.back());
    }
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["strides"] = std::move(strides);
    ctx->saved_data["relus"] = std::move(relus);
    return at::cat(maps, 0);
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const auto strides = ctx->saved_data["strides"].toIntVector(), relus = ctx->saved_data["relus"].toIntVector();
    const std::size_t depth = strides.size();
    std::vector<variable_list> of_parts(saved.size() / (depth + 1));
    each_part_of_rows(gradients[0].size(0), [&](std::size_t part, std::int64_t begin, std::int64_t count) {
      const std::size_t first = depth + part * (depth + 1);
      at::Tensor gradient = gradients[0].narrow(0, begin, count);
      variable_list& out = of_parts[part];
      out.resize(2 * depth);
      for (std::size_t i = depth; i-- > 0;) {
        if (relus[i] != 0) gradient = at::threshold_backward(gradient, saved[first + i + 1], 0);
        auto [input, weight, bias] =
            at::convolution_backward(gradient, saved[first + i], saved[i], at::OptionalIntArrayRef({saved[i].size(0)}),
                                     {strides[i], strides[i]}, {0, 0}, {1, 1}, false, {0, 0}, 1, {i > 0, true, true});
        gradient = std::move(input);
        out[2 * i] = std::move(weight);
        out[2 * i + 1] = std::move(bias);
      }
    });
    variable_list sums = std::move(of_parts.front());
    for (std::size_t part = 1; part < of_parts.size(); ++part) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add_(of_parts[part][i]);
    }
    sums.resize(sums.size() + 2);  // pictures and layers have no gradient
    return sums;
  }
};

}  // namespace

at::Tensor convolve_rows(const at::Tensor& pictures, const std::vector<ConvolutionLayer>& layers) {
  variable_list trained;
  std::vector<ConvolutionLayer> plain = layers;
  for (ConvolutionLayer& layer : plain) {
    trained.push_back(layer.weight);
    trained.push_back(layer.bias);
    layer.weight = layer.weight.detach();
    layer.bias = layer.bias.detach();
  }
  return ConvolveRows::apply(at::TensorList(trained), pictures, &plain);
}

}  // namespace troupe::model
