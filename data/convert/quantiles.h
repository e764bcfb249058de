#pragma once

// Internal to data/convert: quantiles that a source's statistics lack.
#include <string>
#include <vector>

#include "data/convert/write_files.h"
#include "data/statistics/table_statistics.h"

namespace troupe::data {

/// The tables of the planned episodes, as the output has them: all of them are written. `context` outlives it.
TableSource tables_of(const ConvertContext& context);

/// Adds q01 and q99 over all planned episodes to every entry of `stats` ({feature: {statistic: values}}) that has a
/// mean and lacks one of them: exact ones of columns of numbers, of cameras those of sample_camera. What cannot be read
/// stays as it is, which is a note.
void add_quantiles(const ConvertContext& context, JsonDoc& stats, std::vector<std::string>& notes);

}  // namespace troupe::data
