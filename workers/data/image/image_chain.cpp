#include "workers/data/image/image_chain.h"

#include <fmt/format.h>

#include <algorithm>

#include "workers/data/image/color_jitter.h"

namespace troupe {

namespace {

/// x * 255, truncated as the references do. The input lies in [0, 1] up to rounding.
inline std::uint8_t to_byte(float x) {
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(std::clamp(x * 255.0f, 0.0f, 255.0f)));
}

}  // namespace

ImageChain::ImageChain(const ImageConfig& config, CanvasLayout layout)
    : view_height_(config.height), view_width_(config.width), layout_(std::move(layout)) {
  const auto pixels = static_cast<std::size_t>(view_height_ * view_width_);
  for (auto* plane : {&red_, &green_, &blue_}) plane->resize(pixels);
}

Result<ImageChain> ImageChain::make(const ImageConfig& config, const std::string& layout, std::int64_t num_views) {
  TROUPE_ASSIGN(CanvasLayout made, CanvasLayout::make(layout, num_views, config.height, config.width));
  return ImageChain(config, std::move(made));
}

Result<void> ImageChain::run_view(std::int64_t view, const Rgb8View& picture, const ImageAugmentation& augmentation,
                                  std::span<std::uint8_t> canvas) {
  const ImageAugmentation& a = augmentation;
  if (view < 0 || view >= num_views()) {
    return Error{Errc::invalid_argument, fmt::format("view {} of a canvas of {} views", view, num_views())};
  }
  if (static_cast<std::int64_t>(canvas.size()) != canvas_bytes()) {
    return Error{Errc::invalid_argument,
                 fmt::format("canvas of {} bytes; wanted {}x{}x3", canvas.size(), layout_.height, layout_.width)};
  }
  if (a.height < 1 || a.width < 1 || a.top < 0 || a.left < 0 || a.top + a.height > picture.height ||
      a.left + a.width > picture.width) {
    return Error{Errc::invalid_argument, fmt::format("crop of {}x{} at ({}, {}) does not lie inside a picture of {}x{}",
                                                     a.height, a.width, a.top, a.left, picture.height, picture.width)};
  }
  if (!resize_ || resize_->in_height() != a.height || resize_->in_width() != a.width) {
    resize_.emplace(a.height, a.width, view_height_, view_width_);
  }
  const Rgb8View kept{picture.row(a.top) + 3 * a.left, a.height, a.width, picture.stride};
  resize_->run(kept, red_, green_, blue_);
  apply_jitter(red_, green_, blue_, a.jitter);
  if (view == 0 && !layout_.covered) std::fill(canvas.begin(), canvas.end(), std::uint8_t{0});
  place(layout_.tiles[static_cast<std::size_t>(view)], canvas.data());
  return {};
}

void ImageChain::place(const CanvasTile& tile, std::uint8_t* canvas) const {
  for (std::int64_t y = 0; y < view_height_; ++y) {
    std::uint8_t* __restrict__ out = canvas + 3 * ((tile.row + y) * layout_.width + tile.column);
    const float* __restrict__ r = red_.data() + y * view_width_;
    const float* __restrict__ g = green_.data() + y * view_width_;
    const float* __restrict__ b = blue_.data() + y * view_width_;
    for (std::int64_t x = 0; x < view_width_; ++x) {
      const std::uint8_t pixel[3] = {to_byte(r[x]), to_byte(g[x]), to_byte(b[x])};
      for (std::int64_t copy = 0; copy < tile.repeat; ++copy, out += 3) std::copy_n(pixel, 3, out);
    }
  }
}

Result<void> ImageChain::run(std::span<const Rgb8View> pictures, const ImageAugmentation& augmentation,
                             std::span<std::uint8_t> canvas) {
  if (static_cast<std::int64_t>(pictures.size()) != num_views()) {
    return Error{Errc::invalid_argument,
                 fmt::format("{} pictures for a canvas of {} views", pictures.size(), num_views())};
  }
  for (const Rgb8View& p : pictures) {
    if (p.height != pictures[0].height || p.width != pictures[0].width) {
      return Error{Errc::invalid_argument,
                   fmt::format("views of {}x{} and {}x{} in one sample; one crop needs one size", pictures[0].height,
                               pictures[0].width, p.height, p.width)};
    }
  }
  for (std::size_t v = 0; v < pictures.size(); ++v) {
    TROUPE_TRY(run_view(static_cast<std::int64_t>(v), pictures[v], augmentation, canvas));
  }
  return {};
}

}  // namespace troupe
