#include "data/lerobot/parquet_table.h"

#include <arrow/array.h>
#include <arrow/type.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "data/lerobot/arrow_file.h"
#include "data/lerobot/arrow_values.h"

namespace troupe::data {

namespace {

/// One read of one file.
struct Read {
  const std::shared_ptr<const ArrowFile>& file;
  RowRange range;
  GroupSource& source;

  template <class T>
  Result<void> column(const std::string& name, std::size_t& width, std::vector<T>& values) const {
    TROUPE_ASSIGN(const int field, file->find(name));
    TROUPE_ASSIGN(const auto chunks, read_rows(file, field, range, source));
    if (auto why = append_values(chunks, range.first, width, values)) {
      return invalid_argument(fmt::format("{}: column '{}' {}", file->path(), name, *why));
    }
    return {};
  }

  Result<VectorColumn> vectors(const std::string& name) const {
    VectorColumn out;
    TROUPE_TRY(column(name, out.width, out.values));
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      if (std::isfinite(out.values[i])) continue;
      const std::int64_t row = range.first + static_cast<std::int64_t>(i / out.width);
      return invalid_argument(
          fmt::format("{}: column '{}' holds {} in row {}", file->path(), name, out.values[i], row));
    }
    return out;
  }

  Result<std::vector<std::int64_t>> integers(const std::string& name) const {
    std::size_t width = 1;
    std::vector<std::int64_t> values;
    TROUPE_TRY(column(name, width, values));
    if (width == 1) return values;
    return invalid_argument(
        fmt::format("{}: column '{}' has {} values a row; one is wanted", file->path(), name, width));
  }
};

Result<EpisodeTable> read_columns(const Read& read, const TableColumns& columns) {
  EpisodeTable table;
  table.rows = read.range.count;
  for (const std::string& name : columns.vectors) {
    TROUPE_ASSIGN(table.vectors[name], read.vectors(name));
  }
  for (const std::string& name : columns.integers) {
    TROUPE_ASSIGN(table.integers[name], read.integers(name));
  }
  // Damage is an error here too; only contents that do not fit are left out.
  const auto take = [&](const std::string& name, auto column, auto& into) -> Result<void> {
    if (column) {
      into[name] = std::move(*column);
    } else if (column.error().code() != Errc::invalid_argument) {
      return column.error();
    } else if (read.file->schema().GetFieldIndex(name) >= 0) {
      table.left_out[name] = column.error().message();
    }
    return {};
  };
  for (const std::string& name : columns.optional_vectors) TROUPE_TRY(take(name, read.vectors(name), table.vectors));
  for (const std::string& name : columns.optional_integers) TROUPE_TRY(take(name, read.integers(name), table.integers));
  return table;
}

}  // namespace

Result<EpisodeTable> read_table(const std::shared_ptr<const ArrowFile>& file, const TableColumns& columns,
                                RowRange range, GroupSource& source) {
  try {
    TROUPE_ASSIGN(range, check_range(*file, range));
    return read_columns({file, range, source}, columns);
  } catch (const std::exception& e) {
    return unreadable_parquet(file->path(), e.what());
  }
}

Result<EpisodeTable> read_parquet(const std::string& path, const TableColumns& columns, RowRange range) {
  try {
    TROUPE_ASSIGN(const auto file, ArrowFile::open(path));
    GroupSource direct;
    return read_table(file, columns, range, direct);
  } catch (const std::exception& e) {
    return unreadable_parquet(path, e.what());
  }
}

Result<ParquetFacts> read_parquet_facts(const std::string& path) {
  try {
    TROUPE_ASSIGN(const auto file, ArrowFile::open(path));
    const parquet::FileMetaData& metadata = file->metadata();
    ParquetFacts facts;
    facts.rows = file->rows();
    facts.row_groups = file->groups();
    for (int g = 0; g < file->groups(); ++g) facts.uncompressed_bytes += metadata.RowGroup(g)->total_byte_size();
    if (file->groups() > 0 && metadata.num_columns() > 0) {
      facts.compression = arrow::util::Codec::GetCodecAsString(metadata.RowGroup(0)->ColumnChunk(0)->compression());
      for (char& c : facts.compression) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    for (const auto& field : file->schema().fields())
      facts.columns.emplace_back(field->name(), field->type()->ToString());
    return facts;
  } catch (const std::exception& e) {
    return unreadable_parquet(path, e.what());
  }
}

}  // namespace troupe::data
