#pragma once

// Internal to data/convert: the statistics of every episode of the output.
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/journal.h"
#include "data/convert/write_files.h"

namespace troupe::data {

/// What the source says, with what was computed meanwhile in its place. Ask in ascending order: an entry of the journal
/// is read once. Not thread-safe.
class OutputStats {
 public:
  /// All arguments outlive the object; `journal` holds an entry for every task of the plan.
  OutputStats(const ConvertContext& context, std::vector<DatasetSource>& sources, const ConvertJournal& journal);
  /// {feature: {statistic: values}} of plan episode `episode`, in the form of episodes_stats.jsonl. Where the source's
  /// statistics have no quantiles, computed ones are left out too. Errors: those of DatasetSource::stats, data_loss.
  Result<JsonDoc> of(std::size_t episode);
  /// Erases q01 and q99 from `sum`, the sum of all episodes, for columns whose source has no statistics. The sum holds
  /// the envelope of the episodes' quantiles there; add_quantiles computes the quantiles of all rows instead.
  void erase_computed_quantiles(JsonDoc& sum) const;

 private:
  struct Stream {
    /// Episode of the plan -> the task that wrote it.
    std::vector<std::size_t> task_of;
    std::size_t loaded = static_cast<std::size_t>(-1);
    JsonDoc entry;
  };
  const ConvertContext& context_;
  std::vector<DatasetSource>& sources_;
  const ConvertJournal& journal_;
  /// Tables, then each camera.
  std::vector<Stream> streams_;
  /// Features that an episode's source has no statistics of.
  std::set<std::string> computed_;
};

}  // namespace troupe::data
