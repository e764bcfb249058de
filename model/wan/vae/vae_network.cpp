#include "model/wan/vae/vae_network.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "model/wan/vae/causal_conv.h"
#include "model/wan/vae/vae_blocks.h"
#include "model/wan/vae_params.h"

namespace troupe::model {
namespace {

/// A parameter as the kernels want it.
at::Tensor prepared(const at::Tensor& tensor, at::ScalarType dtype) {
  const auto layout = tensor.dim() == 5   ? at::MemoryFormat::ChannelsLast3d
                      : tensor.dim() == 4 ? at::MemoryFormat::ChannelsLast
                                          : at::MemoryFormat::Contiguous;
  return tensor.detach().to(dtype).contiguous(layout);
}

at::Tensor channel_constant(const std::vector<float>& values, const at::Tensor& like) {
  // rounded from f32, as the reference casts its constants
  return at::tensor(values).to(like.options()).view({1, -1, 1, 1, 1});
}

at::Tensor run_all(const std::vector<VaeLayer>& layers, at::Tensor x, VaePass& pass) {
  for (const auto& layer : layers) x = run_layer(layer, x, pass);
  return x;
}

void mark_started(VaeCache* cache) {
  if (cache != nullptr) cache->started = true;
}

}  // namespace

VaeNetwork::VaeNetwork(LatentCodecConfig config, const ParamView& params, at::ScalarType dtype, const VaeNorm& norm)
    : config_(std::move(config)), dtype_(dtype) {
  TORCH_CHECK(config_.type == "wan21" || config_.type == "wan22", "model.codec.type is \"", config_.type,
              "\"; Wan's VAEs are wan21 and wan22");
  const auto channels = static_cast<std::size_t>(config_.channels);
  TORCH_CHECK(norm.mean.size() == channels && norm.std.size() == channels, "normalisation constants for ",
              norm.mean.size(), " and ", norm.std.size(), " channels, want ", channels);
  encoder_ = vae_encoder_layers(config_);
  decoder_ = vae_decoder_layers(config_);
  for (const auto& spec : vae_params(config_)) {
    const auto& tensor = params[spec.name];
    TORCH_CHECK(tensor.sizes() == at::IntArrayRef(spec.shape), spec.name, " has shape ", tensor.sizes(), ", want ",
                at::IntArrayRef(spec.shape));
    params_.set(spec.name, prepared(tensor, dtype));
  }
  const auto& like = params_["conv2.bias"];
  mean_ = channel_constant(norm.mean, like);
  inverse_std_ = channel_constant(norm.inverse_std(), like);
}

void VaeNetwork::check_video(at::IntArrayRef sizes, bool starts) const {
  const auto side = config_.stride_hw, group = config_.stride_t;
  TORCH_CHECK(sizes.size() == 5 && sizes[1] == 3, "video ", sizes, " wants [B, 3, T, H, W]");
  TORCH_CHECK(sizes[3] > 0 && sizes[4] > 0 && sizes[3] % side == 0 && sizes[4] % side == 0, "video of ", sizes[3],
              " x ", sizes[4], " pixels wants multiples of ", side);
  TORCH_CHECK(sizes[2] > 0 && sizes[2] % group == (starts ? 1 : 0), "video of ", sizes[2], " frames wants ",
              starts ? "1 + a multiple of " : "a multiple of ", group);
}

at::Tensor VaeNetwork::mean_of(const at::Tensor& video, VaePass& pass) const {
  const auto x = pixels_to_channels(video.to(mean_.device(), dtype_), vae_pixel_block(config_));
  const auto moments = run_all(encoder_, x, pass);
  // conv1 makes mean and log variance; only the mean is wanted
  const auto& weight = params_["conv1.weight"];
  const auto rows = config_.channels;
  return at::linear(moments, weight.narrow(0, 0, rows).reshape({rows, weight.size(1)}),
                    params_["conv1.bias"].narrow(0, 0, rows));
}

at::Tensor VaeNetwork::normalised(const at::Tensor& mean) const { return (mean - mean_).mul_(inverse_std_); }

at::Tensor VaeNetwork::encode_mean(const at::Tensor& video, VaeCache* cache, NormRounding rounding) const {
  const c10::NoGradGuard no_grad;
  VaePass pass{params_, cache, 0, rounding};
  check_video(video.sizes(), pass.starts());
  auto mean = mean_of(video, pass).permute({0, 4, 1, 2, 3}).contiguous();
  mark_started(cache);
  return mean;
}

at::Tensor VaeNetwork::encode(const at::Tensor& video, VaeCache* cache, NormRounding rounding) const {
  return normalised(encode_mean(video, cache, rounding));
}

at::Tensor VaeNetwork::encode_still(const at::Tensor& image, std::int64_t frames, NormRounding rounding) const {
  const c10::NoGradGuard no_grad;
  TORCH_CHECK(image.dim() == 4, "image ", image.sizes(), " wants [B, 3, H, W]");
  check_video({image.size(0), image.size(1), frames, image.size(2), image.size(3)}, true);
  // frame 0 and the first of the zeros, which stands for all of them
  auto start =
      image.new_zeros({image.size(0), image.size(1), std::min<std::int64_t>(frames, 2), image.size(2), image.size(3)});
  start.select(2, 0).copy_(image);
  VaePass pass{params_, nullptr, frames, rounding};
  const auto latents = 1 + (frames - 1) / config_.stride_t;
  const auto mean = extend_frames(mean_of(start, pass), latents);
  return normalised(mean.permute({0, 4, 1, 2, 3}).contiguous());
}

at::Tensor VaeNetwork::decode(const at::Tensor& latents, VaeCache* cache) const {
  const c10::NoGradGuard no_grad;
  TORCH_CHECK(latents.dim() == 5 && latents.size(1) == config_.channels && latents.size(2) > 0, "latents ",
              latents.sizes(), " want [B, ", config_.channels, ", F, h, w]");
  VaePass pass{params_, cache, 0, NormRounding::every_step};
  // the reference divides by the rounded reciprocal; it does not multiply by S
  const auto z = latents.to(mean_.device(), dtype_).div(inverse_std_).add_(mean_);
  const auto x = point_conv(pass, "conv2", z.permute({0, 2, 3, 4, 1}).contiguous());
  auto video = channels_to_pixels(run_all(decoder_, x, pass), vae_pixel_block(config_));
  mark_started(cache);
  return video;
}

std::int64_t VaeNetwork::bytes() const {
  auto total = static_cast<std::int64_t>(mean_.nbytes() + inverse_std_.nbytes());
  for (const auto& [name, tensor] : params_.tensors()) total += static_cast<std::int64_t>(tensor.nbytes());
  return total;
}

std::int64_t VaeNetwork::widest_encoder_frame(std::int64_t height, std::int64_t width) const {
  const auto block = vae_pixel_block(config_);
  return height / block * (width / block) * config_.encoder_dim * static_cast<std::int64_t>(c10::elementSize(dtype_));
}

std::int64_t VaeNetwork::widest_decoder_frame(std::int64_t height, std::int64_t width) const {
  // the image doubles before the channels halve
  const auto block = vae_pixel_block(config_);
  return height / block * (width / block) * 2 * config_.decoder_dim *
         static_cast<std::int64_t>(c10::elementSize(dtype_));
}

}  // namespace troupe::model
