#include "data/convert/episode_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "data/convert/frame_reader.h"
#include "data/convert/table_rows.h"
#include "image/yuv_to_rgb.h"

namespace troupe::data {

namespace {

using Json = nlohmann::ordered_json;

struct Quantile {
  const char* name;
  double p;
};
constexpr Quantile kQuantiles[] = {{"q01", 0.01}, {"q10", 0.10}, {"q50", 0.50}, {"q90", 0.90}, {"q99", 0.99}};

/// Every statistic of `count` values, in LeRobot's order, without a number yet.
Json empty_lists(std::int64_t count) {
  Json out;
  for (const char* name : {"min", "max", "mean", "std"}) out[name] = Json::array();
  out["count"] = {count};
  for (const Quantile& q : kQuantiles) out[q.name] = Json::array();
  return out;
}

/// Linear interpolation at p * (n - 1) of ascending values.
double quantile_of(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

/// Counts of 8-bit values of three channels.
class PixelCounts {
 public:
  void add(const std::uint8_t* rgb) {
    for (std::size_t c = 0; c < 3; ++c) ++counts_[c][rgb[c]];
  }
  Json finish(std::int64_t frames) const {
    Json out = empty_lists(frames);
    for (const auto& channel : counts_) {
      double n = 0, sum = 0, square = 0;
      int low = 255, high = 0;
      for (int v = 0; v < 256; ++v) {
        const auto k = static_cast<double>(channel[static_cast<std::size_t>(v)]);
        if (k == 0) continue;
        low = std::min(low, v);
        high = v;
        n += k;
        sum += k * v;
      }
      const double mean = sum / n;
      for (int v = 0; v < 256; ++v)
        square += static_cast<double>(channel[static_cast<std::size_t>(v)]) * (v - mean) * (v - mean);
      put(out["min"], low);
      put(out["max"], high);
      put(out["mean"], mean);
      put(out["std"], std::sqrt(square / n));
      for (const Quantile& q : kQuantiles) put(out[q.name], quantile(channel, n, q.p));
    }
    return out;
  }

 private:
  using Channel = std::array<std::int64_t, 256>;
  static void put(Json& list, double value) { list.push_back(Json::array({Json::array({value / 255.0})})); }
  static double value_at(const Channel& channel, double rank) {
    double below = 0;
    for (int v = 0; v < 256; ++v) {
      below += static_cast<double>(channel[static_cast<std::size_t>(v)]);
      if (below > rank) return v;
    }
    return 255;
  }
  static double quantile(const Channel& channel, double n, double p) {
    const double at = p * (n - 1), floor = std::floor(at);
    const double low = value_at(channel, floor), high = value_at(channel, std::min(floor + 1, n - 1));
    return low + (high - low) * (at - floor);
  }
  std::array<Channel, 3> counts_{};
};

/// Appends the leaves of nested lists, in order.
void flatten(const Json& value, std::vector<double>& out) {
  if (value.is_array()) {
    for (const Json& item : value) flatten(item, out);
  } else if (value.is_boolean()) {
    out.push_back(value.get<bool>() ? 1 : 0);
  } else {
    out.push_back(value.is_number() ? value.get<double>() : std::nan(""));
  }
}

/// `values` in the nesting of `like`, with the types of its leaves.
Json unflatten(const Json& like, const std::vector<double>& values, std::size_t& at) {
  if (like.is_array()) {
    Json out = Json::array();
    for (const Json& item : like) out.push_back(unflatten(item, values, at));
    return out;
  }
  const double value = values[at++];
  if (like.is_boolean()) return value != 0;
  if (like.is_number_integer() && value == std::floor(value)) return static_cast<std::int64_t>(value);
  return value;
}

}  // namespace

Json column_stats(const arrow::ChunkedArray& column) {
  const NumberColumn numbers = number_column(column);
  if (numbers.width == 0 || numbers.values.empty()) return nullptr;
  const auto width = static_cast<std::size_t>(numbers.width), rows = numbers.values.size() / width;
  Json out = empty_lists(static_cast<std::int64_t>(rows));
  const auto typed = [&](double v) -> Json {
    if (numbers.booleans) return v != 0;
    if (numbers.integers) return static_cast<std::int64_t>(v);
    return v;
  };
  std::vector<double> values(rows);
  for (std::size_t d = 0; d < width; ++d) {
    double sum = 0, square = 0;
    for (std::size_t r = 0; r < rows; ++r) sum += values[r] = numbers.values[r * width + d];
    const double mean = sum / static_cast<double>(rows);
    for (const double v : values) square += (v - mean) * (v - mean);
    std::sort(values.begin(), values.end());
    out["min"].push_back(typed(values.front()));
    out["max"].push_back(typed(values.back()));
    out["mean"].push_back(mean);
    out["std"].push_back(std::sqrt(square / static_cast<double>(rows)));
    for (const Quantile& q : kQuantiles) out[q.name].push_back(quantile_of(values, q.p));
  }
  return out;
}

std::vector<std::int64_t> sampled_frames(std::int64_t count) {
  const double power = std::pow(static_cast<double>(count), 0.75);
  const auto wanted =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(power), std::min<std::int64_t>(100, count), 10'000);
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < wanted; ++i) {
    const double at =
        wanted == 1 ? 0.0 : static_cast<double>(i) * (static_cast<double>(count - 1) / static_cast<double>(wanted - 1));
    out.push_back(static_cast<std::int64_t>(std::nearbyint(at)));  // half to even, as NumPy rounds
  }
  return out;
}

bool frame_rgb(const AVFrame& frame, std::vector<std::uint8_t>& rgb) {
  if (frame.format != AV_PIX_FMT_YUV420P && frame.format != AV_PIX_FMT_YUVJ420P) return false;
  const std::int64_t h = frame.height, w = frame.width;
  rgb.resize(static_cast<std::size_t>(h * w * 3));
  const Yuv420View view{.y = frame.data[0],
                        .u = frame.data[1],
                        .v = frame.data[2],
                        .y_stride = frame.linesize[0],
                        .u_stride = frame.linesize[1],
                        .v_stride = frame.linesize[2],
                        .height = h,
                        .width = w,
                        .matrix = frame.colorspace == AVCOL_SPC_BT709 ? ColorMatrix::bt709 : ColorMatrix::bt601,
                        .full_range = frame.format == AV_PIX_FMT_YUVJ420P || frame.color_range == AVCOL_RANGE_JPEG};
  yuv420_to_rgb(view, rgb.data(), w * 3);
  return true;
}

Result<Json> frame_stats(const std::string& path, std::shared_ptr<const PacketTable> table, std::int64_t first,
                         std::int64_t count) {
  const std::vector<std::int64_t> places = sampled_frames(count);
  TROUPE_ASSIGN(FrameReader reader, FrameReader::open(path, std::move(table), first, count));
  PixelCounts counts;
  std::vector<std::uint8_t> rgb;
  std::size_t wanted = 0;
  for (std::int64_t i = 0; wanted < places.size(); ++i) {
    TROUPE_ASSIGN(const AVFrame* frame, reader.next());
    if (frame == nullptr) break;
    if (i != places[wanted]) continue;
    if (!frame_rgb(*frame, rgb)) return Json();
    const std::int64_t h = frame->height, w = frame->width;
    const std::int64_t step = std::max(h, w) < 300 ? 1 : std::max<std::int64_t>(1, (w > h ? w : h) / 150);
    for (; wanted < places.size() && places[wanted] == i; ++wanted) {
      for (std::int64_t y = 0; y < h; y += step)
        for (std::int64_t x = 0; x < w; x += step) counts.add(&rgb[static_cast<std::size_t>((y * w + x) * 3)]);
    }
  }
  return counts.finish(static_cast<std::int64_t>(places.size()));
}

Result<void> StatsSum::add(const Json& stats) {
  for (const auto& [name, values] : stats.items()) {
    if (!values.is_object()) continue;
    if (features_.count(name) == 0) order_.push_back(name);
    Feature& f = features_[name];
    for (const auto& [stat, value] : values.items()) f.like.try_emplace(stat, value);
    std::vector<double> count, mean, std;
    for (const auto& [stat, value] : values.items()) {
      std::vector<double> numbers;
      flatten(value, numbers);
      const bool lowest = stat == "min" || stat == "q01" || stat == "q10" || stat == "q50";
      if (stat == "mean")
        mean = numbers;
      else if (stat == "std")
        std = numbers;
      else if (stat == "count")
        count = numbers;
      else {
        auto& kept = f.extreme[stat];
        if (kept.empty()) kept = numbers;
        if (kept.size() != numbers.size())
          return Error{Errc::data_loss,
                       fmt::format("statistics of '{}': {} has {} values in one episode and {} in another", name, stat,
                                   kept.size(), numbers.size())};
        for (std::size_t d = 0; d < kept.size(); ++d)
          kept[d] = lowest ? std::min(kept[d], numbers[d]) : std::max(kept[d], numbers[d]);
      }
    }
    if (mean.empty() || mean.size() != std.size() || count.size() != 1) continue;
    if (f.mean.empty()) f.mean.assign(mean.size(), 0), f.square.assign(mean.size(), 0);
    if (f.mean.size() != mean.size())
      return Error{Errc::data_loss, fmt::format("statistics of '{}' have {} values in one episode and {} in another",
                                                name, f.mean.size(), mean.size())};
    // Chan's update: a dimension that never changes keeps a deviation of exactly 0
    const double before = f.count, n = count[0];
    f.count += n;
    for (std::size_t d = 0; n > 0 && d < mean.size(); ++d) {
      const double delta = mean[d] - f.mean[d];
      f.mean[d] += delta * (n / f.count);
      f.square[d] += n * std[d] * std[d] + delta * delta * (before * (n / f.count));
    }
  }
  return {};
}

Json StatsSum::finish() const {
  Json out = Json::object();
  for (const std::string& name : order_) {
    const Feature& f = features_.at(name);
    Json feature = Json::object();
    const auto put = [&](const std::string& stat, const std::vector<double>& values) {
      std::size_t at = 0;
      if (!values.empty()) feature[stat] = unflatten(f.like.at(stat), values, at);
    };
    for (const char* stat : {"min", "max"}) {
      if (f.extreme.count(stat) != 0) put(stat, f.extreme.at(stat));
    }
    std::vector<double> std;
    for (const double square : f.square) std.push_back(std::sqrt(square / f.count));
    put("mean", f.mean);
    put("std", std);
    if (f.count > 0) feature["count"] = {static_cast<std::int64_t>(f.count)};
    for (const auto& [stat, values] : f.extreme) {
      if (stat != "min" && stat != "max") put(stat, values);
    }
    out[name] = std::move(feature);
  }
  return out;
}

}  // namespace troupe::data
