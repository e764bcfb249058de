#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "data/video/packet_source.h"
#include "data/video/packet_table.h"
#include "data/video/read_thread.h"

namespace troupe::data {

/// A video file that is open for reading, with its packet table. Immutable; a reading thread may hold it for longer
/// than the decoder does.
struct OpenFile {
  /// `stem`: the file's name without folder and extension.
  std::string path, stem;
  /// Open for reading.
  FileDescriptor fd;
  FileIdentity identity;
  std::shared_ptr<const PacketTable> table;
};

/// The name of a file without folder and extension: the subject of fault points.
std::string stem_of(const std::string& path);

/// The files that a decoder keeps open, most recently used first. Internal to ClipDecoder; not thread-safe.
class OpenFiles {
 public:
  /// Files opened, packet tables read from files, and packet tables that find_table gave.
  struct Counters {
    std::int64_t files_opened = 0, tables_read = 0, tables_found = 0;
  };

  /// Keeps `most` files, at least one. `find_table` may be empty.
  OpenFiles(std::int64_t most, FindPacketTable find_table);

  /// The file at `path`, opened on first use. One that was removed, replaced or written to since is opened anew.
  /// Errors: those of read_packet_table and of file_error; deadline_exceeded.
  Result<std::shared_ptr<const OpenFile>> get(const std::string& path, ReadThread& thread,
                                              std::chrono::steady_clock::time_point deadline);
  /// Forgets a file and what was found out about it: the next get opens it and reads its own table, keys checked
  /// against the coded frames.
  void forget(const std::string& path);
  const Counters& counters() const noexcept { return counters_; }

 private:
  Result<std::shared_ptr<const OpenFile>> open(const std::string& path, ReadThread& thread,
                                               std::chrono::steady_clock::time_point deadline);
  void drop(const std::string& path);

  using Order = std::list<std::shared_ptr<const OpenFile>>;
  const std::size_t most_;
  const FindPacketTable find_table_;
  Order order_;
  std::unordered_map<std::string, Order::iterator> by_path_;
  // Files whose table led to an error: theirs is read from the file, every key checked.
  std::unordered_set<std::string> distrusted_;
  Counters counters_;
};

}  // namespace troupe::data
