#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/table.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

#include "base/fault.h"
#include "data/convert/episode_stats.h"
#include "data/convert/finished_file.h"
#include "data/convert/json_columns.h"
#include "data/convert/metadata.h"
#include "data/lerobot/write_failure.h"

namespace troupe::data {

namespace {

constexpr std::size_t kRowsPerGroup = 1000;

/// A Parquet file written in groups of rows, under its part name until close().
class MetadataTable {
 public:
  MetadataTable(std::string path, bool arrow_schema) : path_(std::move(path)), arrow_schema_(arrow_schema) {}

  Result<void> write(const arrow::Table& table) {
    if (!writer_) TROUPE_TRY(open(*table.schema()));
    if (const arrow::Status s = writer_->WriteTable(table, std::max<std::int64_t>(table.num_rows(), 1)); !s.ok())
      return write_failure(path_, s);
    return {};
  }
  Result<void> close() {
    arrow::Status status = writer_->Close();
    if (status.ok()) status = stream_->Close();
    if (!status.ok()) return write_failure(path_, status);
    return finish_file(path_);
  }

 private:
  Result<void> open(const arrow::Schema& schema) {
    TROUPE_TRY(fault_point("convert.metadata", path_));
    TROUPE_TRY(make_parent(path_));
    auto stream = arrow::io::FileOutputStream::Open(part_name(path_));
    if (!stream.ok()) return write_failure(path_, stream.status());
    stream_ = *stream;
    parquet::WriterProperties::Builder properties;
    properties.compression(parquet::Compression::SNAPPY)->created_by("troupe");
    parquet::ArrowWriterProperties::Builder arrow_properties;
    if (arrow_schema_) arrow_properties.store_schema();
    auto writer = parquet::arrow::FileWriter::Open(schema, arrow::default_memory_pool(), stream_, properties.build(),
                                                   arrow_properties.build());
    if (!writer.ok()) return write_failure(path_, writer.status());
    writer_ = std::move(*writer);
    return {};
  }

  std::string path_;
  bool arrow_schema_;
  std::shared_ptr<arrow::io::FileOutputStream> stream_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
};

/// The text is the index of the pandas frame, as LeRobot 0.6 writes it.
const char* kTasksPandas =
    R"({"index_columns": ["task"], "column_indexes": [{"name": null, "field_name": null, "pandas_type": "unicode", )"
    R"("numpy_type": "object", "metadata": {"encoding": "UTF-8"}}], "columns": [{"name": "task_index", "field_name": )"
    R"("task_index", "pandas_type": "int64", "numpy_type": "int64", "metadata": null}, {"name": "task", "field_name": )"
    R"("task", "pandas_type": "unicode", "numpy_type": "object", "metadata": null}], "attributes": {}, )"
    R"("creator": {"library": "troupe", "version": "1"}, "pandas_version": "2.2.0"})";

Result<void> write_tasks(const ConvertContext& context) {
  arrow::Int64Builder index;
  arrow::LargeStringBuilder text;
  std::shared_ptr<arrow::Array> columns[2];
  arrow::Status status;
  for (const auto& [number, task] : context.plan.texts) {
    if (status.ok()) status = index.Append(number);
    if (status.ok()) status = text.Append(task);
  }
  if (status.ok()) status = index.Finish(&columns[0]);
  if (status.ok()) status = text.Finish(&columns[1]);
  if (!status.ok()) return Error{Errc::internal, status.ToString()};
  const auto schema =
      arrow::schema({arrow::field("task_index", arrow::int64()), arrow::field("task", arrow::large_utf8())},
                    arrow::key_value_metadata({"pandas"}, {kTasksPandas}));
  MetadataTable file(context.out + "/meta/tasks.parquet", true);
  TROUPE_TRY(file.write(*arrow::Table::Make(schema, {columns[0], columns[1]})));
  return file.close();
}

/// Where the rows and frames of an episode are in the output.
struct EpisodePlaces {
  struct Place {
    std::int64_t chunk = 0, file = 0, first = 0;  ///< first: frame in the file
  };
  std::vector<Place> table;
  std::vector<std::vector<Place>> cameras;
};

EpisodePlaces places_of(const ConvertPlan& plan) {
  EpisodePlaces out;
  out.table.resize(plan.episodes.size());
  out.cameras.assign(plan.cameras.size(), out.table);
  for (const PlannedTask& task : plan.tasks) {
    for (const PlannedOutput& f : task.files) {
      std::int64_t at = 0;
      for (std::size_t i = f.first; i < f.first + f.count; ++i) {
        if (task.camera < 0) {
          out.table[i] = {f.chunk, f.file, 0};
          continue;
        }
        const auto camera = static_cast<std::size_t>(task.camera);
        out.cameras[camera][i] = {f.chunk, f.file, at};
        at += plan.episodes[i].spans[camera].frames;
      }
    }
  }
  return out;
}

/// The columns of the episodes table, in order, with their types.
class EpisodeColumns {
 public:
  void add(const JsonDoc& row) {
    for (const auto& [name, value] : row.items()) {
      const auto [it, added] = types_.try_emplace(name);
      if (added) order_.push_back(name);
      it->second.add(value);
    }
  }
  Result<std::shared_ptr<arrow::Table>> table(const std::vector<JsonDoc>& rows) const {
    std::vector<std::shared_ptr<arrow::Field>> fields;
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    std::vector<JsonDoc> values(rows.size());
    for (const std::string& name : order_) {
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const auto found = rows[r].find(name);
        values[r] = found == rows[r].end() ? JsonDoc() : *found;
      }
      const auto type = types_.at(name).arrow_type();
      TROUPE_ASSIGN(auto array, json_array(type, values));
      fields.push_back(arrow::field(name, type));
      arrays.push_back(std::move(array));
    }
    return arrow::Table::Make(arrow::schema(fields), arrays);
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, JsonColumnType> types_;
};

JsonDoc episode_row(const ConvertContext& context, const EpisodePlaces& places, std::size_t i, const JsonDoc& stats) {
  const PlannedEpisode& e = context.plan.episodes[i];
  const SourceEpisode& source = context.source_of(e);
  JsonDoc row = {{"episode_index", e.index},
                 {"data/chunk_index", places.table[i].chunk},
                 {"data/file_index", places.table[i].file},
                 {"dataset_from_index", e.first_row},
                 {"dataset_to_index", e.first_row + e.length}};
  for (std::size_t c = 0; c < context.plan.cameras.size(); ++c) {
    const std::string key = "videos/" + context.plan.cameras[c] + "/";
    const auto& place = places.cameras[c][i];
    row[key + "chunk_index"] = place.chunk;
    row[key + "file_index"] = place.file;
    row[key + "from_timestamp"] = context.plan.rate.seconds(place.first);
    row[key + "to_timestamp"] = context.plan.rate.seconds(place.first + e.spans[c].frames);
  }
  row["tasks"] = source.tasks;
  row["length"] = e.length;
  for (const auto& [feature, values] : stats.items()) {
    for (const auto& [stat, value] : values.items()) row["stats/" + feature + "/" + stat] = value;
  }
  if (source.extra.is_object()) {
    for (const auto& [name, value] : source.extra.items()) {
      if (!row.contains(name)) row[name] = value.is_object() ? JsonDoc(value.dump()) : value;
    }
  }
  row["meta/episodes/chunk_index"] = 0;
  row["meta/episodes/file_index"] = 0;
  return row;
}

}  // namespace

Result<void> write_metadata_v30(const ConvertContext& context, OutputStats& stats, JsonDoc& sum) {
  TROUPE_TRY(write_tasks(context));
  const EpisodePlaces places = places_of(context.plan);
  // two passes: column types are those of all episodes, memory is that of one row group
  EpisodeColumns columns;
  StatsSum total;
  try {
    for (std::size_t i = 0; i < context.plan.episodes.size(); ++i) {
      TROUPE_ASSIGN(const JsonDoc own, stats.of(i));
      columns.add(episode_row(context, places, i, own));
      if (const auto added = total.add(own); !added)
        return added.error().with(context.sources[context.plan.episodes[i].source].root + "/meta");
    }
    sum = total.finish();
    MetadataTable file(context.out + "/meta/episodes/chunk-000/file-000.parquet", false);
    std::vector<JsonDoc> rows;
    for (std::size_t i = 0; i < context.plan.episodes.size(); ++i) {
      TROUPE_ASSIGN(const JsonDoc own, stats.of(i));
      rows.push_back(episode_row(context, places, i, own));
      if (rows.size() < kRowsPerGroup && i + 1 < context.plan.episodes.size()) continue;
      TROUPE_ASSIGN(const auto table, columns.table(rows));
      TROUPE_TRY(file.write(*table));
      rows.clear();
    }
    return file.close();
  } catch (const std::exception& e) {
    return Error{Errc::internal, fmt::format("{}/meta/episodes: {}", context.out, e.what())};
  }
}

}  // namespace troupe::data
