#pragma once

#include <memory>

#include "model/codec/latent_codec.h"
#include "model/wan/frozen_params.h"
#include "model/wan/vae/vae_network.h"
#include "model/wan/vae_norm.h"

namespace troupe::model {

/// Wan's causal VAE as the codec of the model: f32 in, normalised f32 latents out, computed in the network's dtype.
/// Values agree with the reference's chunked evaluation to rounding; bf16 rounds as the reference does outside autocast
/// for clips, and as under autocast for first frames (docs/vae.md#precision).
///
/// Memory: about five times the widest activation of a pass. Large batches run some samples at a time, and a sample too
/// large for one pass in chunks of time, which gives the same values to rounding.
class WanVaeCodec final : public LatentCodec {
 public:
  /// Widest activation of one pass, unless one sample's group of four frames alone needs more.
  static constexpr std::int64_t kDefaultPassBytes = std::int64_t{512} << 20;

  /// Errors: throws c10::Error where VaeNetwork's constructor does; make_vae_codec returns them.
  WanVaeCodec(const LatentCodecConfig& config, const FrozenParams& params, at::ScalarType dtype, const VaeNorm& norm,
              std::int64_t pass_bytes = kDefaultPassBytes);
  /// With the published constants of `config` (vae_norm.h).
  WanVaeCodec(const LatentCodecConfig& config, const FrozenParams& params, at::ScalarType dtype)
      : WanVaeCodec(config, params, dtype, vae_norm(config)) {}

  at::Tensor encode(const at::Tensor& video) const override;
  at::Tensor encode_first_frame(const at::Tensor& image, std::int64_t frames) const override;
  at::Tensor decode(const at::Tensor& latents) const override;
  std::int64_t channels() const override { return network_.config().channels; }
  std::int64_t stride_t() const override { return network_.config().stride_t; }
  std::int64_t stride_hw() const override { return network_.config().stride_hw; }
  std::int64_t bytes() const override { return network_.bytes(); }

  /// What streams run on (vae_stream.h); lives as long as the codec.
  const VaeNetwork& network() const { return network_; }

 private:
  VaeNetwork network_;
  std::int64_t pass_bytes_;
};

/// Wan's VAE for codec types wan21 and wan22 over `params` (every tensor of vae_params), computing in `dtype` (f32, f64
/// or bf16) with the published normalisation. invalid_argument names a type, stride, dtype or tensor that does not fit.
Result<std::unique_ptr<LatentCodec>> make_vae_codec(const LatentCodecConfig& config, const FrozenParams& params,
                                                    at::ScalarType dtype);

}  // namespace troupe::model
