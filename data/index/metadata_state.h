#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::data {

/// What a metadata file was when an index was made. Indexes go by contents, so that a copied dataset keeps its index.
struct MetadataFile {
  /// Relative to the dataset: "meta/info.json".
  std::string name;
  /// Bytes.
  std::int64_t size = 0;
  /// XXH3-128 of its bytes as 32 hex digits.
  std::string digest;
  /// The same file with the same bytes.
  bool operator==(const MetadataFile&) const = default;
};

/// The files of <root>/meta on which samples depend, ascending by name, hashed: info.json, episodes.jsonl,
/// tasks.jsonl or tasks.parquet, modality.json, stats.json, relative_stats_dreamzero.json, step_filter.jsonl, and every
/// Parquet file below meta/episodes. Files are read in parts, several at a time: memory stays flat whatever their size.
/// Errors: data_loss (not a regular file), those of file_error.
Result<std::vector<MetadataFile>> metadata_state(const std::string& root, std::int64_t threads);

}  // namespace troupe::data
