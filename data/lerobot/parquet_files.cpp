#include <arrow/util/byte_size.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <tuple>

#include "base/fault.h"
#include "data/lerobot/arrow_file.h"
#include "data/lerobot/parquet_table.h"

namespace troupe::data {

namespace {

/// A column of a row group; the first thread that needs it decodes it while the others wait. The file outlives the
/// column.
struct DecodedGroup {
  std::mutex mutex;
  std::shared_ptr<const ArrowFile> file;
  ArrowColumn column;
};

}  // namespace

struct ParquetFiles::State final : GroupSource {
  using GroupKey = std::tuple<const ArrowFile*, int, int>;
  struct Slot {
    std::shared_ptr<DecodedGroup> group;
    std::int64_t bytes = 0;
    std::list<GroupKey>::iterator place;
  };
  struct OpenFile {
    std::shared_ptr<const ArrowFile> file;
    std::list<std::string>::iterator place;
  };

  std::size_t max_files = 0;
  std::int64_t max_bytes = 0;
  mutable std::mutex mutex;  ///< of everything below
  std::map<std::string, OpenFile> files;
  std::list<std::string> file_use;  ///< most recent first
  std::map<GroupKey, Slot> groups;
  std::list<GroupKey> group_use;
  std::int64_t bytes = 0;
  Counters counters;

  void forget_groups(const ArrowFile* file) {
    for (auto it = groups.lower_bound({file, 0, 0}); it != groups.end() && std::get<0>(it->first) == file;) {
      bytes -= it->second.bytes;
      group_use.erase(it->second.place);
      it = groups.erase(it);
    }
  }
  void forget_file(std::map<std::string, OpenFile>::iterator it) {
    forget_groups(it->second.file.get());
    file_use.erase(it->second.place);
    files.erase(it);
  }

  /// The open file, when it is still the one on disk.
  Result<std::shared_ptr<const ArrowFile>> file(const std::string& path) {
    const auto identity = ArrowFile::identify(path);
    {
      const std::lock_guard lock(mutex);
      const auto it = files.find(path);
      if (it != files.end()) {
        if (identity && it->second.file->identity() == *identity) {
          if (auto fault = fault_point("parquet", path); !fault)
            return unreadable_parquet(path, fault.error().message());
          file_use.splice(file_use.begin(), file_use, it->second.place);
          return it->second.file;
        }
        forget_file(it);
      }
    }
    TROUPE_ASSIGN(auto opened, ArrowFile::open(path));
    const std::lock_guard lock(mutex);
    ++counters.opened;
    const auto it = files.find(path);
    if (it != files.end()) return it->second.file;  // another thread was faster
    file_use.push_front(path);
    files[path] = {opened, file_use.begin()};
    while (files.size() > max_files) forget_file(files.find(file_use.back()));
    return opened;
  }

  Result<ArrowColumn> part(const std::shared_ptr<const ArrowFile>& from, int field, int group) override {
    const GroupKey key{from.get(), field, group};
    std::shared_ptr<DecodedGroup> entry;
    {
      const std::lock_guard lock(mutex);
      const auto it = groups.find(key);
      if (it != groups.end()) {
        group_use.splice(group_use.begin(), group_use, it->second.place);
        entry = it->second.group;
      } else {
        entry = std::make_shared<DecodedGroup>();
        group_use.push_front(key);
        groups[key] = {entry, 0, group_use.begin()};
      }
    }
    const std::lock_guard decoding(entry->mutex);
    if (entry->column != nullptr) return entry->column;
    auto column = from->read_group(field, group);
    const std::lock_guard lock(mutex);
    const auto it = groups.find(key);
    const bool kept = it != groups.end() && it->second.group == entry;
    if (!column) {
      if (kept) {
        group_use.erase(it->second.place);
        groups.erase(it);
      }
      return column.error();
    }
    ++counters.decoded;
    entry->file = from;
    entry->column = *column;
    if (kept) {
      it->second.bytes = arrow::util::TotalBufferSize(**column);
      bytes += it->second.bytes;
      while (bytes > max_bytes && !group_use.empty()) {
        const auto oldest = groups.find(group_use.back());
        bytes -= oldest->second.bytes;
        groups.erase(oldest);
        group_use.pop_back();
      }
    }
    return column;
  }
};

ParquetFiles::ParquetFiles(std::size_t max_files, std::int64_t max_bytes) : state_(std::make_unique<State>()) {
  state_->max_files = std::max<std::size_t>(1, max_files);
  state_->max_bytes = max_bytes;
}
ParquetFiles::~ParquetFiles() = default;

Result<EpisodeTable> ParquetFiles::read(const std::string& path, const TableColumns& columns, RowRange range) {
  try {
    TROUPE_ASSIGN(const auto file, state_->file(path));
    return read_table(file, columns, range, *state_);
  } catch (const std::exception& e) {
    return unreadable_parquet(path, e.what());
  }
}

Result<void> ParquetFiles::visit_images(const std::string& path, const std::string& column, RowRange range,
                                        const ImageCellSink& sink) {
  try {
    TROUPE_ASSIGN(const auto file, state_->file(path));
    return data::visit_images(file, column, range, *state_, sink);
  } catch (const std::exception& e) {
    return unreadable_parquet(path, e.what());
  }
}

Result<std::vector<std::vector<std::byte>>> ParquetFiles::read_images(const std::string& path,
                                                                      const std::string& column,
                                                                      std::span<const std::int64_t> rows) {
  try {
    TROUPE_ASSIGN(const auto file, state_->file(path));
    return data::read_images(file, column, rows, *state_);
  } catch (const std::exception& e) {
    return unreadable_parquet(path, e.what());
  }
}

ParquetFiles::Counters ParquetFiles::counters() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counters;
}

}  // namespace troupe::data
