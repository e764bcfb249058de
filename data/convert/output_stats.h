#pragma once

// Internal to data/convert: the statistics of every episode of the output.
#include <cstddef>
#include <vector>

#include "base/result.h"
#include "data/convert/journal.h"
#include "data/convert/write_files.h"

namespace troupe {

/// What the source says, with what was computed meanwhile in its place. Ask in ascending order: an entry of the journal
/// is read once. Not thread-safe.
class OutputStats {
 public:
  OutputStats(const ConvertContext& context, std::vector<DatasetSource>& sources, const ConvertJournal& journal);
  Result<JsonDoc> of(std::size_t episode);

 private:
  struct Stream {
    std::vector<std::size_t> task_of;  ///< episode -> task
    std::size_t loaded = static_cast<std::size_t>(-1);
    JsonDoc entry;
  };
  const ConvertContext& context_;
  std::vector<DatasetSource>& sources_;
  const ConvertJournal& journal_;
  std::vector<Stream> streams_;  ///< tables, then each camera
};

}  // namespace troupe
