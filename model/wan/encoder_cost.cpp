#include "model/wan/encoder_cost.h"

#include <vector>

#include "model/wan/clip_encoder.h"
#include "model/wan/dit_units.h"
#include "model/wan/numbers.h"
#include "model/wan/t5_encoder.h"
#include "model/wan/vae_params.h"
#include "model/wan/vae_structure.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kColours = 3;

double t5_flops(const TextEncoderConfig& config) {
  const double length = to_double(config.max_length), attn = to_double(config.dim_attn);
  const double linears = 2 * length * to_double(config.dim) * (4 * attn + 3 * to_double(config.dim_ff));
  return to_double(config.num_layers) * (linears + 4 * length * length * attn);
}

double clip_flops(const ImageEncoderConfig& config) {
  const double d = to_double(config.dim), side = to_double(config.image_size / config.patch_size);
  const double tokens = side * side + 1, patch = 3 * to_double(config.patch_size * config.patch_size);
  const double block = 2 * tokens * (4 * d * d + 2 * d * to_double(config.mlp_dim)) + 4 * tokens * tokens * d;
  return to_double(config.num_layers - 1) * block + 2 * side * side * patch * d;
}

/// A video on its way through the VAE's encoder.
struct Extent {
  std::int64_t frames = 0, rows = 0, cols = 0;
  /// A convolution that makes this extent, `taps` weights for each pair of channels.
  double conv(std::int64_t in, std::int64_t out, std::int64_t taps) const {
    return 2 * to_double(in) * to_double(out) * to_double(taps) * to_double(frames) * to_double(rows) * to_double(cols);
  }
};

/// Of one layer of the encoder; `extent` becomes that of its result.
double layer_flops(const VaeLayer& layer, Extent& extent) {
  using Kind = VaeLayer::Kind;
  const auto in = layer.in, out = layer.out;
  double flops = 0;
  switch (layer.kind) {
    case Kind::conv:
    case Kind::head:
      return extent.conv(in, out, 27);
    case Kind::residual:
      return extent.conv(in, out, 27) + extent.conv(out, out, 27) + (in == out ? 0 : extent.conv(in, out, 1));
    case Kind::attention: {
      const double positions = to_double(extent.rows) * to_double(extent.cols);
      return extent.conv(in, 4 * in, 1) + 4 * to_double(extent.frames) * positions * positions * to_double(in);
    }
    case Kind::down_space:
    case Kind::down_both:
      extent.rows /= 2;
      extent.cols /= 2;
      flops = extent.conv(in, out, 9);
      if (layer.kind == Kind::down_both) {
        const Extent after_first{(extent.frames - 1) / 2, extent.rows, extent.cols};
        flops += after_first.conv(out, out, 3);
        extent.frames = 1 + after_first.frames;
      }
      return flops;
    case Kind::down_unit:
      for (const auto& inner : layer.layers) flops += layer_flops(inner, extent);
      return flops;
    case Kind::up_space:
    case Kind::up_both:
    case Kind::up_unit:
      break;  // of decoders
  }
  return flops;
}

/// Latents of one clip of the sample: 1 + chunks * latent_frames_per_block.
Extent latent_extent(const ModelConfig& config, const WindowConfig& window) {
  return {1 + window.chunks * config.latent_frames_per_block, config.target_height / config.codec.stride_hw,
          config.target_width / config.codec.stride_hw};
}

double vae_flops(const LatentCodecConfig& codec, const Extent& latents) {
  const auto block = vae_pixel_block(codec);
  Extent extent{1 + (latents.frames - 1) * codec.stride_t, latents.rows * codec.stride_hw / block,
                latents.cols * codec.stride_hw / block};
  double flops = 0;
  for (const auto& layer : vae_encoder_layers(codec)) flops += layer_flops(layer, extent);
  return flops + latents.conv(2 * codec.channels, codec.channels, 1);  // the mean alone
}

/// Pixels of the block behind one latent, in frame 0 and in later frames.
std::int64_t first_block(const LatentCodecConfig& codec) { return kColours * codec.stride_hw * codec.stride_hw; }
std::int64_t later_block(const LatentCodecConfig& codec) { return first_block(codec) * codec.stride_t; }

double dct_flops(const LatentCodecConfig& codec, const Extent& latents) {
  const Extent first{1, latents.rows, latents.cols}, later{latents.frames - 1, latents.rows, latents.cols};
  return first.conv(first_block(codec), codec.channels, 1) + later.conv(later_block(codec), codec.channels, 1);
}

std::int64_t elements(std::vector<ParamSpec> specs) { return count_parameters({"", "", std::move(specs)}); }

/// Parameters, and a mean and a deviation for each channel; of dct a basis and deviations, of frame 0 and of the rest.
std::int64_t codec_bytes(const LatentCodecConfig& codec, std::int64_t bytes_per_element) {
  if (codec.type != "dct") return bytes_per_element * (elements(vae_params(codec)) + 2 * codec.channels);
  return static_cast<std::int64_t>(sizeof(float)) * codec.channels * (first_block(codec) + later_block(codec) + 2);
}

}  // namespace

EncoderCost encoder_cost(const ModelConfig& config, const WindowConfig& window, std::int64_t bytes_per_element) {
  const auto latents = latent_extent(config, window);
  EncoderCost cost;
  cost.codec_bytes = codec_bytes(config.codec, bytes_per_element);
  cost.bytes =
      bytes_per_element * (elements(t5_params(config.text_encoder)) + elements(clip_params(config.image_encoder))) +
      cost.codec_bytes;
  cost.text_flops = t5_flops(config.text_encoder);
  cost.image_flops = clip_flops(config.image_encoder);
  cost.codec_flops = config.codec.type == "dct" ? dct_flops(config.codec, latents) : vae_flops(config.codec, latents);
  return cost;
}

}  // namespace troupe::model
