#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "image/augmentation.h"
#include "image/canvas.h"
#include "image/tile_pass.h"
#include "image/video_frame.h"

namespace troupe::image {

/// From decoded frames to the canvas a model sees: crop, antialiased resize, colour jitter, truncation to bytes,
/// placement.
/// Arithmetic is float32, one rounding per operation; a value x in [0, 1] becomes the byte int(255 x).
/// The same input and augmentation give the same bytes on every machine. Keeps its buffers (tile_pass.h); not
/// thread-safe.
class ImageChain {
 public:
  /// `config` gives the size of a view after the resize, `layout` is data.embodiment.layout.
  /// `rows` picks the instruction set; the bytes are the same with any.
  /// Errors: invalid_argument for a layout that does not take `num_views` views.
  static Result<ImageChain> make(const ImageConfig& config, const std::string& layout, std::int64_t num_views,
                                 const TileRows& rows = *tile_rows().front());

  /// Pixels of the canvas, and bytes of its packed RGB.
  std::int64_t canvas_height() const noexcept { return layout_.height; }
  std::int64_t canvas_width() const noexcept { return layout_.width; }
  std::int64_t canvas_bytes() const noexcept { return 3 * layout_.height * layout_.width; }
  /// Views that make one canvas.
  std::int64_t num_views() const noexcept { return static_cast<std::int64_t>(layout_.tiles.size()); }

  /// Writes view `view` of one time step to its tile; view 0 also blackens what no view covers. So a sample's
  /// canvases can be filled view by view, straight from the decoder.
  /// Shapes: canvas u8 (canvas_height, canvas_width, 3), contiguous.
  /// Errors: invalid_argument when the view, the canvas size or the crop window does not fit.
  Result<void> run_view(std::int64_t view, const Rgb8View& image, const ImageAugmentation& augmentation,
                        std::span<std::uint8_t> canvas);
  /// The same from the decoder's planes; the bytes are those of yuv420_to_rgb and the form above. Only the crop is
  /// converted.
  Result<void> run_view(std::int64_t view, const Yuv420View& image, const ImageAugmentation& augmentation,
                        std::span<std::uint8_t> canvas);

  /// All views of one time step, in canvas order; canvas as for run_view. All must have one size, since one crop serves
  /// them all. Errors: invalid_argument (another number of views, unequal sizes, those of run_view).
  Result<void> run(std::span<const Rgb8View> images, const ImageAugmentation& augmentation,
                   std::span<std::uint8_t> canvas);

 private:
  ImageChain(const ImageConfig& config, CanvasLayout layout, const TileRows& rows);
  template <class Image>
  Result<void> run_image(std::int64_t view, const Image& image, const ImageAugmentation& augmentation,
                         std::span<std::uint8_t> canvas);

  // Of a view after the resize.
  std::int64_t view_height_, view_width_;
  CanvasLayout layout_;
  const TileRows* rows_;
  // For the crop size seen last.
  std::optional<TilePass> pass_;
};

}  // namespace troupe::image
