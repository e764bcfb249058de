#pragma once

// Internal to data/convert: rows of Parquet files as Arrow tables.
#include <arrow/table.h>
#include <parquet/arrow/reader.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe::data {

/// Opens a Parquet file for streaming: one thread, column chunks read through a buffer. Errors: not_found, data_loss.
Result<std::unique_ptr<parquet::arrow::FileReader>> open_parquet(const std::string& path);

/// The schema of a file, its key-value metadata included.
Result<std::shared_ptr<arrow::Schema>> parquet_schema(const std::string& path);

/// Reads ranges of rows. Ranges of one file that ascend cost one pass over it; memory is one range and one batch.
/// Not thread-safe.
class RowReader {
 public:
  /// Which columns are read; by default all.
  using Wanted = std::function<bool(std::string_view column)>;
  RowReader() = default;
  explicit RowReader(Wanted wanted) : wanted_(std::move(wanted)) {}

  /// Rows [first, first + count) of every column, each in one chunk. Errors: data_loss (unreadable, fewer rows).
  Result<std::shared_ptr<arrow::Table>> read(const std::string& path, std::int64_t first, std::int64_t count);

 private:
  Result<void> seek(const std::string& path, std::int64_t first);
  Result<std::shared_ptr<arrow::RecordBatch>> next(std::int64_t limit);

  Wanted wanted_;
  std::string path_;
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::shared_ptr<arrow::RecordBatchReader> batches_;
  /// Read, not yet handed out; null: none.
  std::shared_ptr<arrow::RecordBatch> rest_;
  /// Row that the next read begins at.
  std::int64_t position_ = 0;
};

/// A flat column's values as float64, row-major, `width` per row; nothing for types without numbers or uneven lists.
/// Integers beyond 2^53 lose their last bits.
struct NumberColumn {
  std::int64_t width = 0;
  /// What the elements are: integers, booleans, else floats; `vector`: rows are lists.
  bool integers = false, booleans = false, vector = false;
  std::vector<double> values;
};
NumberColumn number_column(const arrow::ChunkedArray& column);

}  // namespace troupe::data
