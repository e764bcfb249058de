#include "data/convert/quantiles.h"

#include <fmt/format.h>

#include "data/convert/camera_quantiles.h"
#include "data/lerobot/lerobot_dataset.h"

namespace troupe::data {

namespace {

/// Where the rows of every episode are in the output.
std::vector<RowSource> rows_of(const ConvertContext& context) {
  std::vector<RowSource> out(context.plan.episodes.size());
  for (const PlannedTask& task : context.plan.tasks) {
    if (task.camera >= 0) continue;
    for (const PlannedOutput& file : task.files) {
      std::int64_t row = 0;
      for (std::size_t i = file.first; i < file.first + file.count; ++i) {
        out[i] = {context.out + "/" + file.path, row};
        row += context.plan.episodes[i].length;
      }
    }
  }
  return out;
}

Result<void> add_to_column(const ConvertContext& context, const LerobotFeature& feature, JsonDoc& column) {
  StatisticsPlan plan;
  plan.columns = {{feature.name, static_cast<std::size_t>(feature.width()), feature.dtype == "float32"}};
  plan.threads = context.request.jobs;
  TROUPE_ASSIGN(const auto found, table_statistics(tables_of(context), plan));
  column["q01"] = found.columns[0].q01;
  column["q99"] = found.columns[0].q99;
  return {};
}

Result<void> add_to_camera(const ConvertContext& context, const std::string& camera, JsonDoc& values) {
  TROUPE_ASSIGN(const ImageSums sums, sample_camera(context, camera));
  if (sums.frames == 0) return invalid_argument("its frames are not 8-bit 4:2:0");
  const JsonDoc all = sums.to_json();
  values["q01"] = all["q01"];
  values["q99"] = all["q99"];
  return {};
}

}  // namespace

TableSource tables_of(const ConvertContext& context) {
  const auto files = std::make_shared<ParquetFiles>();
  const auto rows = std::make_shared<const std::vector<RowSource>>(rows_of(context));
  return {.episodes = context.plan.episodes.size(),
          .rows = [&context](std::size_t i) { return context.plan.episodes[i].length; },
          .read =
              [&context, files, rows](std::size_t i, const TableColumns& columns) {
                const auto& [path, first] = (*rows)[i];
                return files->read(path, columns, {.first = first, .count = context.plan.episodes[i].length});
              }};
}

void add_quantiles(const ConvertContext& context, JsonDoc& stats, std::vector<std::string>& notes) {
  for (const LerobotFeature& f : context.sources[0].facts.features) {
    if (!stats.contains(f.name) || !stats[f.name].is_object()) continue;
    JsonDoc& own = stats[f.name];
    if (!own.contains("mean") || (own.contains("q01") && own.contains("q99"))) continue;
    if (!f.is_camera() && !f.is_numbers()) continue;  // texts, and matrices, which no reader of tables takes
    const auto added = f.is_camera() ? add_to_camera(context, f.name, own) : add_to_column(context, f, own);
    if (!added)
      notes.push_back(fmt::format("stats.json has no quantiles of '{}': {}", f.name, added.error().message()));
  }
}

}  // namespace troupe::data
