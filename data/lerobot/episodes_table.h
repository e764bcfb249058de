#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/lerobot/dataset_problem.h"
#include "data/lerobot/lerobot_info.h"
#include "data/lerobot/lerobot_meta.h"

namespace troupe::data {

/// The tables of meta/episodes of a v3 dataset, in file order: what they say, first_row and first_frame not yet set.
/// Columns of statistics are not read. Cameras whose columns are absent have no VideoSpan.
/// Errors: not_found (no such file), data_loss, invalid_argument (a column missing or of another type, a negative or
/// impossible number).
Result<std::vector<EpisodeRecord>> read_episodes_table(const std::string& root, const LerobotInfo& info);

/// meta/tasks.parquet: task_index -> text. The text is the pandas index, under whatever name, or the only column of
/// texts. Errors: as above.
Result<std::map<std::int64_t, std::string>> read_tasks_table(const std::string& path);

/// Paths of the files meta/episodes/chunk-NNN/file-NNN.parquet, ascending. Empty when there is none. Any other file
/// below meta/episodes, such as the ._file-000.parquet of a copy that macOS made, is ignored and named in `foreign`.
std::vector<std::string> episode_table_files(const std::string& root, std::vector<std::string>* foreign = nullptr);

}  // namespace troupe::data
