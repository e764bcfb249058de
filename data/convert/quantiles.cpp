#include "data/convert/quantiles.h"

namespace troupe::data {

TableSource tables_of(const ConvertContext& context) {
  return {.episodes = context.plan.episodes.size(),
          .rows = [&context](std::size_t i) { return context.plan.episodes[i].length; },
          .read =
              [&context](std::size_t i, const TableColumns& columns) {
                const SourceEpisode& e = context.source_of(context.plan.episodes[i]);
                return read_parquet(e.table, columns, {.first = e.first_row, .count = e.length});
              }};
}

void add_quantiles(const ConvertContext& context, JsonDoc& stats) {
  for (const LerobotFeature& f : context.sources[0].facts.features) {
    if (!f.is_vector() || f.shape.size() != 1 || !stats.contains(f.name) || !stats[f.name].is_object()) continue;
    JsonDoc& column = stats[f.name];
    if (column.contains("q01") && column.contains("q99")) continue;
    StatisticsPlan plan;
    plan.columns = {{f.name, static_cast<std::size_t>(f.width()), f.dtype == "float32"}};
    plan.threads = context.request.jobs;
    const auto found = table_statistics(tables_of(context), plan);
    if (!found) continue;
    column["q01"] = found->columns[0].q01;
    column["q99"] = found->columns[0].q99;
  }
}

}  // namespace troupe::data
