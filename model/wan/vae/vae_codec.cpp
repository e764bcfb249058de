#include "model/wan/vae/vae_codec.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "model/wan/vae_params.h"

namespace troupe::model {
namespace {

/// How much of a batch one pass takes: whole samples while they fit, else chunks of one sample.
struct PassSize {
  std::int64_t samples = 1;
  std::int64_t groups = 1;  ///< latent frames
};

PassSize pass_size(std::int64_t budget, std::int64_t latent_frame_bytes, std::int64_t latent_frames) {
  const auto groups = std::max<std::int64_t>(1, budget / latent_frame_bytes);
  return {std::max<std::int64_t>(1, groups / latent_frames), std::min(groups, latent_frames)};
}

/// Runs `run` on runs of samples and joins what it returns along the batch.
template <class Run>
at::Tensor by_samples(const at::Tensor& batch, std::int64_t samples, Run run) {
  if (batch.size(0) <= samples) return run(batch);
  std::vector<at::Tensor> parts;
  for (const auto& part : batch.split(samples, 0)) parts.push_back(run(part));
  return at::cat(parts, 0);
}

/// Frames [from, ...) in chunks of `latents` latent frames; the first chunk has frame 0 besides its groups.
template <class Run>
at::Tensor by_time(const at::Tensor& x, std::int64_t latents, std::int64_t frames_per_latent, Run run) {
  const auto latent_frames = 1 + (x.size(2) - 1) / frames_per_latent;
  if (latent_frames <= latents) return run(x, nullptr);
  VaeCache cache;
  std::vector<at::Tensor> parts;
  std::int64_t from = 0;
  while (from < x.size(2)) {
    const auto first = from == 0 ? 1 + (latents - 1) * frames_per_latent : latents * frames_per_latent;
    const auto count = std::min(first, x.size(2) - from);
    parts.push_back(run(x.narrow(2, from, count), &cache));
    from += count;
  }
  return at::cat(parts, 2);
}

}  // namespace

WanVaeCodec::WanVaeCodec(const LatentCodecConfig& config, const FrozenParams& params, at::ScalarType dtype,
                         const VaeNorm& norm, std::int64_t pass_bytes)
    : network_(config, params.view(), dtype, norm), pass_bytes_(pass_bytes) {}

at::Tensor WanVaeCodec::encode(const at::Tensor& video) const {
  TORCH_CHECK(video.dim() == 5 && video.size(2) > 0, "video ", video.sizes(), " wants [B, 3, T, H, W]");
  const auto latents = 1 + (video.size(2) - 1) / stride_t();
  // frames that fill no group are left out
  const auto whole = video.narrow(2, 0, 1 + (latents - 1) * stride_t());
  const auto size =
      pass_size(pass_bytes_, stride_t() * network_.widest_encoder_frame(video.size(3), video.size(4)), latents);
  return by_samples(whole, size.samples, [&](const at::Tensor& part) {
    return by_time(part, size.groups, stride_t(), [&](const at::Tensor& chunk, VaeCache* cache) {
      return network_.encode(chunk, cache).to(at::kFloat);
    });
  });
}

at::Tensor WanVaeCodec::encode_first_frame(const at::Tensor& image, std::int64_t frames) const {
  TORCH_CHECK(image.dim() == 4 && frames > 0, "image ", image.sizes(), " in ", frames,
              " frames wants [B, 3, H, W] and at least one frame");
  const auto latents = 1 + (frames - 1) / stride_t();
  const auto size =
      pass_size(pass_bytes_, stride_t() * network_.widest_encoder_frame(image.size(2), image.size(3)), latents);
  return by_samples(image, size.samples, [&](const at::Tensor& part) {
    return network_.encode_still(part, 1 + (latents - 1) * stride_t(), NormRounding::at_the_end).to(at::kFloat);
  });
}

at::Tensor WanVaeCodec::decode(const at::Tensor& latents) const {
  TORCH_CHECK(latents.dim() == 5 && latents.size(2) > 0, "latents ", latents.sizes(), " want [B, C, F, h, w]");
  const auto frame_bytes = network_.widest_decoder_frame(latents.size(3) * stride_hw(), latents.size(4) * stride_hw());
  const auto size = pass_size(pass_bytes_, stride_t() * frame_bytes, latents.size(2));
  return by_samples(latents, size.samples, [&](const at::Tensor& part) {
    return by_time(part, size.groups, 1, [&](const at::Tensor& chunk, VaeCache* cache) {
      return network_.decode(chunk, cache).to(at::kFloat);
    });
  });
}

Result<std::unique_ptr<LatentCodec>> make_vae_codec(const LatentCodecConfig& config, const FrozenParams& params,
                                                    at::ScalarType dtype) {
  const auto refuse = [](std::string message) { return Error{Errc::invalid_argument, std::move(message)}; };
  if (config.type != "wan21" && config.type != "wan22") {
    return refuse(fmt::format("model.codec.type is \"{}\"; a VAE wants wan21 or wan22", config.type));
  }
  const std::int64_t side = config.type == "wan22" ? 16 : 8;
  if (config.stride_t != 4 || config.stride_hw != side) {
    return refuse(fmt::format("model.codec.stride_t is {} and stride_hw {}; {} has 4 and {}", config.stride_t,
                              config.stride_hw, config.type, side));
  }
  if (dtype != at::kFloat && dtype != at::kDouble && dtype != at::kBFloat16) {
    return refuse(fmt::format("the VAE computes in f32, f64 or bf16, not {}", c10::toString(dtype)));
  }
  for (const auto& spec : vae_params(config)) {
    if (!params.view().contains(spec.name)) return refuse(fmt::format("VAE tensor {} is missing", spec.name));
    const auto shape = params.view()[spec.name].sizes().vec();
    if (shape != spec.shape) {
      return refuse(
          fmt::format("VAE tensor {} has shape [{}], want [{}]; model.codec.channels, encoder_dim and "
                      "decoder_dim decide it",
                      spec.name, fmt::join(shape, ", "), fmt::join(spec.shape, ", ")));
    }
  }
  return std::unique_ptr<LatentCodec>(std::make_unique<WanVaeCodec>(config, params, dtype));
}

}  // namespace troupe::model
