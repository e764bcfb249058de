#include "data/lerobot/image_sums.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace troupe::data {

using Json = nlohmann::ordered_json;

void ImageSums::add(const Rgb8View& image) {
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::uint8_t* p = image.row(y);
    for (std::int64_t x = 0; x < image.width; ++x, p += 3) {
      for (int c = 0; c < 3; ++c) {
        const double v = p[c] / 255.0;
        sum[c] += v;
        square[c] += v * v;
        low[c] = std::min(low[c], v);
        high[c] = std::max(high[c], v);
      }
    }
  }
  pixels += image.height * image.width;
  ++frames;
}

Json ImageSums::to_json() const {
  const auto per_channel = [](const std::function<double(int)>& value) {
    Json out = Json::array();
    for (int c = 0; c < 3; ++c) out.push_back({{value(c)}});
    return out;
  };
  const double n = static_cast<double>(std::max<std::int64_t>(1, pixels));
  const auto spread = [&](int c) { return std::sqrt(std::max(0.0, square[c] / n - sum[c] / n * sum[c] / n)); };
  return {{"min", per_channel([&](int c) { return low[c]; })},
          {"max", per_channel([&](int c) { return high[c]; })},
          {"mean", per_channel([&](int c) { return sum[c] / n; })},
          {"std", per_channel(spread)},
          {"count", {frames}}};
}

}  // namespace troupe::data
