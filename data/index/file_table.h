#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/index/index_file.h"
#include "data/index/path_table.h"
#include "data/video/mp4_facts.h"
#include "data/video/packet_table.h"
#include "data/video/video_file.h"

namespace troupe {

/// Size and modification time of a file when it was read: what an index goes by.
struct FileState {
  std::int64_t size = -1;  ///< -1: there was none
  std::int64_t modified_ns = 0;
  bool operator==(const FileState&) const = default;
};

/// The state of a file now; size -1 when there is none or it is no regular file.
FileState file_state(const std::string& path);

/// Distances between key pictures; all pictures where there is one key.
struct GopLengths {
  std::int32_t min = 0, median = 0, max = 0;  ///< pictures
  bool operator==(const GopLengths&) const = default;
};
GopLengths gop_lengths(const PacketTable& table);

/// What an index knows of one file of a dataset.
struct IndexedFile {
  FileState state;
  std::optional<VideoInfo> video;  ///< none for Parquet files
  GopLengths gop{};
  bool one_ref = false;  ///< as PacketTable::one_ref
  Mp4Facts container{};
  std::shared_ptr<const PacketTable> packets{};  ///< only when it is written; FileTable::packets gives it later
};

/// The contents of files.idx: every data and video file of a dataset that was read so far, whatever embodiment asked
/// for it. Opening looks at the list of paths only; an entry is checked when it is asked for. Immutable: any thread.
class FileTable {
 public:
  /// Errors: data_loss.
  static Result<std::shared_ptr<const FileTable>> open(std::shared_ptr<const IndexFile> file);

  std::size_t size() const { return paths_.size(); }
  std::string path(std::size_t i) const { return paths_.at(i); }
  std::optional<std::size_t> find(std::string_view path) const { return paths_.find(path); }
  /// Entry i without its packets. Errors: data_loss.
  Result<IndexedFile> entry(std::size_t i) const;
  /// The packet table of entry i; null when the index holds none. Errors: data_loss.
  Result<std::shared_ptr<const PacketTable>> packets(std::size_t i) const;

 private:
  friend class FileTableWriter;
  struct Record;
  struct Codec {
    std::string_view name, pix_fmt, parameters;
  };
  FileTable() = default;
  Result<const Record*> record(std::size_t i) const;
  Result<std::span<const std::byte>> packet_bytes(const Record& record) const;

  std::shared_ptr<const IndexFile> file_;
  PathTable paths_;
  std::span<const Record> records_;
  std::vector<Codec> codecs_;
  std::span<const std::byte> packets_;
};

/// Collects entries and writes the bytes of a files.idx. One thread.
class FileTableWriter {
 public:
  FileTableWriter();
  ~FileTableWriter();
  FileTableWriter(FileTableWriter&& other) noexcept;
  FileTableWriter& operator=(FileTableWriter&& other) noexcept;
  /// Adds an entry, in place of an earlier one of that path.
  void add(const std::string& path, const IndexedFile& file);
  /// Copies entry i of another table unless the path has one already; an entry that is damaged is left out.
  void keep(const FileTable& table, std::size_t i);
  std::size_t size() const;
  std::string finish() const;

 private:
  struct Entry;
  std::uint32_t codec(const std::string& blob);
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::uint32_t> codecs_;
};

}  // namespace troupe
