#pragma once

// Internal to data/convert: everything below meta/ of the output, info.json last.
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/output_stats.h"

namespace troupe {

/// tasks.parquet, episodes/, stats.json of v3.0. `sum` receives the dataset's statistics.
Result<void> write_metadata_v30(const ConvertContext& context, OutputStats& stats, JsonDoc& sum);
/// tasks.jsonl, episodes.jsonl, episodes_stats.jsonl of v2.1.
Result<void> write_metadata_v21(const ConvertContext& context, OutputStats& stats, JsonDoc& sum);

/// meta/stats.json: the sum of the episodes, with the entries of a single source's file that the sum lacks
/// (quantiles of
/// the whole dataset, GEAR). v2.1 has the file only when the source's holds such quantiles.
Result<void> write_dataset_stats(const ConvertContext& context, const JsonDoc& sum);

/// Files that no version defines: the rest of meta/, and files beside it such as LICENSE. Lines of .jsonl files that
/// name
/// an episode get its new number. Notes say what could not be carried.
Result<void> carry_files(const ConvertContext& context, std::vector<std::string>& notes);

Result<void> write_info(const ConvertContext& context);

}  // namespace troupe
