#include "model/wan/clip_encoder.h"

#include <ATen/ATen.h>

#include <cmath>

#include "model/wan/layers.h"

namespace troupe::model {
namespace {

constexpr double kLayerNormEps = 1e-5;

at::Tensor layer_norm(const ParamView& params, const std::string& prefix, const at::Tensor& x) {
  return affine_layer_norm(params, prefix, x, kLayerNormEps).to(x.scalar_type());
}

at::Tensor self_attention(const ImageEncoderConfig& config, const ParamView& params, const std::string& prefix,
                          const at::Tensor& x) {
  const auto qkv =
      linear(params, prefix + "to_qkv", x).unflatten(-1, {3, config.num_heads, -1}).permute({2, 0, 3, 1, 4});
  const auto a = at::scaled_dot_product_attention(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2));
  return linear(params, prefix + "proj", a.transpose(1, 2).flatten(2));
}

}  // namespace

std::vector<ParamSpec> clip_params(const ImageEncoderConfig& config) {
  const auto d = config.dim, p = config.patch_size;
  const auto patches = (config.image_size / p) * (config.image_size / p);
  const Init small{Init::Kind::normal, 1.0 / std::sqrt(static_cast<double>(d))};
  std::vector<ParamSpec> list;
  // the contrastive temperature takes no part in the features
  list.push_back({"log_scale", {}, {Init::Kind::ones, 0}});
  list.push_back({"visual.cls_embedding", {1, 1, d}, small});
  list.push_back({"visual.pos_embedding", {1, 1 + patches, d}, small});
  list.push_back({"visual.patch_embedding.weight",
                  {d, 3, p, p},
                  {Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(3 * p * p))}});
  add_layer_norm(list, "visual.pre_norm", d);
  add_layer_norm(list, "visual.post_norm", d);
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    const auto prefix = "visual.transformer." + std::to_string(i) + ".";
    add_layer_norm(list, prefix + "norm1", d);
    add_linear(list, prefix + "attn.to_qkv", d, 3 * d);
    add_linear(list, prefix + "attn.proj", d, d);
    add_layer_norm(list, prefix + "norm2", d);
    add_linear(list, prefix + "mlp.0", d, config.mlp_dim);
    add_linear(list, prefix + "mlp.2", config.mlp_dim, d);
  }
  list.push_back({"visual.head", {d, config.head_dim_out}, small});
  return list;
}

at::Tensor clip_resize(const ImageEncoderConfig& config, const at::Tensor& images) {
  return at::upsample_bicubic2d(images, {config.image_size, config.image_size}, /*align_corners=*/false);
}

at::Tensor clip_normalise(const at::Tensor& images) {
  const auto constant = [&images](const std::vector<float>& rgb) {
    return at::tensor(rgb).to(images.device(), images.scalar_type()).view({1, 3, 1, 1});
  };
  const auto mean = constant({0.48145466F, 0.4578275F, 0.40821073F});
  const auto std = constant({0.26862954F, 0.26130258F, 0.27577711F});
  return (images * 0.5 + 0.5 - mean) / std;
}

at::Tensor clip_encode(const ImageEncoderConfig& config, const ParamView& params, const at::Tensor& images) {
  TORCH_CHECK(images.dim() == 4 && images.size(1) == 3, "clip_encode: images ", images.sizes(), " want [B, 3, H, W]");
  const auto& weight = params["visual.patch_embedding.weight"];
  const auto pixels = clip_normalise(clip_resize(config, images.to(weight.scalar_type())));
  const auto patches =
      at::conv2d(pixels, weight, {}, {config.patch_size, config.patch_size}).flatten(2).transpose(1, 2);
  const auto cls = params["visual.cls_embedding"].expand({images.size(0), 1, config.dim});
  auto x = at::cat({cls, patches}, 1) + params["visual.pos_embedding"];
  x = layer_norm(params, "visual.pre_norm", x);
  for (std::int64_t i = 0; i + 1 < config.num_layers; ++i) {
    const auto prefix = "visual.transformer." + std::to_string(i) + ".";
    x = x + self_attention(config, params, prefix + "attn.", layer_norm(params, prefix + "norm1", x));
    const auto hidden = at::gelu(linear(params, prefix + "mlp.0", layer_norm(params, prefix + "norm2", x)));
    x = x + linear(params, prefix + "mlp.2", hidden);
  }
  return x;
}

}  // namespace troupe::model
