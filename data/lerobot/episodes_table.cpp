#include "data/lerobot/episodes_table.h"

#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/lerobot/arrow_file.h"
#include "data/lerobot/arrow_values.h"
#include "data/lerobot/file_checks.h"
#include "data/lerobot/json_text.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

/// Sums of these stay far from overflow, and no dataset comes near.
constexpr double kMostSeconds = 1e9;

using File = std::shared_ptr<const ArrowFile>;

/// The columns of one camera.
struct CameraColumns {
  std::int32_t feature = 0;
  std::string chunk, file, from, to;
};

std::vector<CameraColumns> cameras_in(const LerobotInfo& info, const ArrowFile& file) {
  std::vector<CameraColumns> out;
  for (std::size_t i = 0; i < info.features.size(); ++i) {
    if (!info.features[i].is_video()) continue;
    const std::string prefix = "videos/" + info.features[i].name + "/";
    CameraColumns c{.feature = static_cast<std::int32_t>(i),
                    .chunk = prefix + "chunk_index",
                    .file = prefix + "file_index",
                    .from = prefix + "from_timestamp",
                    .to = prefix + "to_timestamp"};
    const auto has = [&](const std::string& name) { return file.schema().GetFieldIndex(name) >= 0; };
    if (has(c.chunk) || has(c.file) || has(c.from) || has(c.to)) out.push_back(std::move(c));
  }
  return out;
}

Result<void> check_numbers(const ArrowFile& file, const EpisodeTable& table) {
  for (const auto& [name, values] : table.integers) {
    for (const std::int64_t v : values) {
      if (v >= 0 && v <= kMostEpisodeRows) continue;
      return invalid_argument(fmt::format("{}: column '{}' holds {}", file.path(), name, v));
    }
  }
  for (const auto& [name, column] : table.vectors) {
    if (column.width > 1) {
      return invalid_argument(
          fmt::format("{}: column '{}' has {} values a row; one is wanted", file.path(), name, column.width));
    }
    for (const double v : column.values) {
      if (v >= 0 && v <= kMostSeconds) continue;
      return invalid_argument(fmt::format("{}: column '{}' holds {}", file.path(), name, v));
    }
  }
  return {};
}

Result<std::vector<std::vector<std::string>>> read_task_lists(const File& file) {
  std::vector<std::vector<std::string>> out;
  const int field = file->schema().GetFieldIndex("tasks");
  if (field < 0) {
    out.resize(static_cast<std::size_t>(file->rows()));
    return out;
  }
  TROUPE_ASSIGN(const ArrowColumn column, file->read_column(field));
  if (auto why = append_text_lists(column->chunks(), out)) {
    return invalid_argument(fmt::format("{}: column 'tasks' {}", file->path(), *why));
  }
  return out;
}

Result<void> read_file(const std::string& path, const LerobotInfo& info, std::vector<EpisodeRecord>& out) {
  TROUPE_ASSIGN(const File file, ArrowFile::open(path));
  const std::vector<CameraColumns> cameras = cameras_in(info, *file);
  TableColumns wanted;
  wanted.integers = {"episode_index", "length", "data/chunk_index", "data/file_index"};
  wanted.optional_integers = {"dataset_from_index"};
  for (const CameraColumns& c : cameras) {
    wanted.integers.insert(wanted.integers.end(), {c.chunk, c.file});
    wanted.vectors.insert(wanted.vectors.end(), {c.from, c.to});
  }
  GroupSource direct;
  TROUPE_ASSIGN(const EpisodeTable table, read_table(file, wanted, {}, direct));
  TROUPE_TRY(check_numbers(*file, table));
  TROUPE_ASSIGN(auto tasks, read_task_lists(file));

  const auto rows = static_cast<std::size_t>(table.rows);
  const std::size_t begin = out.size();
  out.resize(begin + rows);
  const auto fill = [&](const std::string& name, std::int64_t EpisodeRecord::*member) {
    const auto& values = table.integers.at(name);
    for (std::size_t i = 0; i < rows; ++i) out[begin + i].*member = values[i];
  };
  fill("episode_index", &EpisodeRecord::index);
  fill("length", &EpisodeRecord::length);
  fill("data/chunk_index", &EpisodeRecord::data_chunk);
  fill("data/file_index", &EpisodeRecord::data_file);
  const auto from = table.integers.find("dataset_from_index");
  for (std::size_t i = 0; i < rows; ++i) {
    EpisodeRecord& e = out[begin + i];
    e.dataset_from = from == table.integers.end() ? -1 : from->second[i];
    e.tasks = std::move(tasks[i]);
    e.videos.resize(cameras.size());
  }
  for (std::size_t c = 0; c < cameras.size(); ++c) {
    const auto& chunks = table.integers.at(cameras[c].chunk);
    const auto& files = table.integers.at(cameras[c].file);
    const auto& froms = table.vectors.at(cameras[c].from).values;
    const auto& tos = table.vectors.at(cameras[c].to).values;
    for (std::size_t i = 0; i < rows; ++i) {
      out[begin + i].videos[c] = {.feature = cameras[c].feature,
                                  .chunk = chunks[i],
                                  .file = files[i],
                                  .from_timestamp = froms[i],
                                  .to_timestamp = tos[i]};
    }
  }
  return {};
}

/// Without dataset_from_index the rows of the dataset are those of the episodes, in their order.
void derive_dataset_from(std::vector<EpisodeRecord>& episodes) {
  if (std::none_of(episodes.begin(), episodes.end(), [](const auto& e) { return e.dataset_from < 0; })) return;
  std::vector<std::size_t> order(episodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return episodes[a].index < episodes[b].index; });
  std::int64_t sum = 0;
  for (const std::size_t i : order) {
    episodes[i].dataset_from = sum;
    sum += episodes[i].length;
  }
}

bool is_text(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING;
}

/// The columns that pandas wrote its index into.
std::vector<std::string> pandas_index(const ArrowFile& file) {
  std::vector<std::string> out;
  const auto pairs = file.metadata().key_value_metadata();
  if (pairs == nullptr) return out;
  const auto text = pairs->Get("pandas");
  if (!text.ok()) return out;
  const auto json = parse_json<nlohmann::json>(*text);
  if (!json || !json->is_object() || !json->contains("index_columns") || !(*json)["index_columns"].is_array())
    return out;
  for (const auto& name : (*json)["index_columns"]) {
    if (name.is_string()) out.push_back(name.get<std::string>());
  }
  return out;
}

/// Which column of a tasks table holds the text.
Result<int> text_column(const ArrowFile& file) {
  std::vector<std::string> candidates = pandas_index(file);
  candidates.insert(candidates.end(), {"task", "__index_level_0__"});
  for (const std::string& name : candidates) {
    const int field = file.schema().GetFieldIndex(name);
    if (field >= 0 && is_text(*file.schema().field(field)->type())) return field;
  }
  std::vector<int> texts;
  for (int i = 0; i < file.schema().num_fields(); ++i) {
    if (is_text(*file.schema().field(i)->type())) texts.push_back(i);
  }
  if (texts.size() == 1) return texts[0];
  return invalid_argument(fmt::format("{}: {} columns hold texts; one, the task's, is wanted. It has {}", file.path(),
                                      texts.size(), fmt::join(file.schema().field_names(), ", ")));
}

Result<std::map<std::int64_t, std::string>> read_tasks_file(const std::string& path) {
  TROUPE_ASSIGN(const File file, ArrowFile::open(path));
  GroupSource direct;
  TableColumns wanted;
  wanted.integers = {"task_index"};
  TROUPE_ASSIGN(const EpisodeTable table, read_table(file, wanted, {}, direct));
  TROUPE_ASSIGN(const int field, text_column(*file));
  TROUPE_ASSIGN(const ArrowColumn column, file->read_column(field));
  std::vector<std::string> texts;
  if (auto why = append_texts(column->chunks(), texts)) {
    return invalid_argument(fmt::format("{}: column '{}' {}", path, file->schema().field(field)->name(), *why));
  }
  const auto& indices = table.integers.at("task_index");
  std::map<std::int64_t, std::string> out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (auto added = add_task(out, indices[i], std::move(texts[i])); !added) return added.error().with(path);
  }
  return out;
}

/// chunk-NNN/file-NNN.parquet, with any number of digits.
bool is_table_name(const fs::path& relative) {
  const auto numbered = [](std::string_view name, std::string_view begin, std::string_view end) {
    if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size()) return false;
    name = name.substr(begin.size(), name.size() - begin.size() - end.size());
    return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  return std::distance(relative.begin(), relative.end()) == 2 &&
         numbered(relative.parent_path().native(), "chunk-", "") &&
         numbered(relative.filename().native(), "file-", ".parquet");
}

}  // namespace

std::vector<std::string> episode_table_files(const std::string& root, std::vector<std::string>* foreign) {
  std::vector<std::string> out;
  std::error_code code;
  const fs::path folder = root + "/meta/episodes";
  for (fs::recursive_directory_iterator it(folder, fs::directory_options::follow_directory_symlink, code), end;
       !code && it != end; it.increment(code)) {
    std::error_code unknown;
    if (is_table_name(it->path().lexically_relative(folder))) {
      out.push_back(it->path().string());  // a folder of that name is refused when it is opened
    } else if (foreign != nullptr && !it->is_directory(unknown)) {
      foreign->push_back(it->path().string());
    }
  }
  std::sort(out.begin(), out.end());
  if (foreign != nullptr) std::sort(foreign->begin(), foreign->end());
  return out;
}

Result<std::vector<EpisodeRecord>> read_episodes_table(const std::string& root, const LerobotInfo& info) {
  const std::vector<std::string> files = episode_table_files(root);
  if (files.empty()) {
    return Error{
        Errc::not_found,
        fmt::format("{}/meta/episodes holds no Parquet file chunk-NNN/file-NNN.parquet; v3.0 lists its episodes there",
                    root)};
  }
  std::vector<EpisodeRecord> out;
  for (const std::string& path : files) {
    try {
      TROUPE_TRY(read_file(path, info, out));
    } catch (const std::exception& e) {
      return unreadable_parquet(path, e.what());
    }
  }
  derive_dataset_from(out);
  return out;
}

Result<std::map<std::int64_t, std::string>> read_tasks_table(const std::string& path) {
  try {
    return read_tasks_file(path);
  } catch (const std::exception& e) {
    return unreadable_parquet(path, e.what());
  }
}

}  // namespace troupe::data
