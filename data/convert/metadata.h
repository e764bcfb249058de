#pragma once

// Internal to data/convert: everything below meta/ of the output, info.json last.
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/output_stats.h"

namespace troupe::data {

/// meta/tasks.parquet and meta/episodes/chunk-000/file-000.parquet of v3.0. `sum` receives the dataset's statistics,
/// which write_dataset_stats writes. Two passes over `stats`, each in ascending order: the first finds the column types
/// of all episodes, the second writes, so that memory is that of one row group.
/// Errors: those of OutputStats::of and of writing a file; internal.
Result<void> write_metadata_v30(const ConvertContext& context, OutputStats& stats, JsonDoc& sum);
/// The same for v2.1: meta/tasks.jsonl, episodes.jsonl and episodes_stats.jsonl.
Result<void> write_metadata_v21(const ConvertContext& context, OutputStats& stats, JsonDoc& sum);

/// meta/stats.json: the sum of the episodes, with the entries of a single source's file that the sum lacks (quantiles
/// of the whole dataset, GEAR) and the quantiles that both lack. v2.1 has the file only when the source's holds such
/// quantiles. Notes say of what there are none.
Result<void> write_dataset_stats(const ConvertContext& context, const JsonDoc& sum, std::vector<std::string>& notes);

/// Files that no version defines: the rest of meta/, and files beside it such as LICENSE. Lines of .jsonl files that
/// name an episode get its new number. Notes say what could not be carried.
Result<void> carry_files(const ConvertContext& context, std::vector<std::string>& notes);

/// meta/info.json, the last file of a conversion: a folder without it is half a conversion. Keys of the first source
/// stay in their order; version, counts, templates and chunk sizes are those of the output.
Result<void> write_info(const ConvertContext& context);

}  // namespace troupe::data
