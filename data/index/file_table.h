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

namespace troupe::data {

/// Size and contents of a file when it was read: what an index goes by. No time: equal data have equal indexes.
struct FileState {
  /// Bytes; -1: there was no such file.
  std::int64_t size = -1;
  /// XXH3-64 of the file when it has at most 64 KiB, else of 16 blocks of 4 KiB: the first, the last, and others evenly
  /// between. 0: no such file.
  std::uint64_t content = 0;
  bool operator==(const FileState&) const = default;
};

/// The state of a file now; size -1 when there is none, it is no regular file or it cannot be read.
FileState file_state(const std::string& path);

/// Distances between key frames; all frames where there is one key.
struct GopLengths {
  /// Frames from one key frame to the next.
  std::int32_t min = 0, median = 0, max = 0;
  bool operator==(const GopLengths&) const = default;
};
/// The lengths in decode order; the last group ends with the file and counts only when it is the only one.
GopLengths gop_lengths(const PacketTable& table);

/// What an index knows of one file of a dataset.
struct IndexedFile {
  FileState state;
  /// What the container says; none for Parquet files, whose entry is their state alone.
  std::optional<VideoInfo> video;
  GopLengths gop{};
  /// As PacketTable::one_ref.
  bool one_ref = false;
  /// Hints for reports; empty where read_mp4_facts cannot read a container that FFmpeg can.
  Mp4Facts container{};
  /// Only when it is written; FileTable::packets gives it later.
  std::shared_ptr<const PacketTable> packets{};
};

/// The contents of files.idx: every data and video file of a dataset that was read so far, whatever embodiment asked
/// for it. Opening looks at the list of paths only; an entry is checked when it is asked for. Immutable: any thread.
///
/// Sections: 0 paths (PathTable); 1 records of 104 bytes, one per path; 2 codecs, shared by files of equal parameters
/// (packet_codec.h); 3 packet tables, 2 to 4 bytes per frame. Section 3 is not covered by the file's digest: each
/// record has the XXH3-64 of its own packets, so that opening an index does not read hundreds of megabytes.
class FileTable {
 public:
  /// Keeps `file` alive. Errors: data_loss (lists that do not fit each other).
  static Result<std::shared_ptr<const FileTable>> open(std::shared_ptr<const IndexFile> file);

  /// Number of entries.
  std::size_t size() const { return paths_.size(); }
  /// Path of entry i, relative to the dataset. Requires i < size().
  std::string path(std::size_t i) const { return paths_.at(i); }
  /// Entry of a path relative to the dataset.
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

/// Collects entries and writes the bytes of a files.idx. Entries are kept encoded, so a dataset of any size costs
/// little more memory than its file. One thread.
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
  /// Entries so far.
  std::size_t size() const;
  /// The bytes of a files.idx of everything added and kept, ascending by path.
  std::string finish() const;

 private:
  struct Entry;
  std::uint32_t codec(const std::string& blob);
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::uint32_t> codecs_;
};

}  // namespace troupe::data
