#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.h"

namespace troupe::bench {

/// A dataset of any number of episodes for measuring what their number costs. Metadata and folders are those of a
/// real one; tables and videos are hard links to ten source files (v2.1) or to one table and one video file (v3.0),
/// so that 100,000 episodes fit into megabytes. Episodes have ten lengths of 100 to 145 rows, three cameras, state
/// and action of seven values, 50 tasks. Videos of v2.1 are real H.264 frames of 64x64; of v3.0 they are stand-ins
/// that only probe() reads.
class GeneratedSet {
 public:
  static constexpr std::int64_t kLengths = 10, kCameras = 3, kRows = 100;
  static constexpr std::int64_t kEpisodesPerVideo = 100, kEpisodesPerTable = 500;  ///< v3.0

  /// Writes it below `folder`. Requires a multiple of 100 episodes, of 500 from 500 on. Throws std::runtime_error.
  GeneratedSet(const std::string& folder, const std::string& version, std::int64_t episodes);

  const std::string& root() const { return root_; }
  std::int64_t rows() const { return total_rows_; }
  /// What a probe of any of its videos finds, without opening the file.
  static VideoProbe probe(const std::string& version);
  static std::int64_t length(std::int64_t episode) { return kRows + 5 * (episode % kLengths); }
  /// A spec for it with the windows of the DROID recipe.
  static DatasetSpec spec(const std::string& root);

 private:
  void write_info(const std::string& version, std::int64_t episodes) const;
  void write_v2(std::int64_t episodes) const;
  void write_v3(std::int64_t episodes) const;

  std::string root_;
  std::int64_t total_rows_ = 0;
};

}  // namespace troupe::bench
