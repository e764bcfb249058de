#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "data/index/dataset_build.h"
#include "data/index/file_table.h"
#include "data/index/sample_table.h"
#include "data/sampling/dataset_spec.h"

namespace troupe::data {

/// How a dataset is opened.
struct DatasetOptions {
  /// How video files are looked at, for tests; empty: the files' own sample tables.
  VideoProbe probe;
  /// Threads that check files; 0: one per CPU, at most 16. They change no byte of the index.
  std::int64_t threads = 0;
  /// Compare every file with the index, however many there are.
  bool verify_files = false;
  /// Up to this many files are compared at every opening: some milliseconds on a local disk. Of more, each when it is
  /// used.
  std::int64_t compared_files = 10'000;
};

/// An index ready to be used: mapped from disk, so that processes of a node share its memory, or in memory only.
/// Copies share both tables. Any thread may read them.
struct OpenedIndex {
  std::shared_ptr<const SampleTable> samples;
  std::shared_ptr<const FileTable> files;
  /// How the files were seen last: which of them are still the indexed ones.
  std::shared_ptr<FileTimes> times;
  IndexReport report;
};

/// Loads the index of the dataset in folder `root` for a spec, or makes it, as spec.index says (docs/dataset-index.md):
///   loaded    when its metadata files have the contents that were indexed, and options.compared_files files (with
///             verify_files: all) are those that were indexed (FileTimes::is_unchanged);
///   made      otherwise: episodes and videos that did not change come from the older index, and the result is written
///             to the index folder. Where none can be written, a warning says so and it stays in memory.
/// A damaged index is a warning, and is made anew. Any number of processes may do this at once.
/// Errors: those of build_index.
Result<OpenedIndex> open_index(const std::string& root, const DatasetSpec& spec, const SampleColumns& columns,
                               const DatasetOptions& options);

}  // namespace troupe::data
