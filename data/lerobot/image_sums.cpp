#include "data/lerobot/image_sums.h"

#include <algorithm>
#include <cmath>

#include "data/lerobot/number_table.h"

namespace troupe::data {

using Json = nlohmann::ordered_json;

namespace {

/// The value at place `rank` of all values in ascending order.
double value_at(const std::int64_t (&counts)[256], double rank) {
  double below = 0;
  for (int v = 0; v < 256; ++v) {
    below += static_cast<double>(counts[v]);
    if (below > rank) return v;
  }
  return 255;
}

/// Linear interpolation at p (n - 1).
double quantile_of(const std::int64_t (&counts)[256], double n, double p) {
  const double at = p * (n - 1), low = value_at(counts, std::floor(at));
  const double high = value_at(counts, std::min(std::floor(at) + 1, n - 1));
  return low + (high - low) * (at - std::floor(at));
}

}  // namespace

void ImageSums::add(const Rgb8View& image) {
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::uint8_t* p = image.row(y);
    for (std::int64_t x = 0; x < image.width; ++x, p += 3) {
      for (int c = 0; c < 3; ++c) ++counts[c][p[c]];
    }
  }
  pixels += image.height * image.width;
  ++frames;
}

Json ImageSums::to_json() const {
  Json out;
  for (const char* name : {"min", "max", "mean", "std"}) out[name] = Json::array();
  out["count"] = {frames};
  const auto put = [&](const char* name, double value) {
    out[name].push_back(Json::array({Json::array({value / 255.0})}));
  };
  const double n = static_cast<double>(std::max<std::int64_t>(1, pixels));
  for (const auto& channel : counts) {
    double sum = 0, square = 0;
    for (int v = 0; v < 256; ++v) sum += static_cast<double>(channel[v]) * v;
    for (int v = 0; v < 256; ++v) square += static_cast<double>(channel[v]) * (v - sum / n) * (v - sum / n);
    put("min", value_at(channel, 0));
    put("max", value_at(channel, n - 1));
    put("mean", sum / n);
    put("std", std::sqrt(square / n));
    for (const StatedQuantile& q : kStatedQuantiles) put(q.name, quantile_of(channel, n, q.p));
  }
  return out;
}

}  // namespace troupe::data
