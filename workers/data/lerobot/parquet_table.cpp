#include "workers/data/lerobot/parquet_table.h"

#include <arrow/array.h>
#include <arrow/io/file.h>
#include <arrow/table.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>

#include <cctype>
#include <cmath>
#include <optional>

#include "base/fault.h"
#include "workers/data/lerobot/file_checks.h"

namespace troupe {

namespace {

Error unreadable(const std::string& path, const std::string& why) {
  return {Errc::data_loss, fmt::format("{} is not a readable Parquet file: {}", path, why)};
}

Result<std::unique_ptr<parquet::arrow::FileReader>> open_reader(const std::string& path) {
  TROUPE_ASSIGN([[maybe_unused]] const std::int64_t size, require_regular_file(path));
  if (auto fault = fault_point("parquet", path); !fault) return unreadable(path, fault.error().message());
  parquet::arrow::FileReaderBuilder builder;
  if (const arrow::Status s = builder.OpenFile(path); !s.ok()) return unreadable(path, s.ToString());
  parquet::ArrowReaderProperties properties;
  properties.set_use_threads(false);
  std::unique_ptr<parquet::arrow::FileReader> reader;
  if (const arrow::Status s = builder.properties(properties)->Build(&reader); !s.ok())
    return unreadable(path, s.ToString());
  return reader;
}

/// Appends a flat array of numbers as T. Returns why it cannot, or nothing.
template <class T>
std::optional<std::string> append_numbers(const arrow::Array& array, std::vector<T>& out) {
  if (array.null_count() > 0) return "has nulls";
  const auto copy = [&](const auto& typed) {
    out.reserve(out.size() + static_cast<std::size_t>(typed.length()));
    for (std::int64_t i = 0; i < typed.length(); ++i) out.push_back(static_cast<T>(typed.Value(i)));
    return std::optional<std::string>{};
  };
  constexpr bool takes_floats = std::is_floating_point_v<T>;
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      return copy(static_cast<const arrow::BooleanArray&>(array));
    case arrow::Type::INT8:
      return copy(static_cast<const arrow::Int8Array&>(array));
    case arrow::Type::INT16:
      return copy(static_cast<const arrow::Int16Array&>(array));
    case arrow::Type::INT32:
      return copy(static_cast<const arrow::Int32Array&>(array));
    case arrow::Type::INT64:
      return copy(static_cast<const arrow::Int64Array&>(array));
    case arrow::Type::UINT8:
      return copy(static_cast<const arrow::UInt8Array&>(array));
    case arrow::Type::UINT16:
      return copy(static_cast<const arrow::UInt16Array&>(array));
    case arrow::Type::UINT32:
      return copy(static_cast<const arrow::UInt32Array&>(array));
    case arrow::Type::FLOAT:
      if (takes_floats) return copy(static_cast<const arrow::FloatArray&>(array));
      break;
    case arrow::Type::DOUBLE:
      if (takes_floats) return copy(static_cast<const arrow::DoubleArray&>(array));
      break;
    default:
      break;
  }
  return fmt::format("has type {}, which is no {}", array.type()->ToString(), takes_floats ? "number" : "integer");
}

/// Sets `width` from the first list and checks the rest against it.
template <class List>
std::optional<std::string> check_lengths(const List& list, std::size_t& width, bool& known) {
  for (std::int64_t i = 0; i < list.length(); ++i) {
    const auto n = static_cast<std::size_t>(list.value_length(i));
    if (!known) {
      width = n;
      known = true;
    }
    if (n != width) return fmt::format("has {} values in row {} and {} in the rows before", n, i, width);
  }
  return std::nullopt;
}

/// Appends one chunk of a column: scalars, or lists of equal length.
template <class T>
std::optional<std::string> append_chunk(const arrow::Array& chunk, std::size_t& width, bool& known,
                                        std::vector<T>& out) {
  const auto take = [&](const auto& list) -> std::optional<std::string> {
    if (list.null_count() > 0) return "has nulls";
    if (auto uneven = check_lengths(list, width, known)) return uneven;
    auto values = list.Flatten();
    if (!values.ok()) return values.status().ToString();
    return append_numbers(**values, out);
  };
  switch (chunk.type_id()) {
    case arrow::Type::LIST:
      return take(static_cast<const arrow::ListArray&>(chunk));
    case arrow::Type::LARGE_LIST:
      return take(static_cast<const arrow::LargeListArray&>(chunk));
    case arrow::Type::FIXED_SIZE_LIST:
      return take(static_cast<const arrow::FixedSizeListArray&>(chunk));
    default:
      break;
  }
  width = 1;
  known = true;
  return append_numbers(chunk, out);
}

/// Reads one column by name into `values`; `width` is the number of values per row.
template <class T>
Result<void> read_column(parquet::arrow::FileReader& reader, const std::string& path, const std::string& name,
                         std::size_t& width, std::vector<T>& values) {
  std::shared_ptr<arrow::Schema> schema;
  if (const arrow::Status s = reader.GetSchema(&schema); !s.ok()) return unreadable(path, s.ToString());
  const int index = schema->GetFieldIndex(name);
  if (index < 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("{} has no column '{}'; it has {}", path, name, fmt::join(schema->field_names(), ", "))};
  }
  std::shared_ptr<arrow::ChunkedArray> column;
  if (const arrow::Status s = reader.ReadColumn(index, &column); !s.ok()) {
    return unreadable(path, fmt::format("column '{}': {}", name, s.ToString()));
  }
  bool known = false;
  for (const auto& chunk : column->chunks()) {
    if (auto why = append_chunk(*chunk, width, known, values)) {
      return Error{Errc::invalid_argument, fmt::format("{}: column '{}' {}", path, name, *why)};
    }
  }
  return {};
}

Result<VectorColumn> read_vectors(parquet::arrow::FileReader& reader, const std::string& path,
                                  const std::string& name) {
  VectorColumn column;
  TROUPE_TRY(read_column(reader, path, name, column.width, column.values));
  for (std::size_t i = 0; i < column.values.size(); ++i) {
    if (!std::isfinite(column.values[i])) {
      return Error{Errc::invalid_argument,
                   fmt::format("{}: column '{}' holds {} in row {}", path, name, column.values[i], i / column.width)};
    }
  }
  return column;
}

Result<std::vector<std::int64_t>> read_integers(parquet::arrow::FileReader& reader, const std::string& path,
                                                const std::string& name) {
  std::size_t width = 1;
  std::vector<std::int64_t> values;
  TROUPE_TRY(read_column(reader, path, name, width, values));
  if (width != 1) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: column '{}' has {} values a row; one is wanted", path, name, width)};
  }
  return values;
}

Result<EpisodeTable> read_columns(const std::string& path, const TableColumns& columns) {
  TROUPE_ASSIGN(auto reader, open_reader(path));
  EpisodeTable table;
  table.rows = reader->parquet_reader()->metadata()->num_rows();
  for (const std::string& name : columns.vectors) {
    TROUPE_ASSIGN(table.vectors[name], read_vectors(*reader, path, name));
  }
  for (const std::string& name : columns.integers) {
    TROUPE_ASSIGN(table.integers[name], read_integers(*reader, path, name));
  }
  // Damage is an error here too; only contents that do not fit are left out.
  for (const std::string& name : columns.optional_vectors) {
    auto column = read_vectors(*reader, path, name);
    if (column) table.vectors[name] = std::move(*column);
    if (!column && column.error().code() != Errc::invalid_argument) return column.error();
  }
  for (const std::string& name : columns.optional_integers) {
    auto column = read_integers(*reader, path, name);
    if (column) table.integers[name] = std::move(*column);
    if (!column && column.error().code() != Errc::invalid_argument) return column.error();
  }
  return table;
}

}  // namespace

Result<EpisodeTable> read_parquet(const std::string& path, const TableColumns& columns) {
  try {
    return read_columns(path, columns);
  } catch (const std::exception& e) {
    return unreadable(path, e.what());
  }
}

Result<ParquetFacts> read_parquet_facts(const std::string& path) {
  try {
    TROUPE_ASSIGN(auto reader, open_reader(path));
    const auto metadata = reader->parquet_reader()->metadata();
    ParquetFacts facts;
    facts.rows = metadata->num_rows();
    facts.row_groups = metadata->num_row_groups();
    for (int g = 0; g < metadata->num_row_groups(); ++g)
      facts.uncompressed_bytes += metadata->RowGroup(g)->total_byte_size();
    if (metadata->num_row_groups() > 0 && metadata->num_columns() > 0) {
      facts.compression = arrow::util::Codec::GetCodecAsString(metadata->RowGroup(0)->ColumnChunk(0)->compression());
      for (char& c : facts.compression) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    std::shared_ptr<arrow::Schema> schema;
    if (const arrow::Status s = reader->GetSchema(&schema); !s.ok()) return unreadable(path, s.ToString());
    for (const auto& field : schema->fields()) facts.columns.emplace_back(field->name(), field->type()->ToString());
    return facts;
  } catch (const std::exception& e) {
    return unreadable(path, e.what());
  }
}

}  // namespace troupe
