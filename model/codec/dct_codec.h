#pragma once

#include <vector>

#include "model/codec/latent_codec.h"

namespace troupe::model {

/// One coefficient of a block: frequencies along time, rows and columns, and the colour axis (0 luma, 1 and 2 chroma).
struct DctFrequency {
  std::int64_t t = 0;
  std::int64_t y = 0;
  std::int64_t x = 0;
  std::int64_t color = 0;
  friend bool operator==(const DctFrequency&, const DctFrequency&) = default;
};

/// The standard deviation that robot video in [-1, 1] has at a frequency, for blocks of `volume` = frames * side * side
/// pixels in an orthonormal basis; r = sqrt(y^2 + x^2):
///     sqrt(volume) * a(color) * { 0.9 at t = r = 0;  0.16 r^-1.25 at t = 0;  0.14 t^-0.6 (1 + r)^-1.5 else }
///     a = 1, 0.18, 0.055
/// Fitted to the root mean squares of four recordings of robots, with blocks of 4 frames and 8 or 16 pixels.
double dct_expected_std(const DctFrequency& frequency, std::int64_t volume);

/// The frequencies that a latent keeps, channel by channel. `group` holds the `channels` coefficients with the largest
/// expected deviation in a block of stride_t frames (ties: lower t, then y, x, colour first). `first` serves frame 0,
/// which has no time axis: a channel with t = 0 keeps its frequency, the others take the next spatial frequencies in
/// order.
struct DctChannels {
  std::vector<DctFrequency> group;
  std::vector<DctFrequency> first;
};
DctChannels choose_dct_channels(std::int64_t channels, std::int64_t stride_t, std::int64_t stride_hw);

/// Orthonormal space-time cosine transform of blocks of stride_t x stride_hw x stride_hw pixels and 3 colours, cut to
/// the strongest `channels` coefficients and scaled to about unit variance. Frame 0 is transformed in space only. Needs
/// no weights. Colours are decorrelated by the orthonormal rows (1,1,1)/sqrt 3, (1,0,-1)/sqrt 2, (1,-2,1)/sqrt 6.
/// decode fills the missing coefficients with zeros, so encode(decode(z)) = z up to rounding.
class DctCodec final : public LatentCodec {
 public:
  /// channels in 1..3*stride_hw^2; use make_latent_codec to check a configuration.
  DctCodec(std::int64_t channels, std::int64_t stride_t, std::int64_t stride_hw);

  at::Tensor encode(const at::Tensor& video) const override;
  at::Tensor decode(const at::Tensor& latents) const override;
  std::int64_t channels() const override { return channels_; }
  std::int64_t stride_t() const override { return stride_t_; }
  std::int64_t stride_hw() const override { return stride_hw_; }
  std::int64_t bytes() const override;

 private:
  /// Rows of an orthonormal basis over [3, frames, side, side] pixels, and the deviations that scale them.
  struct Basis {
    at::Tensor rows;  ///< f32 [C, 3*frames*side*side]
    at::Tensor std;   ///< f32 [C]
  };
  static Basis make_basis(const std::vector<DctFrequency>& frequencies, std::int64_t frames, std::int64_t side);

  at::Tensor encode_blocks(const at::Tensor& video, const Basis& basis, std::int64_t frames) const;
  at::Tensor decode_blocks(const at::Tensor& latents, const Basis& basis, std::int64_t frames) const;

  std::int64_t channels_, stride_t_, stride_hw_;
  Basis first_, group_;
};

}  // namespace troupe::model
