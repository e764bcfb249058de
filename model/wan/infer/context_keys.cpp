#include "model/wan/infer/context_keys.h"

#include <ATen/ATen.h>

#include <cmath>

#include "kernels/attention.h"
#include "kernels/product.h"
#include "model/wan/dit_parts.h"
#include "model/wan/layers.h"

namespace troupe::model {
namespace {

/// `suffix` "" for text, "_img" for the image.
std::vector<ContextLayer> make_layers(const DitConfig& config, const ParamView& params, const at::Tensor& context_BLd,
                                      const std::string& suffix) {
  std::vector<ContextLayer> layers;
  const auto heads = [&config](const at::Tensor& x) { return x.unflatten(-1, {config.num_heads, -1}); };
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    const auto prefix = "blocks." + std::to_string(i) + ".cross_attn.";
    const auto k = rms_norm(params, prefix + "norm_k" + suffix + ".weight",
                            linear(params, prefix + "k" + suffix, context_BLd), config.eps);
    layers.push_back({heads(k), heads(linear(params, prefix + "v" + suffix, context_BLd))});
  }
  return layers;
}

/// Rows that are not zero in every sample, counted up to the last of them.
std::int64_t real_rows(const at::Tensor& context_BLC) {
  const auto used = context_BLC.ne(0).any(2).any(0).nonzero();
  return used.numel() == 0 ? 0 : used.max().item<std::int64_t>() + 1;
}

}  // namespace

TextKeys make_text_keys(const DitConfig& config, const ParamView& params, const at::Tensor& context_BLC) {
  TORCH_CHECK(context_BLC.dim() == 3 && context_BLC.size(1) > 0, "text features ", context_BLC.sizes(),
              ", want [B, L, text width]");
  TextKeys keys;
  const auto rows = context_BLC.size(1), real = real_rows(context_BLC);
  const bool shorten = rows - real > 1;
  const auto kept = shorten ? context_BLC.narrow(1, 0, real + 1) : context_BLC;
  keys.layers = make_layers(config, params, embed_text(params, kept), "");
  keys.pad_rows = rows - real;
  if (shorten) {
    const auto& k = keys.layers.front().k;
    keys.mask = at::zeros({1, 1, 1, real + 1}, k.options().dtype(accumulate_type(k.scalar_type())));
    keys.mask.narrow(3, real, 1).fill_(std::log(static_cast<double>(keys.pad_rows)));
  }
  return keys;
}

ImageKeys make_image_keys(const DitConfig& config, const ParamView& params, const at::Tensor& clip_BLC) {
  TORCH_CHECK(clip_BLC.dim() == 3 && clip_BLC.size(1) > 0, "image features ", clip_BLC.sizes(),
              ", want [B, L, image width]");
  return {make_layers(config, params, embed_image(params, clip_BLC), "_img")};
}

at::Tensor attend(const at::Tensor& q_BTHD, const at::Tensor& k_BLHD, const at::Tensor& v_BLHD,
                  const at::Tensor& mask) {
  const auto batched = [&q_BTHD](const at::Tensor& x) {
    return x.size(0) == q_BTHD.size(0) ? x : x.expand({q_BTHD.size(0), -1, -1, -1});
  };
  const auto k = batched(k_BLHD), v = batched(v_BLHD);
  if (!mask.defined()) return attention(q_BTHD, k, v);
  // the masked form of what attention() does
  const auto dtype = q_BTHD.scalar_type();
  const auto product = q_BTHD.is_cpu() ? product_dtype(dtype) : dtype;
  const auto heads_first = [product](const at::Tensor& x) { return x.to(product).transpose(1, 2); };
  return at::scaled_dot_product_attention(heads_first(q_BTHD), heads_first(k), heads_first(v), mask.to(product))
      .transpose(1, 2)
      .to(dtype);
}

}  // namespace troupe::model
