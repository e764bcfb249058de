#include "data/video/chroma_upsampling.h"

#include <algorithm>

namespace troupe::data {

namespace {

constexpr int kBits = 16;
// NOLINTNEXTLINE(bugprone-incorrect-roundings): positive, and a constant
constexpr int fixed(double value) { return static_cast<int>(value * (1 << kBits) + 0.5); }

std::uint8_t clamp(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

/// One full-size row of a chroma plane.
class ChromaRows {
 public:
  ChromaRows(const PlanarFrame& frame, std::size_t plane)
      : frame_(frame),
        plane_(plane),
        height_(frame.half_height ? (frame.height + 1) / 2 : frame.height),
        width_(frame.half_width ? (frame.width + 1) / 2 : frame.width),
        sums_(static_cast<std::size_t>(width_)),
        out_(static_cast<std::size_t>(frame.width)) {}

  const std::vector<std::uint8_t>& row(std::int64_t y) {
    // vertically: weights 3 and 1 of 4, or the sample itself
    const std::int64_t near = frame_.half_height ? y / 2 : y;
    const std::int64_t far =
        frame_.half_height ? std::clamp<std::int64_t>(y % 2 == 0 ? near - 1 : near + 1, 0, height_ - 1) : near;
    const std::uint8_t *a = at(near), *b = at(far);
    const int total = frame_.half_height ? 4 : 1;
    for (std::size_t x = 0; x < sums_.size(); ++x) sums_[x] = frame_.half_height ? 3 * a[x] + b[x] : a[x];
    if (!frame_.half_width) {
      // ties alternate with the row, so that rounding does not drift upwards
      const int bias = total == 1 ? 0 : (y % 2 == 0 ? 1 : 2);
      for (std::size_t x = 0; x < out_.size(); ++x) out_[x] = static_cast<std::uint8_t>((sums_[x] + bias) / total);
      return out_;
    }
    for (std::size_t x = 0; x < out_.size(); ++x) {
      const auto i = static_cast<std::int64_t>(x / 2);
      const bool left = x % 2 == 0;
      const std::int64_t other = std::clamp<std::int64_t>(left ? i - 1 : i + 1, 0, width_ - 1);
      const int sum = 3 * sums_[static_cast<std::size_t>(i)] + sums_[static_cast<std::size_t>(other)];
      const int bias = total == 4 ? (left ? 8 : 7) : (left ? 1 : 2);
      out_[x] = static_cast<std::uint8_t>((sum + bias) / (4 * total));
    }
    return out_;
  }

 private:
  const std::uint8_t* at(std::int64_t y) const { return frame_.planes[plane_] + y * frame_.strides[plane_]; }
  const PlanarFrame& frame_;
  std::size_t plane_;
  std::int64_t height_, width_;
  std::vector<int> sums_;
  std::vector<std::uint8_t> out_;
};

}  // namespace

void full_range_to_rgb(const PlanarFrame& frame, std::vector<std::uint8_t>& rgb) {
  ChromaRows blue(frame, 1), red(frame, 2);
  constexpr int kHalf = 1 << (kBits - 1);
  std::uint8_t* to = rgb.data();
  for (std::int64_t y = 0; y < frame.height; ++y) {
    const std::uint8_t* luma = frame.planes[0] + y * frame.strides[0];
    const auto& cb_row = blue.row(y);
    const auto& cr_row = red.row(y);
    for (std::size_t x = 0; x < cb_row.size(); ++x, to += 3) {
      const int cb = cb_row[x] - 128, cr = cr_row[x] - 128;
      to[0] = clamp(luma[x] + ((fixed(1.402) * cr + kHalf) >> kBits));
      to[1] = clamp(luma[x] + ((-fixed(0.344136286) * cb - fixed(0.714136286) * cr + kHalf) >> kBits));
      to[2] = clamp(luma[x] + ((fixed(1.772) * cb + kHalf) >> kBits));
    }
  }
}

}  // namespace troupe::data
