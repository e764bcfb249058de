#pragma once

// Internal to data/convert: the tables and videos that lie in a dataset's folder, whatever its path templates say.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/lerobot/lerobot_info.h"

namespace troupe::data {

/// Which file it is, by the numbers in its name: v2 (0, episode), v3 (chunk, file).
using FileNumber = std::pair<std::int64_t, std::int64_t>;

/// Paths begin with the dataset's root.
struct FoundFiles {
  std::map<FileNumber, std::string> tables;
  /// By camera: the feature whose name, or its part behind the last dot, is a folder above the file.
  std::map<std::string, std::map<FileNumber, std::string>> videos;
  /// Files that another one's number or no number left over, one sentence each.
  std::vector<std::string> notes;
};

/// Lists *.parquet and videos below `root`, without meta/ and hidden files. Of two with one number the one that
/// info.json names counts, else the first by name. Nothing is opened.
FoundFiles find_files(const std::string& root, const LerobotInfo& info);

}  // namespace troupe::data
