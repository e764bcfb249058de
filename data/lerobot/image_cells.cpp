#include <arrow/array/array_binary.h>
#include <arrow/array/array_nested.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "data/lerobot/arrow_file.h"
#include "data/lerobot/parquet_table.h"

namespace troupe::data {

namespace {

std::string_view text_at(const arrow::Array& array, std::int64_t i) {
  if (array.IsNull(i)) return {};
  switch (array.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return static_cast<const arrow::BinaryArray&>(array).GetView(i);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return static_cast<const arrow::LargeBinaryArray&>(array).GetView(i);
    default:
      return {};
  }
}

bool holds_bytes(const arrow::DataType& type) {
  return type.id() == arrow::Type::BINARY || type.id() == arrow::Type::LARGE_BINARY;
}

/// One chunk of an image column: {bytes, path} or plain binary.
class Cells {
 public:
  static Result<Cells> of(const std::shared_ptr<arrow::Array>& chunk, const std::string& where) {
    Cells cells;
    cells.whole_ = chunk;
    if (holds_bytes(*chunk->type())) {
      cells.bytes_ = chunk;
      return cells;
    }
    if (chunk->type_id() == arrow::Type::STRUCT) {
      const auto& fields = static_cast<const arrow::StructArray&>(*chunk);
      cells.bytes_ = fields.GetFieldByName("bytes");
      cells.path_ = fields.GetFieldByName("path");
      if (cells.bytes_ != nullptr && holds_bytes(*cells.bytes_->type())) return cells;
    }
    return invalid_argument(
        fmt::format("{} has type {}; a struct {{bytes, path}} or binary is wanted", where, chunk->type()->ToString()));
  }

  Result<std::span<const std::byte>> at(std::int64_t i, const std::string& where, std::int64_t row) const {
    const std::string_view bytes = whole_->IsNull(i) ? std::string_view{} : text_at(*bytes_, i);
    if (!bytes.empty()) return std::as_bytes(std::span(bytes.data(), bytes.size()));
    const std::string_view path = path_ == nullptr || whole_->IsNull(i) ? std::string_view{} : text_at(*path_, i);
    if (path.empty()) return invalid_argument(fmt::format("{} holds no image in row {}", where, row));
    return invalid_argument(
        fmt::format("{} holds no bytes in row {}, only the path '{}'; images beside the table are not read, put "
                    "their bytes into it",
                    where, row, path));
  }

 private:
  std::shared_ptr<arrow::Array> whole_, bytes_, path_;
};

Result<void> visit(const std::shared_ptr<const ArrowFile>& file, const std::string& column, RowRange range,
                   GroupSource& source, const ImageCellSink& sink) {
  TROUPE_ASSIGN(range, check_range(*file, range));
  TROUPE_ASSIGN(const int field, file->find(column));
  const std::string where = fmt::format("{}: column '{}'", file->path(), column);
  // Group by group, so that one group's frames are in memory at a time.
  const std::int64_t end = range.first + range.count;
  std::int64_t row = range.first;
  for (int g = 0; g < file->groups() && row < end; ++g) {
    const std::int64_t last = std::min(end, file->group_first(g + 1));
    if (row >= last) continue;
    TROUPE_ASSIGN(const auto chunks, read_rows(file, field, {row, last - row}, source));
    for (const auto& chunk : chunks) {
      TROUPE_ASSIGN(const Cells cells, Cells::of(chunk, where));
      for (std::int64_t i = 0; i < chunk->length(); ++i, ++row) {
        TROUPE_ASSIGN(const auto bytes, cells.at(i, where, row));
        TROUPE_TRY(sink(row, bytes));
      }
    }
  }
  return {};
}

/// Runs of rows without a gap of more than a row group, so that a few frames of a long file stay a few reads.
std::vector<RowRange> runs_of(const ArrowFile& file, std::vector<std::int64_t> rows) {
  std::sort(rows.begin(), rows.end());
  std::vector<RowRange> out;
  int group = 0, last_group = -1;
  for (const std::int64_t row : rows) {
    while (group < file.groups() && row >= file.group_first(group + 1)) ++group;
    if (group == last_group) {
      out.back().count = row - out.back().first + 1;
    } else {
      out.push_back({row, 1});
    }
    last_group = group;
  }
  return out;
}

}  // namespace

Result<void> visit_images(const std::shared_ptr<const ArrowFile>& file, const std::string& column, RowRange range,
                          GroupSource& source, const ImageCellSink& sink) {
  try {
    return visit(file, column, range, source, sink);
  } catch (const std::exception& e) {
    return unreadable_parquet(file->path(), e.what());
  }
}

Result<std::vector<std::vector<std::byte>>> read_images(const std::shared_ptr<const ArrowFile>& file,
                                                        const std::string& column, std::span<const std::int64_t> rows,
                                                        GroupSource& source) {
  std::multimap<std::int64_t, std::size_t> wanted;
  for (std::size_t i = 0; i < rows.size(); ++i) wanted.emplace(rows[i], i);
  if (!wanted.empty()) {
    TROUPE_TRY(check_range(*file, {wanted.begin()->first, 1}));
    TROUPE_TRY(check_range(*file, {wanted.rbegin()->first, 1}));
  }
  std::vector<std::vector<std::byte>> out(rows.size());
  for (const RowRange& run : runs_of(*file, {rows.begin(), rows.end()})) {
    TROUPE_TRY(visit_images(file, column, run, source, [&](std::int64_t row, std::span<const std::byte> bytes) {
      const auto [begin, end] = wanted.equal_range(row);
      for (auto it = begin; it != end; ++it) out[it->second].assign(bytes.begin(), bytes.end());
      return Result<void>();
    }));
  }
  return out;
}

Result<void> visit_image_cells(const std::string& path, const std::string& column, RowRange range,
                               const ImageCellSink& sink) {
  try {
    TROUPE_ASSIGN(const auto file, ArrowFile::open(path));
    GroupSource direct;
    return visit_images(file, column, range, direct, sink);
  } catch (const std::exception& e) {
    return unreadable_parquet(path, e.what());
  }
}

Result<std::vector<std::vector<std::byte>>> read_image_cells(const std::string& path, const std::string& column,
                                                             std::span<const std::int64_t> rows) {
  try {
    TROUPE_ASSIGN(const auto file, ArrowFile::open(path));
    GroupSource direct;
    return read_images(file, column, rows, direct);
  } catch (const std::exception& e) {
    return unreadable_parquet(path, e.what());
  }
}

}  // namespace troupe::data
