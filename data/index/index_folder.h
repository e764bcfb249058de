#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"

namespace troupe::data {

/// Where the index of a dataset may be.
struct IndexFolders {
  /// Folders where one may lie, the preferred first.
  std::vector<std::string> read;
  /// The one where it is written; empty when none of them can be.
  std::string write;
  /// The file of the dataset's FileTimes; empty where there is no cache folder.
  std::string times;
};

/// data.index.path/<name>-<digest> when a folder is configured; else $XDG_CACHE_HOME/troupe/index/<name>-<digest>
/// ($HOME/.cache without it), and <dataset>/.troupe/index is read where an earlier version or another machine left one.
/// data.index.path `beside`: the other way round, and written to <dataset>/.troupe/index unless the dataset is
/// read-only or has a file of that name. <name> is the last component of the dataset's real path, <digest> 16 hex
/// digits over all of it.
IndexFolders index_folders(const std::string& dataset_root, const IndexConfig& config);

/// False for a folder without write permission for its owner, or that this process cannot write: root may write
/// everywhere, and still leaves read-only datasets alone.
bool is_writable_folder(const std::string& path);

}  // namespace troupe::data
