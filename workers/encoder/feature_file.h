#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::workers {

/// A file of the cache by offsets. Reads may come from any thread; writes from one at a time. Errors name the path.
class FeatureFile {
 public:
  /// Errors, here and below: those of file_error.
  static Result<std::shared_ptr<FeatureFile>> open(const std::string& path);
  /// Makes a file that must not exist yet.
  static Result<std::shared_ptr<FeatureFile>> create(const std::string& path);
  /// An existing file, to be changed.
  static Result<std::shared_ptr<FeatureFile>> open_writable(const std::string& path);

  const std::string& path() const { return path_; }
  Result<std::uint64_t> size() const;
  /// Fills `out` from `offset` (pread); fewer bytes when the file ends before.
  Result<std::size_t> read_at(std::span<std::byte> out, std::uint64_t offset) const;
  /// All of `bytes` at `offset` (pwrite), growing the file.
  Result<void> write_at(std::span<const std::byte> bytes, std::uint64_t offset);
  /// Cuts the file, or grows it with zeros.
  Result<void> truncate(std::uint64_t size);
  /// fdatasync: what was written survives a crash of the machine.
  Result<void> sync();
  /// Takes the file's exclusive lock (flock), which lasts as long as this object and ends with the process. False:
  /// another has it.
  bool try_lock();

 private:
  FeatureFile(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  /// `flags` of open(2); O_CLOEXEC is added.
  static Result<std::shared_ptr<FeatureFile>> open_with(const std::string& path, int flags);

  std::string path_;
  FileDescriptor fd_;
};

/// Files that are read again and again, the least recently used closed first. Any thread.
class OpenFeatureFiles {
 public:
  /// At most `most` are open; a file in use stays valid after it was forgotten.
  explicit OpenFeatureFiles(std::size_t most) : most_(most) {}
  /// Errors: those of FeatureFile::open.
  Result<std::shared_ptr<FeatureFile>> get(const std::string& path);
  /// Closes it once nobody reads it: the file was renamed.
  void forget(const std::string& path);

 private:
  const std::size_t most_;
  std::mutex mutex_;
  // Most recently used first.
  std::list<std::shared_ptr<FeatureFile>> files_;
};

}  // namespace troupe::workers
