#include "data/convert/repair_info.h"

#include <arrow/type_traits.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "data/convert/table_rows.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

/// The columns that every episode has and that a repair writes.
bool is_counter(const std::string& name) { return name == "frame_index" || name == "index" || name == "episode_index"; }

/// A template of files below the dataset's folder.
bool is_template(const JsonDoc& info, const char* key) {
  if (!info.contains(key) || !info[key].is_string() || info[key].get<std::string>().empty()) return false;
  const fs::path path(info[key].get<std::string>());
  return !path.is_absolute() && std::find(path.begin(), path.end(), "..") == path.end();
}

bool is_count(const JsonDoc& info, const char* key) {
  return info.contains(key) && info[key].is_number_integer() && info[key].get<std::int64_t>() >= 0;
}

/// LeRobot's name of a type; nothing for what no feature is.
std::optional<std::string> dtype_of(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::HALF_FLOAT:
      return "float16";
    case arrow::Type::FLOAT:
      return "float32";
    case arrow::Type::DOUBLE:
      return "float64";
    case arrow::Type::BOOL:
      return "bool";
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
      return "string";
    default:
      if (arrow::is_integer(type.id())) return type.ToString();
      return std::nullopt;
  }
}

/// What a column of the table is as a feature; null: nothing that LeRobot has.
JsonDoc feature_of(const arrow::Field& field, const arrow::ChunkedArray& first_row) {
  std::shared_ptr<arrow::DataType> type = field.type();
  std::int64_t width = 1;
  if (type->id() == arrow::Type::LIST || type->id() == arrow::Type::LARGE_LIST ||
      type->id() == arrow::Type::FIXED_SIZE_LIST) {
    width = number_column(first_row).width;
    type = type->field(0)->type();
  }
  const auto dtype = dtype_of(*type);
  if (!dtype || width < 1) return {};
  return {{"dtype", *dtype}, {"shape", {width}}, {"names", nullptr}};
}

}  // namespace

Result<JsonDoc> mend_info(const std::string& root, std::vector<std::string>& notes) {
  const std::string path = root + "/meta/info.json";
  TROUPE_ASSIGN(JsonDoc info, read_json_file(path));
  if (!info.is_object()) return invalid_argument(path + " is no JSON object; it cannot be repaired");
  const auto mend = [&](const char* key, const JsonDoc& value) {
    notes.push_back(fmt::format("{}: {} is now {}; it was {}", path, key, value.dump(),
                                info.contains(key) ? info[key].dump() : "missing"));
    info[key] = value;
  };
  const JsonDoc version = info.contains("codebase_version") ? info["codebase_version"] : JsonDoc();
  if (version != "v2.0" && version != "v2.1" && version != "v3.0") {
    std::error_code absent;
    const bool tables =
        fs::is_directory(root + "/meta/episodes", absent) || fs::exists(root + "/meta/tasks.parquet", absent);
    mend("codebase_version", tables ? "v3.0" : "v2.1");
  }
  const bool v3 = info["codebase_version"] == "v3.0";
  if (!is_template(info, "data_path"))
    mend("data_path", v3 ? "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
                         : "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet");
  if (info.contains("video_path") && !info["video_path"].is_null() && !is_template(info, "video_path"))
    mend("video_path", v3 ? "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
                          : "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4");
  if (info.contains("chunks_size") && (!is_count(info, "chunks_size") || info["chunks_size"] == 0))
    mend("chunks_size", 1000);
  for (const char* key : {"total_episodes", "total_frames", "total_tasks"}) {
    if (info.contains(key) && !is_count(info, key)) info[key] = 0;  // they are counted anyway
  }
  if (!info.contains("features") || !info["features"].is_object()) mend("features", JsonDoc::object());
  return info;
}

Result<void> mend_features(const std::string& path, JsonDoc& features, std::vector<std::string>& notes) {
  RowReader rows;
  TROUPE_ASSIGN(const auto table, rows.read(path, 0, 1));
  const auto is_camera = [](const JsonDoc& feature) {
    return feature.is_object() && feature.contains("dtype") &&
           (feature["dtype"] == "video" || feature["dtype"] == "image");
  };
  JsonDoc out = JsonDoc::object();
  for (const auto& [name, feature] : features.items()) {
    if (is_camera(feature) || is_counter(name) || table->GetColumnByName(name)) {
      out[name] = feature;
    } else {
      notes.push_back(fmt::format("feature '{}' is left out: {} has no such column", name, path));
    }
  }
  for (int c = 0; c < table->num_columns(); ++c) {
    const std::string& name = table->field(c)->name();
    const JsonDoc found = is_counter(name) ? JsonDoc() : feature_of(*table->field(c), *table->column(c));
    if (found.is_null() || (out.contains(name) && is_camera(out[name]))) continue;
    JsonDoc& feature = out[name];
    if (!feature.is_object()) {
      notes.push_back(fmt::format("feature '{}' is added: {} has such a column", name, path));
      feature = found;
      continue;
    }
    // shapes of more than one dimension are kept: a table holds them in several ways
    const bool flat = feature.contains("shape") && feature["shape"].is_array() && feature["shape"].size() == 1;
    for (const char* key : {"dtype", "shape"}) {
      if (feature.contains(key) && (feature[key] == found[key] || (!flat && feature[key].is_array()))) continue;
      notes.push_back(fmt::format("{} of feature '{}' is now {}, as in {}; it was {}", key, name, found[key].dump(),
                                  path, feature.contains(key) ? feature[key].dump() : "missing"));
      feature[key] = found[key];
    }
  }
  for (const char* name : {"frame_index", "episode_index", "index"})
    out[name] = {{"dtype", "int64"}, {"shape", {1}}, {"names", nullptr}};
  features = std::move(out);
  return {};
}

}  // namespace troupe::data
