#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "data/index/file_table.h"

namespace troupe::data {

/// When this machine last saw the files of one dataset: their modification times, beside the state that an index goes
/// by, so that a file need not be read again to know that it is the same. Indexes hold no times: equal data have equal
/// indexes. The times lie in a file of the user's cache (docs/dataset-index.md, "Times"); without it the contents are
/// compared. Thread-safe but for load, save and settle.
class FileTimes {
 public:
  /// Files below `root`; paths are relative to it.
  explicit FileTimes(std::string root) : root_(std::move(root)) {}
  /// Takes what a file of times says; an absent or damaged one says nothing.
  void load(const std::string& file);
  /// Writes what is known now, if that is news. A failure costs time at the next opening and is logged as a line of
  /// debug.
  void save(const std::string& file) const;

  /// The state of a file as it is now: remembered where its size and time are, else read.
  FileState state(const std::string& path);
  /// Is the file the one that was indexed? Its size is, and where it was seen before, its time or else its contents.
  /// A file whose time changed is not, whatever its contents: it may differ where file_state does not look.
  bool is_unchanged(const std::string& path, const FileState& indexed);
  /// The same for a file that is open already: its size and time as the descriptor has them.
  bool is_unchanged(const std::string& path, const FileState& indexed, std::int64_t size, std::int64_t modified_ns);
  /// From here on is_unchanged compares with the files as state() has seen them.
  void settle();

 private:
  struct Seen {
    std::int64_t modified_ns = 0;
    FileState state{};
    bool operator==(const Seen&) const = default;
  };
  std::string root_;
  std::mutex mutex_;                    ///< of what follows
  std::map<std::string, Seen> before_;  ///< what is_unchanged compares with
  std::map<std::string, Seen> now_;
  std::map<std::string, Seen> stored_;  ///< what the file says
};

}  // namespace troupe::data
