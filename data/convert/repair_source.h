#pragma once

// Internal to data/convert: a dataset whose metadata are damaged, as its tables and videos say it is.
#include <string>

#include "base/result.h"
#include "data/convert/dataset_source.h"

namespace troupe::data {

/// Opens a dataset like DatasetSource::open, but believes the files more than the metadata:
///     files     found by their numbers and folders, whatever the path templates say
///     episodes  v2: one per table; v3: runs of the column episode_index, else what the metadata say
///     lengths   the rows of the tables
///     frames    v3: where the metadata say, else the videos hold the episodes in their order, if they add up
///     tasks     texts of the metadata; one that is lost is that of an episode with one task
///     statistics  none: they are computed
/// Every difference is a note; what cannot be mended is in SourceEpisode::problems.
/// Errors: as DatasetSource::open, of info.json alone; data_loss (no table at all).
Result<DatasetSource> repair_source(const std::string& root);

}  // namespace troupe::data
