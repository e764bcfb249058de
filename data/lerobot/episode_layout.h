#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/lerobot/dataset_problem.h"
#include "data/lerobot/lerobot_info.h"
#include "data/lerobot/lerobot_meta.h"

namespace troupe::data {

/// Rows of a table file, or -1 when that cannot be told.
using CountRows = std::function<std::int64_t(const std::string& path)>;

/// Sets first_row of every episode of a v3 dataset from dataset_from: relative to the first row of its data file that
/// any episode claims. Where claims overlap, the file is a D15 finding and its number of rows decides: as many as the
/// lengths of its episodes together, and the lengths are added up instead; otherwise a length is wrong, and the indices
/// stay where they fit into the file: the episodes behind the wrong one are not lost. `path_of` names a data file;
/// `count` is asked about files of findings alone (empty: the lengths are used).
void lay_out_rows(std::vector<EpisodeRecord>& episodes,
                  const std::function<std::string(std::int64_t chunk, std::int64_t file)>& path_of,
                  const CountRows& count, std::vector<DatasetProblem>& findings);

/// Sets first_frame and frames of camera `camera` (place in EpisodeRecord::videos) of every episode of a v3 dataset.
///
/// An episode begins where the lengths of the episodes before it in its file end (sorted by from_timestamp). When that
/// differs from from_timestamp by half a frame or more anywhere in a file, or ranges overlap, the file is a D15
/// finding, and its number of frames decides: as many as its episodes have rows, and the lengths are right (times
/// drift); otherwise the frames nearest to the times, provided that they fit into the file one after the other, with
/// the lengths or with the times at which the episodes end.
void lay_out_frames(std::vector<EpisodeRecord>& episodes, std::size_t camera, const LerobotInfo& info,
                    const std::function<std::string(std::int64_t chunk, std::int64_t file)>& path_of,
                    const CountFrames& count, std::vector<DatasetProblem>& findings);

}  // namespace troupe::data
