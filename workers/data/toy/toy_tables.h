#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "workers/data/toy/toy_arm.h"
#include "workers/data/toy/toy_dataset.h"

namespace troupe {

/// Place of one episode in the dataset.
struct ToyEpisodeRows {
  std::int64_t episode_index = 0;
  std::int64_t first_index = 0;  ///< global index of its first row
  double fps = 10;
};

/// Sums of a view's pixels, from which LeRobot's image statistics follow.
struct ToyImageSums {
  double sum[3] = {}, square[3] = {};
  double low[3] = {1, 1, 1}, high[3] = {0, 0, 0};
  std::int64_t pixels = 0, frames = 0;
  void add(const Rgb8View& picture);
  nlohmann::ordered_json to_json() const;  ///< shape (3, 1, 1), values 0..1
};

/// Writes data/chunk-*/episode_*.parquet: one row group, Snappy.
Result<void> write_toy_table(const std::string& path, const ToyEpisode& episode, const ToyEpisodeRows& rows);

/// {"min", "max", "mean", "std", "count"} of every table column, as in episodes_stats.jsonl.
nlohmann::ordered_json toy_table_stats(const ToyEpisode& episode, const ToyEpisodeRows& rows);

/// meta/info.json and meta/modality.json.
nlohmann::ordered_json toy_info(const ToyDatasetOptions& options, std::int64_t total_frames);
nlohmann::ordered_json toy_modality();

}  // namespace troupe
