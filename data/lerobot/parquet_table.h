#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace troupe::data {

/// A vector column: row-major values in float64 (exact for every float32).
struct VectorColumn {
  /// Numbers of a row; `values` has rows * width of them.
  std::size_t width = 0;
  std::vector<double> values;
  /// The `width` values of row i of the table; valid while the column lives and is not changed.
  std::span<const double> row(std::int64_t i) const {
    return std::span(values).subspan(static_cast<std::size_t>(i) * width, width);
  }
};

/// The columns asked for, of one episode.
struct EpisodeTable {
  /// Table rows of every column.
  std::int64_t rows = 0;
  std::map<std::string, VectorColumn> vectors;
  std::map<std::string, std::vector<std::int64_t>> integers;
  /// Optional columns that the file has and that were left out: why, as a sentence that names file, column and row.
  std::map<std::string, std::string> left_out{};
};

/// Which columns to read. A name may stand in one list only. Optional columns that are absent or of another kind are
/// left out.
struct TableColumns {
  std::vector<std::string> vectors, integers;
  std::vector<std::string> optional_vectors, optional_integers;
};

/// Rows [first, first + count) of a file.
struct RowRange {
  std::int64_t first = 0;
  /// -1: to the end.
  std::int64_t count = -1;
};

/// Gets the coded image (PNG or JPEG) of row `row` of the file; the bytes are valid during the call. An Error stops
/// the read and is returned from it.
using ImageCellSink = std::function<Result<void>(std::int64_t row, std::span<const std::byte> bytes)>;

/// What a Parquet footer says; no page is read for it.
struct ParquetFacts {
  std::int64_t rows = 0;
  std::int64_t row_groups = 0;
  /// Of all columns and row groups.
  std::int64_t uncompressed_bytes = 0;
  /// Codec of the first column's pages: "SNAPPY".
  std::string compression;
  /// Name, Arrow type such as "list<element: double>".
  std::vector<std::pair<std::string, std::string>> columns;
};

/// Reads Parquet files and keeps up to `max_files` of them open with their footers, and up to `max_bytes` of decoded
/// columns of row groups that a call used a part of: LeRobot v3 writes many episodes into one file, after a conversion
/// into one row group. A file that changed on disk is opened anew. Thread-safe; what it returns is the caller's own.
class ParquetFiles {
 public:
  /// `max_bytes` bounds the decoded columns, not the open footers.
  explicit ParquetFiles(std::size_t max_files = 64, std::int64_t max_bytes = std::int64_t{256} << 20);
  ~ParquetFiles();
  ParquetFiles(const ParquetFiles&) = delete;
  ParquetFiles& operator=(const ParquetFiles&) = delete;

  /// As read_parquet below.
  Result<EpisodeTable> read(const std::string& path, const TableColumns& columns, RowRange range = {});
  /// As visit_image_cells below.
  Result<void> visit_images(const std::string& path, const std::string& column, RowRange range,
                            const ImageCellSink& sink);
  /// As read_image_cells below.
  Result<std::vector<std::vector<std::byte>>> read_images(const std::string& path, const std::string& column,
                                                          std::span<const std::int64_t> rows);

  /// Files opened and row groups decoded since construction.
  struct Counters {
    std::int64_t opened = 0, decoded = 0;
  };
  Counters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads columns of a Parquet file, of the rows of `range` only: other row groups are not touched. Vectors: list, large
/// list or fixed-size list of any number type, or a scalar of one (width 1); the width must be the same in every row.
/// Integers: any integer type, bool, or a list of one of them.
///
/// Errors: not_found and data_loss when the file is missing, is no regular file or cannot be read (D03);
/// invalid_argument when its contents are wrong: a missing column, a type, a null, a NaN, an uneven list, fewer rows
/// than the range (D04). Every text names the file and column; rows are those of the file. Fault point: parquet
/// (subject: the path). Thread-safe.
Result<EpisodeTable> read_parquet(const std::string& path, const TableColumns& columns, RowRange range = {});

/// Calls `sink` with every cell of an image column in the rows of `range`, ascending. The column is a struct {bytes,
/// path} as Hugging Face writes it, or plain binary.
/// Errors: as read_parquet; invalid_argument for a cell that holds no bytes, with the path it names instead.
Result<void> visit_image_cells(const std::string& path, const std::string& column, RowRange range,
                               const ImageCellSink& sink);

/// The coded images of chosen rows of an image column: result i belongs to rows[i]. Rows in any order, repeats
/// allowed. Errors: as above.
Result<std::vector<std::vector<std::byte>>> read_image_cells(const std::string& path, const std::string& column,
                                                             std::span<const std::int64_t> rows);

/// Reads the footer only. Errors: not_found, data_loss.
Result<ParquetFacts> read_parquet_facts(const std::string& path);

}  // namespace troupe::data
