#include "data/convert/table_rows.h"

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <fmt/format.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>

#include "base/fault.h"
#include "data/lerobot/arrow_file.h"
#include "data/lerobot/arrow_values.h"
#include "data/lerobot/file_checks.h"

namespace troupe::data {

namespace {

constexpr std::int64_t kBatchRows = 1024;

/// Appends the numbers of a flat array; false for other types.
bool append_values(const arrow::Array& array, NumberColumn& out) {
  if (array.null_count() > 0) return false;
  out.integers = arrow::is_integer(array.type_id());
  out.booleans = array.type_id() == arrow::Type::BOOL;
  return visit_numbers(array, [&](const auto& typed) {
    for (std::int64_t i = 0; i < typed.length(); ++i) out.values.push_back(static_cast<double>(typed.Value(i)));
  });
}

template <class List>
bool append_lists(const List& list, NumberColumn& out) {
  if (list.null_count() > 0) return false;
  for (std::int64_t i = 0; i < list.length(); ++i) {
    const std::int64_t n = list.value_length(i);
    if (out.width == 0) out.width = n;
    if (n != out.width || n == 0) return false;
  }
  out.vector = true;
  const auto values = list.Flatten();
  return values.ok() && append_values(**values, out);
}

bool append_chunk(const arrow::Array& chunk, NumberColumn& out) {
  switch (chunk.type_id()) {
    case arrow::Type::LIST:
      return append_lists(static_cast<const arrow::ListArray&>(chunk), out);
    case arrow::Type::LARGE_LIST:
      return append_lists(static_cast<const arrow::LargeListArray&>(chunk), out);
    case arrow::Type::FIXED_SIZE_LIST:
      return append_lists(static_cast<const arrow::FixedSizeListArray&>(chunk), out);
    default:
      out.width = 1;
      return append_values(chunk, out);
  }
}

}  // namespace

Result<std::unique_ptr<parquet::arrow::FileReader>> open_parquet(const std::string& path) {
  TROUPE_ASSIGN([[maybe_unused]] const std::int64_t size, require_regular_file(path));
  if (auto fault = fault_point("parquet", path); !fault) return unreadable_parquet(path, fault.error().message());
  try {
    parquet::ReaderProperties reading;
    reading.enable_buffered_stream();
    reading.set_page_checksum_verification(true);  // pages without a checksum are read as they are
    parquet::arrow::FileReaderBuilder builder;
    if (const arrow::Status s = builder.OpenFile(path, false, reading); !s.ok())
      return unreadable_parquet(path, s.ToString());
    parquet::ArrowReaderProperties properties;
    properties.set_use_threads(false);
    properties.set_batch_size(kBatchRows);
    properties.set_pre_buffer(false);
    std::unique_ptr<parquet::arrow::FileReader> reader;
    if (const arrow::Status s = builder.properties(properties)->Build(&reader); !s.ok())
      return unreadable_parquet(path, s.ToString());
    return reader;
  } catch (const std::exception& e) {
    return unreadable_parquet(path, e.what());
  }
}

Result<std::shared_ptr<arrow::Schema>> parquet_schema(const std::string& path) {
  TROUPE_ASSIGN(const auto reader, open_parquet(path));
  std::shared_ptr<arrow::Schema> schema;
  if (const arrow::Status s = reader->GetSchema(&schema); !s.ok()) return unreadable_parquet(path, s.ToString());
  return schema;
}

Result<void> RowReader::seek(const std::string& path, std::int64_t first) {
  batches_.reset();
  rest_.reset();
  if (path != path_ || !file_) {
    file_.reset();
    TROUPE_ASSIGN(file_, open_parquet(path));
    path_ = path;
  }
  const auto metadata = file_->parquet_reader()->metadata();
  std::vector<int> groups;
  std::int64_t row = 0;
  for (int g = 0; g < metadata->num_row_groups(); ++g) {
    const std::int64_t rows = metadata->RowGroup(g)->num_rows();
    if (row + rows > first) {
      if (groups.empty()) position_ = row;
      groups.push_back(g);
    }
    row += rows;
  }
  if (groups.empty()) return Error{Errc::data_loss, fmt::format("{} has {} rows; row {} is wanted", path, row, first)};
  std::vector<int> leaves;
  for (int c = 0; wanted_ && c < metadata->num_columns(); ++c) {
    if (wanted_(metadata->schema()->Column(c)->path()->ToDotVector().front())) leaves.push_back(c);
  }
  auto batches = wanted_ ? file_->GetRecordBatchReader(groups, leaves) : file_->GetRecordBatchReader(groups);
  if (!batches.ok()) return unreadable_parquet(path, batches.status().ToString());
  batches_ = std::move(*batches);
  return {};
}

Result<std::shared_ptr<arrow::RecordBatch>> RowReader::next(std::int64_t limit) {
  if (!rest_ || rest_->num_rows() == 0) {
    rest_.reset();
    if (const arrow::Status s = batches_->ReadNext(&rest_); !s.ok()) return unreadable_parquet(path_, s.ToString());
    if (!rest_) return Error{Errc::data_loss, fmt::format("{} ends at row {}; more are wanted", path_, position_)};
  }
  const std::int64_t take = std::min(limit, rest_->num_rows());
  auto out = rest_->Slice(0, take);
  rest_ = rest_->Slice(take);
  position_ += take;
  return out;
}

Result<std::shared_ptr<arrow::Table>> RowReader::read(const std::string& path, std::int64_t first, std::int64_t count) {
  try {
    if (path != path_ || !batches_ || first < position_) TROUPE_TRY(seek(path, first));
    while (position_ < first) {
      TROUPE_ASSIGN([[maybe_unused]] const auto skipped, next(first - position_));
    }
    std::vector<std::shared_ptr<arrow::RecordBatch>> parts;
    while (position_ < first + count) {
      TROUPE_ASSIGN(auto part, next(first + count - position_));
      parts.push_back(std::move(part));
    }
    auto table = arrow::Table::FromRecordBatches(batches_->schema(), parts);
    if (table.ok()) table = (*table)->CombineChunks();
    if (!table.ok()) return unreadable_parquet(path, table.status().ToString());
    return *table;
  } catch (const std::exception& e) {
    path_.clear();
    return unreadable_parquet(path, e.what());
  }
}

NumberColumn number_column(const arrow::ChunkedArray& column) {
  NumberColumn out;
  for (const auto& chunk : column.chunks()) {
    if (!append_chunk(*chunk, out)) return {};
  }
  return out;
}

}  // namespace troupe::data
