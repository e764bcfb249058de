#pragma once

#include <cstdint>
#include <vector>

#include "image/augmentation.h"
#include "image/canvas.h"
#include "image/resize.h"
#include "image/tile_rows.h"
#include "image/video_frame.h"

namespace troupe::image {

/// One decoded frame to one tile of a canvas in one pass over its rows: colour conversion of the crop, columns,
/// rows, jitter, truncation, placement. Only rows are kept in float, and whole tiles where a contrast needs the mean
/// of the frame first.
///
/// Keeps its buffers between frames. Not thread-safe.
class TilePass {
 public:
  /// `rows` must outlive the pass; it is one of tile_rows().
  /// From crops of in_height x in_width to tiles of out_height x out_width pixels.
  TilePass(const TileRows& rows, std::int64_t in_height, std::int64_t in_width, std::int64_t out_height,
           std::int64_t out_width);

  /// Pixels of the crops that the pass takes.
  std::int64_t in_height() const noexcept { return in_height_; }
  std::int64_t in_width() const noexcept { return in_width_; }

  /// The crop of `augmentation`, which has the size of the pass and lies inside the frame, to `tile` of a canvas of
  /// `canvas_width` pixels a row; `canvas` points to its first byte. Requires that the tile lies inside the canvas.
  void run(const Yuv420View& image, const ImageAugmentation& augmentation, const CanvasTile& tile,
           std::int64_t canvas_width, std::uint8_t* canvas);
  void run(const Rgb8View& image, const ImageAugmentation& augmentation, const CanvasTile& tile,
           std::int64_t canvas_width, std::uint8_t* canvas);

 private:
  struct Jitter {
    JitterFactors factors;
    // Index into factors.order; factors.operations: none.
    std::int32_t contrast_at;
  };
  static Jitter jitter_of(const ColorJitter& jitter);

  template <class ReadRow>
  void run_rows(const ReadRow& read_row, const ImageAugmentation& augmentation, const CanvasTile& tile,
                std::int64_t canvas_width, std::uint8_t* canvas);
  template <class ReadRow>
  void resize_row(const ReadRow& read_row, std::int64_t y, const PlaneRow& out);
  void apply(const Jitter& jitter, std::int32_t from, std::int32_t to, float contrast_add, const PlaneRow& row) const;

  const TileRows* rows_;
  std::int64_t in_height_, in_width_, out_height_, out_width_;
  ColumnPlan columns_;
  AxisWeights lines_;
  // Source rows kept, as many as an output row needs at most.
  std::int64_t ring_;
  // Floats of a plane of an output row.
  std::int64_t out_stride_;
  // Source row that is resized next.
  std::int64_t next_row_ = 0;
  ChromaTerms chroma_;
  // Luma or chroma of one row, padded to whole vectors.
  std::vector<std::uint8_t> bytes_;
  // 3 planes of one row.
  std::vector<float> source_;
  // Ring x 3 planes.
  std::vector<float> narrowed_;
  // Rows x 3 planes: every row with a contrast, else one.
  std::vector<float> tile_;
  std::vector<std::uint32_t> pixels_;
  std::vector<const float*> taps_;
};

}  // namespace troupe::image
