#pragma once

// Internal to data/convert: quantiles that a source's statistics lack.
#include "data/convert/write_files.h"
#include "data/statistics/table_statistics.h"

namespace troupe::data {

/// The tables of the planned episodes, where the sources have them. `context` outlives it.
TableSource tables_of(const ConvertContext& context);

/// Adds exact q01 and q99 over all planned episodes to every float column of `stats` ({feature: {statistic: values}})
/// that lacks one of them. A column that cannot be read, or holds nulls, stays as it is.
void add_quantiles(const ConvertContext& context, JsonDoc& stats);

}  // namespace troupe::data
