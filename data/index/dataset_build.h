#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/index/file_table.h"
#include "data/index/file_times.h"
#include "data/index/sample_table.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/sampling/dataset_spec.h"

namespace troupe::data {

/// What making or loading an index took.
struct IndexReport {
  /// Where the index lies; empty: in memory only.
  std::string folder;
  /// Taken from disk as it was.
  bool loaded = false;
  /// Episodes whose files were read and checked.
  std::int64_t episodes_checked = 0;
  /// Episodes taken over from an older index because their files did not change.
  std::int64_t episodes_reused = 0;
  /// Video files whose sample tables were read from the file, and those taken over from an older index.
  std::int64_t videos_read = 0;
  std::int64_t videos_reused = 0;
  /// Wall seconds of making the index; 0 when it was loaded.
  double seconds = 0;
};

/// What an index is made from. References must outlive the call of build_index.
struct IndexInputs {
  /// Which episodes and windows, and the columns resolved from the spec's embodiment.
  const DatasetSpec& spec;
  const SampleColumns& columns;
  /// How video files are looked at, for tests; empty: the files' own sample tables.
  const VideoProbe& probe;
  /// Threads that check episodes; 0: one per CPU, at most 16.
  std::int64_t threads = 0;
  /// metadata_state(), read before anything else, so that a file that changes meanwhile makes the index stale.
  std::vector<MetadataFile> metadata;
  /// Older indexes whose entries are taken over where nothing changed; null: none.
  std::shared_ptr<const SampleTable> old_samples;
  std::shared_ptr<const FileTable> old_files;
  /// States of the dataset's files.
  FileTimes* times = nullptr;
};

/// An index in memory, before its two files are written: samples-*.idx and files.idx.
struct BuiltIndex {
  SampleContents samples;
  FileTableWriter files;
};

/// Digest of everything in a spec that decides which samples there are and what is known of them. Its 16 hex digits
/// name the index: samples-DIGEST.idx. Datasets opened with other windows or embodiments have an index each.
std::uint64_t recipe_digest(const DatasetSpec& spec);

/// Checks the chosen episodes (docs/data.md#defects), lists their samples and computes their statistics. Bad episodes
/// are left out and listed in the summary, whatever data.bad_sample says. Without a training sample, statistics are
/// left empty.
/// Errors: invalid_argument (metadata, an episode that does not exist), not_found, data_loss.
Result<BuiltIndex> build_index(LerobotDataset dataset, const IndexInputs& inputs, IndexReport& report);

}  // namespace troupe::data
