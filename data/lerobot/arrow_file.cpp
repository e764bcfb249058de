#include "data/lerobot/arrow_file.h"

#include <arrow/array.h>
#include <arrow/io/file.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/fault.h"
#include "data/lerobot/file_checks.h"

namespace troupe::data {

namespace {

/// Rows that a file may claim: a month at 50 Hz. More than that is damage, and would be allocated.
constexpr std::int64_t kMostGroupRows = std::int64_t{1} << 27;
/// What decoding a file may allocate at one time: Parquet packs constant columns a hundredfold.
constexpr std::int64_t kLeastLimit = std::int64_t{256} << 20;
constexpr std::int64_t kLimitPerByte = 64;

}  // namespace

Error unreadable_parquet(const std::string& path, const std::string& why) {
  return {Errc::data_loss, fmt::format("{} is not a readable Parquet file: {}", path, why)};
}

arrow::Status LimitedPool::take(std::int64_t more) {
  if (used_.fetch_add(more) + more <= limit_) return arrow::Status::OK();
  used_ -= more;
  return arrow::Status::OutOfMemory("it asks for ", more, " bytes at once; ", limit_, " is the most for its size");
}

arrow::Status LimitedPool::Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) {
  ARROW_RETURN_NOT_OK(take(size));
  arrow::Status status = base_->Allocate(size, alignment, out);
  if (!status.ok()) used_ -= size;
  total_ += size;
  ++allocations_;
  return status;
}

arrow::Status LimitedPool::Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                                      std::uint8_t** ptr) {
  ARROW_RETURN_NOT_OK(take(new_size - old_size));
  arrow::Status status = base_->Reallocate(old_size, new_size, alignment, ptr);
  if (!status.ok()) used_ -= new_size - old_size;
  total_ += std::max<std::int64_t>(0, new_size - old_size);
  ++allocations_;
  return status;
}

void LimitedPool::Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) {
  base_->Free(buffer, size, alignment);
  used_ -= size;
}

Result<ParquetIdentity> ArrowFile::identify(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size == 0) {
    TROUPE_ASSIGN([[maybe_unused]] const std::int64_t size, require_regular_file(path));  // says what is wrong
    return Error{Errc::data_loss, fmt::format("{} changed while it was looked at", path)};
  }
  return ParquetIdentity{.device = facts.st_dev,
                         .inode = facts.st_ino,
                         .size = facts.st_size,
                         .modified_ns = facts.st_mtim.tv_sec * 1'000'000'000LL + facts.st_mtim.tv_nsec};
}

Result<std::shared_ptr<const ArrowFile>> ArrowFile::open(const std::string& path) {
  TROUPE_ASSIGN([[maybe_unused]] const std::int64_t size, require_regular_file(path));
  if (auto fault = fault_point("parquet", path); !fault) return unreadable_parquet(path, fault.error().message());
  auto file = std::make_shared<ArrowFile>();
  file->path_ = path;
  TROUPE_ASSIGN(file->identity_, identify(path));
  file->pool_ = std::make_unique<LimitedPool>(kLeastLimit + kLimitPerByte * file->identity_.size);

  auto input = arrow::io::ReadableFile::Open(path, file->pool_.get());
  if (!input.ok()) return unreadable_parquet(path, input.status().ToString());
  parquet::arrow::FileReaderBuilder builder;
  parquet::ReaderProperties reading(file->pool_.get());
  reading.set_page_checksum_verification(true);  // pages without a checksum are read as they are
  if (const arrow::Status s = builder.Open(*input, reading); !s.ok()) return unreadable_parquet(path, s.ToString());
  parquet::ArrowReaderProperties properties;
  properties.set_use_threads(false);
  if (const auto s = builder.memory_pool(file->pool_.get())->properties(properties)->Build(&file->reader_); !s.ok())
    return unreadable_parquet(path, s.ToString());

  file->metadata_ = file->reader_->parquet_reader()->metadata();
  file->group_first_.push_back(0);
  for (int g = 0; g < file->metadata_->num_row_groups(); ++g) {
    const std::int64_t rows = file->metadata_->RowGroup(g)->num_rows();
    if (rows < 0 || rows > kMostGroupRows - file->group_first_.back()) {
      return unreadable_parquet(path, fmt::format("its footer claims {} rows in group {}", rows, g));
    }
    file->group_first_.push_back(file->group_first_.back() + rows);
  }
  if (file->rows() != file->metadata_->num_rows()) {
    return unreadable_parquet(
        path, fmt::format("its footer claims {} rows, its row groups {}", file->metadata_->num_rows(), file->rows()));
  }
  if (const arrow::Status s = file->reader_->GetSchema(&file->schema_); !s.ok())
    return unreadable_parquet(path, s.ToString());
  return std::shared_ptr<const ArrowFile>(std::move(file));
}

Result<int> ArrowFile::find(const std::string& name) const {
  const int field = schema_->GetFieldIndex(name);
  if (field >= 0) return field;
  return invalid_argument(
      fmt::format("{} has no column '{}'; it has {}", path_, name, fmt::join(schema_->field_names(), ", ")));
}

Result<ArrowColumn> ArrowFile::checked(int field, ArrowColumn column, std::int64_t rows,
                                       const arrow::Status& status) const {
  const std::string& name = schema_->field(field)->name();
  if (!status.ok()) return unreadable_parquet(path_, fmt::format("column '{}': {}", name, status.ToString()));
  if (column->length() == rows) return column;
  return unreadable_parquet(path_, fmt::format("column '{}' has {} of {} rows", name, column->length(), rows));
}

Result<ArrowColumn> ArrowFile::read_column(int field) const {
  ArrowColumn column;
  const arrow::Status status = reader_->ReadColumn(field, &column);
  return checked(field, std::move(column), rows(), status);
}

Result<ArrowColumn> ArrowFile::read_group(int field, int group) const {
  ArrowColumn column;
  const arrow::Status status = reader_->RowGroup(group)->Column(field)->Read(&column);
  return checked(field, std::move(column), group_first(group + 1) - group_first(group), status);
}

Result<RowRange> check_range(const ArrowFile& file, RowRange range) {
  if (range.count < 0) range.count = std::max<std::int64_t>(0, file.rows() - range.first);
  if (range.first >= 0 && range.first <= file.rows() && range.count <= file.rows() - range.first) return range;
  return invalid_argument(fmt::format("{} has {} rows; {} rows from row {} on are wanted", file.path(), file.rows(),
                                      range.count, range.first));
}

Result<std::vector<std::shared_ptr<arrow::Array>>> read_rows(const std::shared_ptr<const ArrowFile>& file, int field,
                                                             RowRange range, GroupSource& source) {
  TROUPE_ASSIGN(range, check_range(*file, range));
  if (range.first == 0 && range.count == file->rows()) {
    TROUPE_ASSIGN(const ArrowColumn column, file->read_column(field));
    return column->chunks();
  }
  std::vector<std::shared_ptr<arrow::Array>> out;
  const std::int64_t end = range.first + range.count;
  for (int g = 0; g < file->groups(); ++g) {
    const std::int64_t first = std::max(range.first, file->group_first(g));
    const std::int64_t last = std::min(end, file->group_first(g + 1));
    if (first >= last) continue;
    const bool whole = last - first == file->group_first(g + 1) - file->group_first(g);
    TROUPE_ASSIGN(const ArrowColumn column, whole ? file->read_group(field, g) : source.part(file, field, g));
    const auto slice = column->Slice(first - file->group_first(g), last - first);
    out.insert(out.end(), slice->chunks().begin(), slice->chunks().end());
  }
  return out;
}

}  // namespace troupe::data
