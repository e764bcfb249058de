#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/index/file_table.h"
#include "data/index/sample_table.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/sampling/dataset_spec.h"

namespace troupe {

/// What making or loading an index took.
struct IndexReport {
  std::string folder;                 ///< where the index lies; empty: in memory only
  bool loaded = false;                ///< taken from disk as it was
  std::int64_t episodes_checked = 0;  ///< whose files were read
  std::int64_t episodes_reused = 0;   ///< taken over from an older index
  std::int64_t videos_read = 0;       ///< whose sample tables were read from the file
  std::int64_t videos_reused = 0;
  double seconds = 0;  ///< of making it
};

/// What an index is made from.
struct IndexInputs {
  const DatasetSpec& spec;
  const SampleColumns& columns;
  const VideoProbe& probe;  ///< empty: the files' own sample tables
  std::int64_t threads = 0;
  std::vector<MetadataFile> metadata;  ///< read before anything else
  /// Older indexes whose entries are taken over where nothing changed; null: none.
  std::shared_ptr<const SampleTable> old_samples;
  std::shared_ptr<const FileTable> old_files;
};

/// An index in memory.
struct BuiltIndex {
  SampleContents samples;
  FileTableWriter files;
};

/// Digest of everything in a spec that decides which samples there are and what is known of them: the name of its
/// index.
std::uint64_t recipe_digest(const DatasetSpec& spec);

/// Checks the chosen episodes (data.md 6.3), lists their samples and computes their statistics. Bad episodes are left
/// out and listed in the summary, whatever data.bad_sample says. Without a training sample, statistics are left
/// empty.
/// Errors: invalid_argument (metadata, an episode that does not exist), not_found, data_loss.
Result<BuiltIndex> build_index(LerobotDataset dataset, const IndexInputs& inputs, IndexReport& report);

}  // namespace troupe
