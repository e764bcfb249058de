#include "data/lerobot/feature_check.h"

#include <fmt/format.h>

#include <string_view>

#include "data/lerobot/parquet_table.h"

namespace troupe::data {

namespace {

/// What values are, of a dtype of info.json or a type of Arrow ("list<element: double>"); empty: something else.
std::string_view kind_of(std::string_view type) {
  const auto has = [&](std::string_view part) { return type.find(part) != type.npos; };
  if (has("struct") || has("binary")) return {};
  if (has("string")) return "texts";  // first: a dictionary of texts has indices
  if (has("float") || has("double")) return "fractions";
  if (has("int")) return "whole numbers";
  return has("bool") ? "bool" : "";
}

}  // namespace

void check_features(const LerobotDataset& dataset, std::vector<DatasetProblem>& findings) {
  const auto rows = dataset.rows(0);
  const auto facts = rows ? read_parquet_facts(rows->path) : Result<ParquetFacts>(rows.error());
  if (!facts) return;
  const std::string info = dataset.root() + "/meta/info.json";
  std::string unlisted;
  bool tasks = false;
  for (const auto& [name, type] : facts->columns) {
    const LerobotFeature* feature = dataset.info().find(name);
    if (feature == nullptr) {
      if (name.starts_with("__")) continue;  // an index that pandas wrote
      unlisted += (unlisted.empty() ? "" : ", ") + name;
      tasks = tasks || name == "task_index";
      continue;
    }
    const std::string_view said = kind_of(feature->dtype), found = kind_of(type);
    if (feature->is_camera() || said.empty() || found.empty() || said == found) continue;
    findings.push_back({"D02", info,
                        fmt::format("{} says that '{}' is {}; its column in {} is {}. What the column holds is used",
                                    info, name, feature->dtype, rows->path, type)});
  }
  if (unlisted.empty()) return;
  findings.push_back({"D02", info,
                      fmt::format("{}: features do not list {}, which {} has; what is not listed is not read{}", info,
                                  unlisted, rows->path, tasks ? ", and prompts come from task_index" : "")});
}

}  // namespace troupe::data
