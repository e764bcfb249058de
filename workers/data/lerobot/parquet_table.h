#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace troupe {

/// A vector column: row-major values in float64 (exact for every float32).
struct VectorColumn {
  std::size_t width = 0;
  std::vector<double> values;
  std::span<const double> row(std::int64_t i) const {
    return std::span(values).subspan(static_cast<std::size_t>(i) * width, width);
  }
};

/// The columns asked for, of one episode's Parquet file.
struct EpisodeTable {
  std::int64_t rows = 0;
  std::map<std::string, VectorColumn> vectors;
  std::map<std::string, std::vector<std::int64_t>> integers;
};

/// Which columns to read. A name may stand in one list only. Optional columns that are absent or of another kind are
/// left out.
struct TableColumns {
  std::vector<std::string> vectors, integers;
  std::vector<std::string> optional_vectors, optional_integers;
};

/// Reads columns of a Parquet file. Vectors: list, large list or fixed-size list of any number type, or a scalar of one
/// (width 1); the width must be the same in every row. Integers: any integer type, bool, or a list of one of them.
///
/// Errors: not_found and data_loss when the file is missing, is no regular file or cannot be read (D03);
/// invalid_argument when its contents are wrong: a missing column, a type, a null, a NaN, an uneven list (D04). Every
/// text names the file and column. Fault point: parquet (subject: the path). Thread-safe.
Result<EpisodeTable> read_parquet(const std::string& path, const TableColumns& columns);

/// What a Parquet footer says.
struct ParquetFacts {
  std::int64_t rows = 0;
  std::int64_t row_groups = 0;
  std::int64_t uncompressed_bytes = 0;
  std::string compression;                                   ///< of the first column: "SNAPPY"
  std::vector<std::pair<std::string, std::string>> columns;  ///< name, Arrow type such as "list<element: double>"
};

/// Reads the footer only. Errors: not_found, data_loss.
Result<ParquetFacts> read_parquet_facts(const std::string& path);

}  // namespace troupe
