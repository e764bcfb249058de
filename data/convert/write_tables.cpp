#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

#include <algorithm>
#include <optional>

#include "base/fault.h"
#include "data/convert/episode_stats.h"
#include "data/convert/finished_file.h"
#include "data/convert/write_files.h"
#include "data/lerobot/json_text.h"
#include "data/lerobot/write_failure.h"

namespace troupe::data {

namespace {

/// A column of integers with every value replaced; other types keep their type by the builder. Lists of one value stay
/// what they are, so only plain integer columns can be mapped.
Result<std::shared_ptr<arrow::ChunkedArray>> map_column(
    const std::string& where, const arrow::ChunkedArray& column,
    const std::function<std::int64_t(std::int64_t row, std::int64_t)>& map) {
  const NumberColumn numbers = number_column(column);
  if (!numbers.integers || numbers.vector || numbers.width != 1)
    return Error{Errc::data_loss, fmt::format("{} has type {}; it has to be renumbered and is no column of integers",
                                              where, column.type()->ToString())};
  std::shared_ptr<arrow::Array> out;
  const auto build = [&](auto builder) -> arrow::Status {
    using Value = typename decltype(builder)::value_type;
    for (std::size_t r = 0; r < numbers.values.size(); ++r) {
      const auto before = static_cast<std::int64_t>(numbers.values[r]);
      ARROW_RETURN_NOT_OK(builder.Append(static_cast<Value>(map(static_cast<std::int64_t>(r), before))));
    }
    return builder.Finish(&out);
  };
  arrow::Status status;
  if (column.type()->id() == arrow::Type::INT64)
    status = build(arrow::Int64Builder());
  else if (column.type()->id() == arrow::Type::INT32)
    status = build(arrow::Int32Builder());
  else
    return Error{Errc::data_loss,
                 fmt::format("{} has type {}; int64 and int32 can be renumbered", where, column.type()->ToString())};
  if (!status.ok()) return Error{Errc::internal, status.ToString()};
  return std::make_shared<arrow::ChunkedArray>(out);
}

/// The table with counters written anew, whatever it held: rows of the episode and of the dataset, and the episode.
Result<std::shared_ptr<arrow::Table>> with_counters(const arrow::Table& table, const PlannedEpisode& episode,
                                                    std::vector<std::string>* rewritten) {
  struct Counter {
    const char* name;
    std::int64_t first, step;
  };
  std::shared_ptr<arrow::Table> out = table.ReplaceSchemaMetadata(table.schema()->metadata());
  bool other_types = false;
  for (const Counter& c : {Counter{"frame_index", 0, 1}, Counter{"episode_index", episode.index, 0},
                           Counter{"index", episode.first_row, 1}}) {
    arrow::Int64Builder builder;
    std::shared_ptr<arrow::Array> values;
    arrow::Status status = builder.Reserve(table.num_rows());
    for (std::int64_t r = 0; status.ok() && r < table.num_rows(); ++r) status = builder.Append(c.first + r * c.step);
    if (status.ok()) status = builder.Finish(&values);
    if (!status.ok()) return Error{Errc::resource_exhausted, status.ToString()};
    const auto column = std::make_shared<arrow::ChunkedArray>(values);
    const int place = out->schema()->GetFieldIndex(c.name);
    if (place >= 0 && out->column(place)->Equals(*column)) continue;
    other_types = other_types || place < 0 || !out->field(place)->type()->Equals(arrow::int64());
    const auto field = arrow::field(c.name, arrow::int64());
    auto changed = place < 0 ? out->AddColumn(out->num_columns(), field, column) : out->SetColumn(place, field, column);
    if (!changed.ok()) return Error{Errc::internal, changed.status().ToString()};
    out = *changed;
    if (rewritten != nullptr) rewritten->push_back(c.name);
  }
  // descriptions of the old columns by other programs
  return other_types ? out->ReplaceSchemaMetadata(nullptr) : out;
}

/// The source's schema with a pandas range index that fits the rows of the new file.
std::shared_ptr<arrow::Schema> output_schema(const std::shared_ptr<arrow::Schema>& schema, std::int64_t rows) {
  if (!schema->metadata()) return schema;
  auto metadata = schema->metadata()->Copy();
  const auto found = metadata->Get("pandas");
  if (!found.ok()) return schema;
  auto parsed = parse_json<JsonDoc>(*found);
  if (!parsed || !parsed->is_object() || !parsed->contains("index_columns")) return schema;
  JsonDoc& pandas = *parsed;
  bool changed = false;
  for (JsonDoc& index : pandas["index_columns"]) {
    if (!index.is_object() || index.value("kind", "") != "range") continue;
    index["start"] = 0;
    index["stop"] = rows;
    index["step"] = 1;
    changed = true;
  }
  if (!changed || !metadata->Set("pandas", pandas.dump()).ok()) return schema;
  return schema->WithMetadata(metadata);
}

/// The Parquet file under construction.
class TableFile {
 public:
  TableFile(const ConvertContext& context, std::string path) : context_(context), path_(std::move(path)) {}

  Result<void> write(const arrow::Table& table, std::int64_t rows_of_file) {
    if (!writer_) TROUPE_TRY(open(table.schema(), rows_of_file));
    const std::int64_t group = context_.request.row_group;
    arrow::Status status;
    if (group == 0) {
      status = writer_->WriteTable(table, table.num_rows());
    } else {
      arrow::TableBatchReader batches(table);
      std::shared_ptr<arrow::RecordBatch> batch;
      while (status.ok() && (status = batches.ReadNext(&batch)).ok() && batch)
        status = writer_->WriteRecordBatch(*batch);
    }
    if (!status.ok()) return write_failure(path_, status);
    return {};
  }

  Result<void> close() {
    arrow::Status status = writer_->Close();
    if (status.ok()) status = stream_->Close();
    if (!status.ok()) return write_failure(path_, status);
    return {};
  }

 private:
  Result<void> open(const std::shared_ptr<arrow::Schema>& schema, std::int64_t rows_of_file) {
    const std::string& name = context_.request.compression;
    const auto codec = name == "zstd"     ? parquet::Compression::ZSTD
                       : name == "snappy" ? parquet::Compression::SNAPPY
                                          : parquet::Compression::UNCOMPRESSED;
    parquet::WriterProperties::Builder properties;
    properties.compression(codec)->created_by("troupe");
    if (context_.request.row_group > 0) properties.max_row_group_length(context_.request.row_group);
    auto stream = arrow::io::FileOutputStream::Open(path_);
    if (!stream.ok()) return write_failure(path_, stream.status());
    stream_ = *stream;
    // the Arrow schema too: a fixed-size list or a large string stays what it was
    const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
    auto writer = parquet::arrow::FileWriter::Open(*output_schema(schema, rows_of_file), arrow::default_memory_pool(),
                                                   stream_, properties.build(), arrow_properties);
    if (!writer.ok()) return write_failure(path_, writer.status());
    writer_ = std::move(*writer);
    return {};
  }

  const ConvertContext& context_;
  std::string path_;
  std::shared_ptr<arrow::io::FileOutputStream> stream_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
};

/// Statistics that the source cannot supply.
JsonDoc missing_stats(const PlannedEpisode& episode, const arrow::Table& table,
                      const std::vector<std::string>& rewritten) {
  JsonDoc out = JsonDoc::object();
  for (int c = 0; c < table.num_columns(); ++c) {
    const std::string& name = table.field(c)->name();
    const bool wanted = !episode.has_stats || std::count(rewritten.begin(), rewritten.end(), name) > 0;
    JsonDoc stats = wanted ? column_stats(*table.column(c)) : JsonDoc();
    if (!stats.is_null()) out[name] = std::move(stats);
  }
  return out;
}

}  // namespace

std::vector<std::string> task_columns(const DatasetSource& source) {
  std::vector<std::string> out = {"task_index"};
  for (const LerobotFeature& f : source.facts.features) {
    if (f.name.starts_with("annotation.") && f.dtype.starts_with("int")) out.push_back(f.name);
  }
  const auto modality = read_json_file(source.root + "/meta/modality.json");
  if (!modality || !modality->is_object() || !modality->contains("annotation")) return out;
  for (const auto& [name, value] : (*modality)["annotation"].items()) {
    const std::string column =
        value.is_object() ? value.value("original_key", "annotation." + name) : "annotation." + name;
    if (std::count(out.begin(), out.end(), column) == 0) out.push_back(column);
  }
  return out;
}

Result<std::shared_ptr<arrow::Table>> output_table(const ConvertContext& context, const PlannedEpisode& episode,
                                                   RowReader& rows, std::vector<std::string>* rewritten) {
  const SourceEpisode& source = context.source_of(episode);
  TROUPE_ASSIGN(auto table, rows.read(source.table, source.first_row, source.length));
  const auto& task_of = context.plan.task_of[episode.source];
  const auto replace = [&](const std::string& name, const auto& map) -> Result<void> {
    const int column = table->schema()->GetFieldIndex(name);
    if (column < 0) return {};
    TROUPE_ASSIGN(auto mapped,
                  map_column(fmt::format("{}: column '{}'", source.table, name), *table->column(column), map));
    if (mapped->Equals(*table->column(column))) return {};
    auto changed = table->SetColumn(column, table->field(column), mapped);
    if (!changed.ok()) return Error{Errc::internal, changed.status().ToString()};
    table = *changed;
    if (rewritten != nullptr) rewritten->push_back(name);
    return {};
  };
  if (context.request.repair) {
    TROUPE_ASSIGN(table, with_counters(*table, episode, rewritten));
  } else if (context.plan.renumbered) {
    TROUPE_TRY(replace("episode_index", [&](std::int64_t, std::int64_t) { return episode.index; }));
    TROUPE_TRY(replace("index", [&](std::int64_t row, std::int64_t) { return episode.first_row + row; }));
  }
  if (!task_of.empty()) {
    for (const std::string& name : task_columns(context.sources[episode.source])) {
      std::optional<std::int64_t> orphan;  // it would get the text that another source has under this number
      TROUPE_TRY(replace(name, [&](std::int64_t, std::int64_t task) {
        const auto found = task_of.find(task);
        if (found == task_of.end()) orphan = task;
        return found == task_of.end() ? task : found->second;
      }));
      if (orphan)
        return Error{Errc::data_loss, fmt::format("{}: D11 column '{}' holds {}, which the tasks do not list",
                                                  source.table, name, *orphan)};
    }
  }
  return table;
}

Result<void> write_table_file(const ConvertContext& context, const PlannedOutput& file, RowReader& rows,
                              JsonDoc& entry) {
  const std::string path = context.out + "/" + file.path;
  TROUPE_TRY(make_parent(path));
  try {
    TableFile out(context, part_name(path));
    std::int64_t total = 0;
    for (std::size_t i = file.first; i < file.first + file.count; ++i) total += context.plan.episodes[i].length;
    for (std::size_t i = file.first; i < file.first + file.count; ++i) {
      const PlannedEpisode& episode = context.plan.episodes[i];
      TROUPE_TRY(fault_point("convert.rows", path));
      std::vector<std::string> rewritten;
      TROUPE_ASSIGN(const auto table, output_table(context, episode, rows, &rewritten));
      TROUPE_TRY(out.write(*table, total));
      JsonDoc stats = missing_stats(episode, *table, rewritten);
      if (!stats.empty()) entry["stats"][std::to_string(episode.index)] = std::move(stats);
    }
    TROUPE_TRY(out.close());
  } catch (const std::exception& e) {
    return Error{Errc::internal, fmt::format("{}: {}", path, e.what())};
  }
  return finish_file(path);
}

}  // namespace troupe::data
