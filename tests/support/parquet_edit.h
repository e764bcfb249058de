#pragma once

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/support/visible.h"

namespace troupe::testing {

/// Changes to Parquet files that tests make. All throw std::runtime_error. Needs Arrow::parquet.

template <class T>
T must(arrow::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return std::move(result).ValueUnsafe();
}
inline void must(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

inline std::shared_ptr<arrow::Table> read_whole_table(const std::string& path) {
  auto in = must(arrow::io::ReadableFile::Open(path));
  const auto reader = must(parquet::arrow::OpenFile(in, arrow::default_memory_pool()));
  std::shared_ptr<arrow::Table> table;
  must(reader->ReadTable(&table));
  return table;
}

/// One row group; with `checksums` every page carries its CRC.
inline void write_whole_table(const std::string& path, const arrow::Table& table, bool checksums = false) {
  parquet::WriterProperties::Builder settings;
  if (checksums) settings.enable_page_checksum();
  auto out = must(arrow::io::FileOutputStream::Open(path));
  must(parquet::arrow::WriteTable(table, arrow::default_memory_pool(), out, std::max<std::int64_t>(1, table.num_rows()),
                                  settings.build()));
  must(out->Close());
}

/// A column cell by cell: `cell` gives the value of every row, a null scalar for none.
using EditCell = std::function<std::shared_ptr<arrow::Scalar>(std::int64_t row, std::shared_ptr<arrow::Scalar> before)>;

/// Writes the table again with another column of that name, of type `type` (null: the type it has).
inline void edit_column(const std::string& path, const std::string& name, const EditCell& cell,
                        std::shared_ptr<arrow::DataType> type = nullptr) {
  const auto table = read_whole_table(path);
  const int at = table->schema()->GetFieldIndex(name);
  if (at < 0) throw std::runtime_error(path + " has no column " + name);
  if (type == nullptr) type = table->column(at)->type();
  std::unique_ptr<arrow::ArrayBuilder> builder;
  must(arrow::MakeBuilder(arrow::default_memory_pool(), type, &builder));
  for (std::int64_t row = 0; row < table->num_rows(); ++row) {
    const auto value = cell(row, must(table->column(at)->GetScalar(row)));
    must(value == nullptr ? builder->AppendNull() : builder->AppendScalar(*value));
  }
  const auto column = std::make_shared<arrow::ChunkedArray>(must(builder->Finish()));
  write_whole_table(path, *must(table->SetColumn(at, arrow::field(name, type), column)));
}

/// Makes one cell null.
inline void set_null(const std::string& path, const std::string& name, std::int64_t row) {
  edit_column(path, name, [&](std::int64_t r, auto before) { return r == row ? nullptr : before; });
}

/// Makes one cell another whole number.
inline void set_integer(const std::string& path, const std::string& name, std::int64_t row, std::int64_t value) {
  edit_column(path, name, [&](std::int64_t r, std::shared_ptr<arrow::Scalar> before) -> std::shared_ptr<arrow::Scalar> {
    return r == row ? std::make_shared<arrow::Int64Scalar>(value) : before;
  });
}

/// Makes texts of a column of numbers.
inline void set_texts(const std::string& path, const std::string& name) {
  edit_column(
      path, name,
      [](std::int64_t, const std::shared_ptr<arrow::Scalar>& before) {
        return std::make_shared<arrow::StringScalar>(before->ToString());
      },
      arrow::utf8());
}

}  // namespace troupe::testing
