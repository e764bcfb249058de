#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace troupe::testing {

/// A file system that can lose its power. While one exists, every call of this process that changes a file or folder
/// below `root` is written down beneath all code: the program defines the C library's calls (crash_calls.cpp) that the
/// durable write, the appender, std::filesystem and SQLite make. Not among them, and so not seen: creat, truncate (by a
/// path), fallocate, pwritev, copy_file_range, sendfile, link, and what C's stdio and mappings write. Files are really
/// there as well.
///
/// write_image() then builds what a disk may hold when the power fails after any number of those calls:
/// - a page of 4 KiB that was written and not synced is there in any of its states since the last sync; pages are
///   independent, and so is the file's length, so that there may be zeros where bytes were lost;
/// - an entry of a folder that was made, renamed or removed since the folder was last synced is so or not, whatever
///   became of others, in order for each name; a rename is whole or not there;
/// - fsync of a file does not make its name durable, fsync of a folder says nothing of what its files hold.
/// That is more than any journalling file system loses. One at a time in a process; calls may come from any thread.
class CrashFileSystem {
 public:
  /// Whether the root is empty, or holds files that are durable as they are.
  enum class Root : std::uint8_t { empty, as_it_is };
  explicit CrashFileSystem(const std::string& root, Root state = Root::empty);
  ~CrashFileSystem();
  CrashFileSystem(const CrashFileSystem&) = delete;
  CrashFileSystem& operator=(const CrashFileSystem&) = delete;

  /// Writes nothing down from here on.
  void stop();
  /// Changes and syncs so far.
  std::size_t num_calls() const;
  /// How many there were of each kind ("write", "truncate", "sync", "make", "rename", "remove").
  std::map<std::string, std::size_t> calls_by_kind() const;

  /// What may have been there when the power failed after the first `calls`, in `folder`, which is made. Seed 0: all
  /// that was not synced is lost; 1: nothing is; 2: names are there and bytes are not; others: chance. After stop().
  void write_image(std::size_t calls, std::uint64_t seed, const std::string& folder) const;

  struct Record;

 private:
  std::unique_ptr<Record> record_;
};

}  // namespace troupe::testing
