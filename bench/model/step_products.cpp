#include "bench/model/step_products.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/stopwatch.h"
#include "model/wan/sequence_layout.h"

namespace troupe::bench {
namespace {

/// The products of the epilogue, which cannot run on the meta device: the head on the noisy video's rows, the decoder
/// on the actions'.
at::Tensor last_products(const DitNetwork& network, const ParamView& params, const Carry& carry, const Batch& batch) {
  const auto layout = network.layout(batch);
  const auto actions = layout.blocks * layout.actions_per_block;
  const auto video = layout.frame_tokens() + layout.blocks * layout.block_video_tokens();
  const auto layer = [&params](const std::string& name, const at::Tensor& x) {
    return at::linear(x, params[name + ".W"].select(0, 0).t(), params[name + ".b"].select(0, 0));
  };
  const auto head = at::linear(carry.x.narrow(1, 0, video), params["head.head.weight"], params["head.head.bias"]);
  const auto decoded = layer("action_decoder.layer2", layer("action_decoder.layer1", carry.x.narrow(1, 0, actions)));
  return head.square().sum() + decoded.square().sum();
}

}  // namespace

std::vector<Product> step_products(const DitCase& dit_case, const Batch& batch) {
  const auto& units = dit_case.network->units();
  std::vector<ParamView> views;
  std::vector<at::Tensor> leaves;
  for (const auto& unit : units) {
    auto& view = views.emplace_back();
    for (const auto& spec : unit.params) {
      leaves.push_back(at::empty(spec.shape, at::TensorOptions().dtype(at::kFloat).device(at::kMeta)));
      view.set(spec.name, leaves.back().requires_grad_(true));
    }
  }
  Batch shapes;
  for (const auto& [name, tensor] : batch) {
    shapes[name] = tensor.to(at::kMeta, tensor.is_floating_point() ? at::kFloat : tensor.scalar_type());
  }
  return record_products([&] {
    auto carry = dit_case.network->prologue(views.front(), shapes);
    for (std::size_t u = 1; u + 1 < units.size(); ++u) {
      carry.x = dit_case.network->block(static_cast<std::int64_t>(u) - 1, views[u], carry, shapes);
    }
    const auto loss = last_products(*dit_case.network, views.back(), carry, shapes);
    torch::autograd::grad({loss}, leaves, {}, std::nullopt, false, /*allow_unused=*/true);
  });
}

std::vector<Product> in_dtype(const std::vector<Product>& products, at::ScalarType dtype) {
  std::map<const void*, at::Tensor> made;  // products share operands
  const auto cast = [&](const at::Tensor& x) {
    auto& y = made[x.unsafeGetTensorImpl()];
    if (!y.defined()) y = at::empty_strided(x.sizes(), x.strides(), x.options().dtype(dtype)).fill_(0.01);
    return y;
  };
  std::vector<Product> cast_products;
  for (const auto& p : products) cast_products.push_back({cast(p.a), cast(p.b), cast(p.out), p.is_attention});
  return cast_products;
}

ProductSeconds time_products(const std::vector<Product>& products, int threads) {
  at::set_num_threads(threads);
  const auto timed = [&](bool attention) {
    std::vector<Product> some;
    std::copy_if(products.begin(), products.end(), std::back_inserter(some),
                 [&](const Product& p) { return p.is_attention == attention; });
    const auto begin = std::chrono::steady_clock::now();
    run_products(some);
    return seconds_since(begin);
  };
  ProductSeconds seconds;
  seconds.linear = timed(false);
  seconds.attention = timed(true);
  return seconds;
}

}  // namespace troupe::bench
