#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/health/health_report.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/parquet_table.h"

namespace troupe::data {

/// Statistics that the metadata state of each episode, meta/episodes_stats.jsonl of v2.1 and the columns stats/... of
/// v3.0's meta/episodes: min, max, mean and std of the columns that samples use. Training does not use them; other
/// programs do, and a conversion carries them on.
class EpisodeStatsCheck {
 public:
  /// Reads what is stated of `columns`.
  EpisodeStatsCheck(const LerobotDataset& dataset, std::vector<std::string> columns);

  /// Compares one episode's table, which has the columns. Thread-safe for different episodes.
  void compare(std::int64_t episode, const EpisodeTable& table);
  /// D12 warnings: one for all statistics that are of other data, one for lines that cannot be read.
  void report(std::vector<HealthFinding>& findings) const;

 private:
  /// By "mean of 'action'", say.
  using Stated = std::map<std::string, std::vector<double>>;
  struct Entry {
    Stated stated;
    /// What differs first; empty: nothing.
    std::string differs;
  };
  void read_lines();
  void read_tables(const LerobotDataset& dataset);
  void compare_dimension(std::int64_t episode, Entry& entry, const std::string& column, const VectorColumn& values,
                         std::size_t d) const;

  std::string path_;
  std::vector<std::string> columns_;
  std::map<std::int64_t, Entry> episodes_;  ///< by episode_index
  std::string unreadable_;
};

}  // namespace troupe::data
