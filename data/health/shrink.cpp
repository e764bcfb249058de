#include "data/health/shrink.h"

#include <algorithm>

namespace troupe::data {

StillImage shrink(const Rgb8View& in) {
  const std::int64_t by = (in.width + kPictureWidth - 1) / kPictureWidth;
  StillImage out;
  out.height = std::max<std::int64_t>(1, in.height / by);
  out.width = std::max<std::int64_t>(1, in.width / by);
  out.rgb.resize(static_cast<std::size_t>(3 * out.height * out.width));
  for (std::int64_t y = 0; y < out.height; ++y) {
    for (std::int64_t x = 0; x < 3 * out.width; ++x) {
      std::int64_t sum = 0, n = 0;
      for (std::int64_t dy = 0; dy < by && y * by + dy < in.height; ++dy) {
        for (std::int64_t dx = 0; dx < by && x / 3 * by + dx < in.width; ++dx, ++n)
          sum += in.row(y * by + dy)[3 * (x / 3 * by + dx) + x % 3];
      }
      out.rgb[static_cast<std::size_t>(y * 3 * out.width + x)] = static_cast<std::uint8_t>((sum + n / 2) / n);
    }
  }
  return out;
}

}  // namespace troupe::data
