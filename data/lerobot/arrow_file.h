#pragma once

// Internal to data/lerobot: Arrow's types.
#include <arrow/chunked_array.h>
#include <arrow/memory_pool.h>
#include <parquet/arrow/reader.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/lerobot/parquet_table.h"

namespace troupe::data {

using ArrowColumn = std::shared_ptr<arrow::ChunkedArray>;

/// D03 as an error: data_loss, "PATH is not a readable Parquet file: WHY".
Error unreadable_parquet(const std::string& path, const std::string& why);

/// Refuses allocations beyond a limit: a damaged file may claim any size. Thread-safe.
class LimitedPool final : public arrow::MemoryPool {
 public:
  /// `limit`: bytes that may be allocated at one time.
  explicit LimitedPool(std::int64_t limit) : limit_(limit) {}
  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override;
  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** ptr) override;
  void Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) override;
  std::int64_t bytes_allocated() const override { return used_; }
  /// -1: not kept.
  std::int64_t max_memory() const override { return -1; }
  std::int64_t total_bytes_allocated() const override { return total_; }
  std::int64_t num_allocations() const override { return allocations_; }
  std::string backend_name() const override { return base_->backend_name(); }
  using MemoryPool::Allocate;
  using MemoryPool::Free;
  using MemoryPool::Reallocate;

 private:
  arrow::Status take(std::int64_t more);
  arrow::MemoryPool* base_ = arrow::default_memory_pool();
  std::int64_t limit_;
  std::atomic<std::int64_t> used_{0}, total_{0}, allocations_{0};
};

/// Tells whether a file is still the one that was opened.
/// As stat gives it.
struct ParquetIdentity {
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = 0, modified_ns = 0;
  bool operator==(const ParquetIdentity&) const = default;
};

/// An open Parquet file with its footer. What it reads must not outlive it. Thread-safe: the footer does not change
/// and reads name their place. Its functions may throw what Arrow throws.
class ArrowFile {
 public:
  /// Opens the file and checks that the footer's counts are possible. Fault point: parquet.
  /// Errors: as read_parquet.
  static Result<std::shared_ptr<const ArrowFile>> open(const std::string& path);
  /// Errors: not_found, data_loss.
  static Result<ParquetIdentity> identify(const std::string& path);

  const std::string& path() const { return path_; }
  const ParquetIdentity& identity() const { return identity_; }
  /// Rows and row groups of the file, from the footer.
  std::int64_t rows() const { return group_first_.back(); }
  int groups() const { return static_cast<int>(group_first_.size()) - 1; }
  /// The first row of a group; group groups() would begin at rows().
  std::int64_t group_first(int group) const { return group_first_[static_cast<std::size_t>(group)]; }
  const parquet::FileMetaData& metadata() const { return *metadata_; }
  const arrow::Schema& schema() const { return *schema_; }

  /// Place of a top-level column. Errors: invalid_argument with the columns there are.
  Result<int> find(const std::string& name) const;
  /// A whole column. Errors: data_loss.
  Result<ArrowColumn> read_column(int field) const;
  /// A column of one row group. Errors: data_loss.
  Result<ArrowColumn> read_group(int field, int group) const;

 private:
  Result<ArrowColumn> checked(int field, ArrowColumn column, std::int64_t rows, const arrow::Status& status) const;
  std::string path_;
  ParquetIdentity identity_;
  std::unique_ptr<LimitedPool> pool_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<std::int64_t> group_first_;
};

/// Where the row groups of a range come from; a cache may stand in front of the file.
class GroupSource {
 public:
  virtual ~GroupSource() = default;
  /// A column of one row group of which only a part is wanted.
  virtual Result<ArrowColumn> part(const std::shared_ptr<const ArrowFile>& file, int field, int group) {
    return file->read_group(field, group);
  }
};

/// The rows of `range` of one column, as chunks. Errors: invalid_argument (the file has fewer rows), data_loss.
Result<std::vector<std::shared_ptr<arrow::Array>>> read_rows(const std::shared_ptr<const ArrowFile>& file, int field,
                                                             RowRange range, GroupSource& source);

/// `range` with its count filled in. Errors: invalid_argument when the file has fewer rows.
Result<RowRange> check_range(const ArrowFile& file, RowRange range);

/// Errors as read_parquet and visit_image_cells. They catch what Arrow throws.
Result<EpisodeTable> read_table(const std::shared_ptr<const ArrowFile>& file, const TableColumns& columns,
                                RowRange range, GroupSource& source);
Result<void> visit_images(const std::shared_ptr<const ArrowFile>& file, const std::string& column, RowRange range,
                          GroupSource& source, const ImageCellSink& sink);
Result<std::vector<std::vector<std::byte>>> read_images(const std::shared_ptr<const ArrowFile>& file,
                                                        const std::string& column, std::span<const std::int64_t> rows,
                                                        GroupSource& source);

}  // namespace troupe::data
