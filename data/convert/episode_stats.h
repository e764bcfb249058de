#pragma once

// Internal to data/convert: statistics per episode and their sum, as LeRobot defines them in
// lerobot/datasets/compute_stats.py.
#include <arrow/table.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/video/ffmpeg.h"
#include "data/video/packet_table.h"

namespace troupe::data {

/// min, max, mean, std (population), count, q01, q10, q50, q90, q99 of a column of numbers, quantiles interpolated
/// linearly; null for other columns. min and max keep the column's type.
nlohmann::ordered_json column_stats(const arrow::ChunkedArray& column);

/// The same of the frames [first, first + count) of a video: clamp(count^0.75, 100, 10000) frames, evenly spaced,
/// every n-th pixel where a side has 300 or more, per channel, 0..1, shape (3, 1, 1). Only 8-bit 4:2:0 frames have
/// statistics; null for others. Errors: data_loss.
Result<nlohmann::ordered_json> frame_stats(const std::string& path, std::shared_ptr<const PacketTable> table,
                                           std::int64_t first, std::int64_t count);

/// The pixels of an 8-bit 4:2:0 frame, packed RGB of its size; false: it has another format.
bool frame_rgb(const AVFrame& frame, std::vector<std::uint8_t>& rgb);

/// Places of the frames that frame_stats takes, ascending, below `count`.
std::vector<std::int64_t> sampled_frames(std::int64_t count);

/// Statistics of a dataset from those of its episodes: count-weighted mean, pooled variance, min, max; quantiles up to
/// q50 take the smallest, others the largest (LeRobot's envelope).
class StatsSum {
 public:
  /// Adds one episode's {feature: {stat: values}}. Features without mean, std and count only take part in min and max.
  Result<void> add(const nlohmann::ordered_json& stats);
  /// {feature: {statistic: values}} of everything added, in the shapes and types of the first episode that had them.
  nlohmann::ordered_json finish() const;

 private:
  struct Feature {
    /// Running min, max and quantiles by name, flattened.
    std::map<std::string, std::vector<double>> extreme;
    /// Of all episodes so far, per dimension; `square` is the sum of (x - mean)^2 over `count` values.
    std::vector<double> mean, square;
    /// An example of each statistic.
    std::map<std::string, nlohmann::ordered_json> like;
    double count = 0;
  };
  std::vector<std::string> order_;
  std::map<std::string, Feature> features_;
};

}  // namespace troupe::data
