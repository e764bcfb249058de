#include "image/tile_pass.h"

#include <algorithm>

#include "image/color_jitter.h"

namespace troupe::image {

namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

/// Bytes that a loop over bytes takes at a time: rows of the source are padded to it, so that no loop ends pixel by
/// pixel.
constexpr std::int64_t kPadding = 64;

std::int64_t most_taps(const AxisWeights& axis) {
  std::int64_t most = 1;
  for (const ResizeTaps& t : axis.taps) most = std::max(most, t.count);
  return most;
}

}  // namespace

TilePass::TilePass(const TileRows& rows, std::int64_t in_height, std::int64_t in_width, std::int64_t out_height,
                   std::int64_t out_width)
    : rows_(&rows),
      in_height_(in_height),
      in_width_(in_width),
      out_height_(out_height),
      out_width_(out_width),
      columns_(in_width, out_width, rows.lanes),
      lines_(in_height, out_height),
      ring_(most_taps(lines_)),
      out_stride_(round_up(out_width, 16)),
      pixels_(static_cast<std::size_t>(out_width)),
      taps_(static_cast<std::size_t>(ring_)) {
  const std::int64_t padded = round_up(in_width, kPadding);
  // a crop may begin in the second column of a block
  const auto terms = static_cast<std::size_t>(2 * round_up(padded / 2 + 1, kPadding));
  for (auto* part : {&chroma_.red, &chroma_.green, &chroma_.blue}) part->resize(terms);
  bytes_.resize(std::max(terms, static_cast<std::size_t>(padded)));
  source_.resize(static_cast<std::size_t>(3 * round_up(std::max(columns_.source_floats(in_width), padded), 16)));
  narrowed_.resize(static_cast<std::size_t>(ring_ * 3 * out_stride_));
}

TilePass::Jitter TilePass::jitter_of(const ColorJitter& jitter) {
  Jitter out{.factors = jitter_factors(jitter), .contrast_at = 0};
  while (out.contrast_at < out.factors.operations && out.factors.order[out.contrast_at] != ColorJitter::contrast) {
    ++out.contrast_at;
  }
  return out;
}

void TilePass::apply(const Jitter& jitter, std::int32_t from, std::int32_t to, float contrast_add,
                     const PlaneRow& row) const {
  for (std::int32_t i = from; i < to; ++i) {
    rows_->jitter(jitter.factors, jitter.factors.order[i], contrast_add, out_width_, row);
  }
}

template <class ReadRow>
void TilePass::resize_row(const ReadRow& read_row, std::int64_t y, const PlaneRow& out) {
  const ResizeTaps& t = lines_.taps[static_cast<std::size_t>(y)];
  const auto source_stride = static_cast<std::int64_t>(source_.size()) / 3;
  for (; next_row_ < t.first + t.count; ++next_row_) {
    const PlaneRow source{source_.data(), source_stride};
    read_row(next_row_, source);
    rows_->narrow(source, columns_, {narrowed_.data() + next_row_ % ring_ * 3 * out_stride_, out_stride_});
  }
  for (std::int64_t k = 0; k < t.count; ++k) {
    taps_[static_cast<std::size_t>(k)] = narrowed_.data() + (t.first + k) % ring_ * 3 * out_stride_;
  }
  rows_->mix(taps_.data(), lines_.weights.data() + t.weight, t.count, 3 * out_stride_, out.red);
}

template <class ReadRow>
void TilePass::run_rows(const ReadRow& read_row, const ImageAugmentation& augmentation, const CanvasTile& tile,
                        std::int64_t canvas_width, std::uint8_t* canvas) {
  const Jitter jitter = jitter_of(augmentation.jitter);
  const std::int32_t operations = jitter.factors.operations;
  const bool waits_for_mean = jitter.contrast_at < operations;
  const std::int64_t row_floats = 3 * out_stride_;
  tile_.resize(static_cast<std::size_t>(std::max<std::int64_t>(row_floats * (waits_for_mean ? out_height_ : 1),
                                                               static_cast<std::int64_t>(tile_.size()))));
  const auto place = [&](std::int64_t y, const PlaneRow& row) {
    rows_->pack(row, out_width_, tile.repeat, pixels_.data(),
                canvas + 3 * ((tile.row + y) * canvas_width + tile.column));
  };

  next_row_ = 0;
  double sums[8] = {};
  for (std::int64_t y = 0; y < out_height_; ++y) {
    const PlaneRow row{tile_.data() + (waits_for_mean ? y * row_floats : 0), out_stride_};
    resize_row(read_row, y, row);
    apply(jitter, 0, jitter.contrast_at, 0, row);
    if (waits_for_mean)
      rows_->gray(row, out_width_, sums);
    else
      place(y, row);
  }
  if (!waits_for_mean) return;

  double total = 0;
  for (const double s : sums) total += s;
  const double mean = total / static_cast<double>(out_height_ * out_width_);
  const float contrast_add = static_cast<float>(mean) * jitter.factors.contrast_rest;
  for (std::int64_t y = 0; y < out_height_; ++y) {
    const PlaneRow row{tile_.data() + y * row_floats, out_stride_};
    apply(jitter, jitter.contrast_at, operations, contrast_add, row);
    place(y, row);
  }
}

void TilePass::run(const Yuv420View& image, const ImageAugmentation& augmentation, const CanvasTile& tile,
                   std::int64_t canvas_width, std::uint8_t* canvas) {
  const YuvCoefficients c = yuv_coefficients(image.matrix == ColorMatrix::bt709, image.full_range);
  const std::int64_t left = augmentation.left, first_block = left / 2, skip = left % 2;
  const std::int64_t blocks = (left + in_width_ - 1) / 2 - first_block + 1, padded_blocks = round_up(blocks, kPadding);
  std::uint8_t* const u = bytes_.data();
  std::uint8_t* const v = u + padded_blocks;
  std::int64_t chroma_row = -1;
  // what lies behind the crop's last column is converted too, and weighs nothing
  const auto read_row = [&](std::int64_t y, const PlaneRow& out) {
    const std::int64_t line = augmentation.top + y;
    if (line / 2 != chroma_row) {
      chroma_row = line / 2;
      std::copy_n(image.u + chroma_row * image.u_stride + first_block, blocks, u);
      std::copy_n(image.v + chroma_row * image.v_stride + first_block, blocks, v);
      rows_->chroma(u, v, padded_blocks, c, chroma_);
    }
    std::copy_n(image.y + line * image.y_stride + left, in_width_, bytes_.data());
    rows_->from_yuv(bytes_.data(), chroma_, skip, round_up(in_width_, kPadding), c, out);
  };
  run_rows(read_row, augmentation, tile, canvas_width, canvas);
}

void TilePass::run(const Rgb8View& image, const ImageAugmentation& augmentation, const CanvasTile& tile,
                   std::int64_t canvas_width, std::uint8_t* canvas) {
  const auto read_row = [&](std::int64_t y, const PlaneRow& out) {
    rows_->from_rgb(image.row(augmentation.top + y) + 3 * augmentation.left, in_width_, out);
  };
  run_rows(read_row, augmentation, tile, canvas_width, canvas);
}

}  // namespace troupe::image
