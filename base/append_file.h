#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::base {

/// A file that only grows, with a buffer in front. Not thread-safe. The destructor writes what is buffered and logs a
/// failure; call flush() where the error matters.
class AppendFile {
 public:
  enum class Open {
    /// Made when absent, else continued; the bytes behind the last newline (a torn line) are cut off.
    resume,
    /// Made; an existing file is an error (failed_precondition).
    exclusive,
  };
  /// Makes missing parent folders. Errors: failed_precondition, resource_exhausted, data_loss; all name the path.
  /// Opens `path` for appending, mode 0644, close-on-exec.
  static Result<AppendFile> open(const std::string& path, Open how);

  /// The descriptor and the buffer move; the moved-from object may only be destroyed or assigned to.
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  /// Bytes in the file and in the buffer.
  std::uint64_t size() const { return size_; }
  /// As given to open(); valid while the object lives.
  const std::string& path() const { return path_; }
  /// Adds the bytes to the buffer, and writes all of it once 64 KiB have gathered. Errors: those of flush(), and then
  /// the bytes count as appended: the next flush() tries them again.
  Result<void> append(std::string_view bytes);
  /// Hands the buffer to the kernel (write, no fsync): what was flushed survives a kill of the process, not a power
  /// cut. Errors: resource_exhausted (disk, quota or descriptors full), data_loss; what was not written stays in the
  /// buffer.
  Result<void> flush();

 private:
  AppendFile(std::string path, int fd, std::uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}
  /// Writes what is buffered, logs a failure, closes the descriptor.
  void close();

  std::string path_;
  /// -1: nothing is open.
  int fd_ = -1;
  /// Bytes of the file after every buffered byte is written.
  std::uint64_t size_ = 0;
  /// Not handed to the kernel yet.
  std::string buffer_;
};

}  // namespace troupe::base
