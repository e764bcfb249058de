#include "image/image_chain.h"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::image {

ImageChain::ImageChain(const ImageConfig& config, CanvasLayout layout, const TileRows& rows)
    : view_height_(config.height), view_width_(config.width), layout_(std::move(layout)), rows_(&rows) {}

Result<ImageChain> ImageChain::make(const ImageConfig& config, const std::string& layout, std::int64_t num_views,
                                    const TileRows& rows) {
  TROUPE_ASSIGN(CanvasLayout made, CanvasLayout::make(layout, num_views, config.height, config.width));
  return ImageChain(config, std::move(made), rows);
}

template <class Image>
Result<void> ImageChain::run_image(std::int64_t view, const Image& image, const ImageAugmentation& augmentation,
                                   std::span<std::uint8_t> canvas) {
  const ImageAugmentation& a = augmentation;
  if (view < 0 || view >= num_views()) {
    return invalid_argument(fmt::format("view {} of a canvas of {} views", view, num_views()));
  }
  if (static_cast<std::int64_t>(canvas.size()) != canvas_bytes()) {
    return invalid_argument(
        fmt::format("canvas of {} bytes; wanted {}x{}x3", canvas.size(), layout_.height, layout_.width));
  }
  if (a.height < 1 || a.width < 1 || a.top < 0 || a.left < 0 || a.top + a.height > image.height ||
      a.left + a.width > image.width) {
    return invalid_argument(fmt::format("crop of {}x{} at ({}, {}) does not lie inside an image of {}x{}", a.height,
                                        a.width, a.top, a.left, image.height, image.width));
  }
  if (!pass_ || pass_->in_height() != a.height || pass_->in_width() != a.width) {
    pass_.emplace(*rows_, a.height, a.width, view_height_, view_width_);
  }
  if (view == 0 && !layout_.covered) std::fill(canvas.begin(), canvas.end(), std::uint8_t{0});
  pass_->run(image, a, layout_.tiles[static_cast<std::size_t>(view)], layout_.width, canvas.data());
  return {};
}

Result<void> ImageChain::run_view(std::int64_t view, const Rgb8View& image, const ImageAugmentation& augmentation,
                                  std::span<std::uint8_t> canvas) {
  return run_image(view, image, augmentation, canvas);
}

Result<void> ImageChain::run_view(std::int64_t view, const Yuv420View& image, const ImageAugmentation& augmentation,
                                  std::span<std::uint8_t> canvas) {
  return run_image(view, image, augmentation, canvas);
}

Result<void> ImageChain::run(std::span<const Rgb8View> images, const ImageAugmentation& augmentation,
                             std::span<std::uint8_t> canvas) {
  if (static_cast<std::int64_t>(images.size()) != num_views()) {
    return invalid_argument(fmt::format("{} images for a canvas of {} views", images.size(), num_views()));
  }
  for (const Rgb8View& p : images) {
    if (p.height != images[0].height || p.width != images[0].width) {
      return invalid_argument(fmt::format("views of {}x{} and {}x{} in one sample; one crop needs one size",
                                          images[0].height, images[0].width, p.height, p.width));
    }
  }
  for (std::size_t v = 0; v < images.size(); ++v) {
    TROUPE_TRY(run_view(static_cast<std::int64_t>(v), images[v], augmentation, canvas));
  }
  return {};
}

}  // namespace troupe::image
