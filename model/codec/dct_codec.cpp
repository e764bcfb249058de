#include "model/codec/dct_codec.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::model {
namespace {

/// Value at position n of the k-th orthonormal cosine over `size` samples.
double cosine(std::int64_t k, std::int64_t n, std::int64_t size) {
  const double length = static_cast<double>(size);
  const double scale = std::sqrt((k == 0 ? 1.0 : 2.0) / length);
  return scale * std::cos(std::numbers::pi * (static_cast<double>(n) + 0.5) * static_cast<double>(k) / length);
}

/// Every frequency of a block, strongest first.
std::vector<DctFrequency> ranked_frequencies(std::int64_t frames, std::int64_t side) {
  std::vector<std::pair<double, DctFrequency>> all;
  for (std::int64_t t = 0; t < frames; ++t) {
    for (std::int64_t y = 0; y < side; ++y) {
      for (std::int64_t x = 0; x < side; ++x) {
        for (std::int64_t c = 0; c < 3; ++c) {
          const DctFrequency frequency{t, y, x, c};
          all.emplace_back(dct_expected_std(frequency, 1), frequency);
        }
      }
    }
  }
  // all is in the order of ties already
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<DctFrequency> out;
  for (const auto& [deviation, frequency] : all) out.push_back(frequency);
  return out;
}

}  // namespace

double dct_expected_std(const DctFrequency& frequency, std::int64_t volume) {
  static constexpr double kColor[3] = {1.0, 0.18, 0.055};
  const double r = std::hypot(static_cast<double>(frequency.y), static_cast<double>(frequency.x));
  const double amplitude = frequency.t > 0
                               ? 0.14 * std::pow(static_cast<double>(frequency.t), -0.6) * std::pow(1 + r, -1.5)
                           : r > 0 ? 0.16 * std::pow(r, -1.25)
                                   : 0.9;
  return std::sqrt(static_cast<double>(volume)) * kColor[frequency.color] * amplitude;
}

DctChannels choose_dct_channels(std::int64_t channels, std::int64_t stride_t, std::int64_t stride_hw) {
  DctChannels out;
  const auto ranked = ranked_frequencies(stride_t, stride_hw);
  out.group.assign(ranked.begin(), ranked.begin() + channels);
  // frame 0: what the still channels do not take is handed out in order
  auto spare = ranked_frequencies(1, stride_hw);
  for (const auto& taken : out.group) std::erase(spare, taken);
  std::size_t next = 0;
  for (const auto& frequency : out.group) out.first.push_back(frequency.t == 0 ? frequency : spare.at(next++));
  return out;
}

DctCodec::Basis DctCodec::make_basis(const std::vector<DctFrequency>& frequencies, std::int64_t frames,
                                     std::int64_t side) {
  const double r3 = std::sqrt(3.0), r2 = std::sqrt(2.0), r6 = std::sqrt(6.0);
  const double color[3][3] = {{1 / r3, 1 / r3, 1 / r3}, {1 / r2, 0, -1 / r2}, {1 / r6, -2 / r6, 1 / r6}};
  std::vector<float> rows, deviations;
  for (const auto& f : frequencies) {
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t t = 0; t < frames; ++t) {
        const double outer = color[f.color][c] * cosine(f.t, t, frames);
        for (std::int64_t y = 0; y < side; ++y) {
          for (std::int64_t x = 0; x < side; ++x) {
            rows.push_back(static_cast<float>(outer * cosine(f.y, y, side) * cosine(f.x, x, side)));
          }
        }
      }
    }
    deviations.push_back(static_cast<float>(dct_expected_std(f, frames * side * side)));
  }
  const auto count = static_cast<std::int64_t>(frequencies.size());
  return {at::tensor(rows).view({count, 3 * frames * side * side}), at::tensor(deviations)};
}

DctCodec::DctCodec(std::int64_t channels, std::int64_t stride_t, std::int64_t stride_hw)
    : channels_(channels), stride_t_(stride_t), stride_hw_(stride_hw) {
  const auto chosen = choose_dct_channels(channels, stride_t, stride_hw);
  first_ = make_basis(chosen.first, 1, stride_hw);
  group_ = make_basis(chosen.group, stride_t, stride_hw);
}

std::int64_t DctCodec::bytes() const {
  return 4 * (first_.rows.numel() + group_.rows.numel() + first_.std.numel() + group_.std.numel());
}

at::Tensor DctCodec::encode_blocks(const at::Tensor& video, const Basis& basis, std::int64_t frames) const {
  const auto side = stride_hw_, groups = video.size(2) / frames, rows = video.size(3) / side,
             cols = video.size(4) / side;
  const auto blocks = video.unflatten(2, {groups, frames})
                          .unflatten(4, {rows, side})
                          .unflatten(6, {cols, side})
                          .permute({0, 2, 4, 6, 1, 3, 5, 7})  // batch, group, row, column | colour, frame, y, x
                          .reshape({video.size(0), groups, rows, cols, -1});
  return (at::linear(blocks, basis.rows) / basis.std).permute({0, 4, 1, 2, 3});
}

at::Tensor DctCodec::decode_blocks(const at::Tensor& latents, const Basis& basis, std::int64_t frames) const {
  const auto side = stride_hw_;
  const auto blocks = at::matmul(latents.permute({0, 2, 3, 4, 1}) * basis.std, basis.rows);
  return blocks.unflatten(4, {3, frames, side, side})
      .permute({0, 4, 1, 5, 2, 6, 3, 7})
      .reshape({latents.size(0), 3, latents.size(2) * frames, latents.size(3) * side, latents.size(4) * side});
}

at::Tensor DctCodec::encode(const at::Tensor& video) const {
  TORCH_CHECK(video.dim() == 5 && video.size(1) == 3 && video.size(2) >= 1, "dct codec: video ", video.sizes(),
              " wants [B, 3, T, H, W]");
  TORCH_CHECK(video.size(3) % stride_hw_ == 0 && video.size(4) % stride_hw_ == 0, "dct codec: ", video.size(3), " x ",
              video.size(4), " pixels are no multiple of ", stride_hw_, " (model.target_height, model.target_width)");
  const auto x = video.to(at::kFloat);
  const auto groups = (x.size(2) - 1) / stride_t_;
  const auto first = encode_blocks(x.narrow(2, 0, 1), first_, 1);
  if (groups == 0) return first.contiguous();
  return at::cat({first, encode_blocks(x.narrow(2, 1, groups * stride_t_), group_, stride_t_)}, 2);
}

at::Tensor DctCodec::decode(const at::Tensor& latents) const {
  TORCH_CHECK(latents.dim() == 5 && latents.size(1) == channels_ && latents.size(2) >= 1, "dct codec: latents ",
              latents.sizes(), " want [B, ", channels_, ", F, h, w]");
  const auto z = latents.to(at::kFloat);
  auto first = decode_blocks(z.narrow(2, 0, 1), first_, 1);
  if (z.size(2) == 1) return first;
  return at::cat({first, decode_blocks(z.narrow(2, 1, z.size(2) - 1), group_, stride_t_)}, 2);
}

}  // namespace troupe::model
