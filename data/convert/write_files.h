#pragma once

// Internal to data/convert: the data and video files of a plan.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/plan.h"
#include "data/convert/table_rows.h"

namespace troupe::data {

/// What every part of a conversion reads. Nothing in it changes while files are written.
struct ConvertContext {
  const ConvertDatasetRequest& request;
  const ConvertPlan& plan;
  const std::vector<DatasetSource>& sources;
  /// Folder of the output; paths of the plan are relative to it.
  std::string out;

  const SourceEpisode& source_of(const PlannedEpisode& e) const { return sources[e.source].episodes[e.place]; }
};

/// An episode's table as the output has it: the source's columns in their order, numbers mapped where the plan says so.
/// `rewritten` receives the columns whose values are not the source's. Errors: data_loss.
Result<std::shared_ptr<arrow::Table>> output_table(const ConvertContext& context, const PlannedEpisode& episode,
                                                   RowReader& rows, std::vector<std::string>* rewritten);

/// Columns that hold task indices: task_index and the annotations of modality.json.
std::vector<std::string> task_columns(const DatasetSource& source);

/// Writes one file and gives it its name; adds {"stats": {episode: {feature: ...}}} to `entry` for episodes whose
/// statistics the source lacks or whose columns were rewritten. Errors: data_loss, resource_exhausted, unavailable.
/// Fault points: convert.rows, convert.rename.
Result<void> write_table_file(const ConvertContext& context, const PlannedOutput& file, RowReader& rows,
                              JsonDoc& entry);
/// The same of a camera. Fault points: convert.packet, convert.rename.
Result<void> write_video_file(const ConvertContext& context, int camera, const PlannedOutput& file, JsonDoc& entry);

}  // namespace troupe::data
