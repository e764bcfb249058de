#pragma once

// Internal to data/convert: what the files of the sources hold, as far as the plan needs it.
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/plan.h"
#include "data/convert/source_check.h"

namespace troupe::data {

/// An episode with the facts of its files, or why it cannot be read.
struct ScannedEpisode {
  PlannedEpisode episode;
  /// Digest of its files' identities.
  std::string files_hash;
  /// Not empty: the episode is left out.
  std::vector<DatasetProblem> problems;
  /// What the source's SourceCheck says; its problems are among those above. Empty for what cannot be read at all.
  EpisodeCheck check;
};

/// Scans every episode of every source on `jobs` threads; the result is in the order of sources and episodes. Reads
/// Parquet footers and the sample tables of videos, and asks `checks`, one for each source. Of a repair there are no
/// checks: the numbers in the tables do not count, and every frame is decoded. Errors: those of DatasetSource::stats;
/// what is wrong with an episode's files is in `problems` (D03, D04, D06, D07, those of the checks; of a repair also
/// D13 and those of its source).
Result<std::vector<ScannedEpisode>> scan_episodes(const ConvertDatasetRequest& request,
                                                  std::vector<DatasetSource>& sources,
                                                  const std::vector<SourceCheck>& checks);

}  // namespace troupe::data
