#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::base {

/// The length of an open file up to and including its last newline; 0 where there is none. `path` is for the message.
/// Errors: data_loss when the file shrinks meanwhile; those of file_error.
Result<std::uint64_t> end_of_last_line(int fd, const std::string& path);

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
  /// Makes missing parent folders. Errors: those of file_error.
  /// Opens `path` for appending, mode 0644, close-on-exec.
  static Result<AppendFile> open(const std::string& path, Open how);

  /// The descriptor and the buffer move; the moved-from object may only be destroyed or assigned to.
  AppendFile(AppendFile&& other) noexcept = default;
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
  /// cut. Errors: those of file_error; what was not written stays in the buffer.
  Result<void> flush();
  /// Drops what is buffered and closes the file: what could not be written is given up. May only be destroyed or
  /// assigned to afterwards.
  void abandon();

 private:
  AppendFile(std::string path, FileDescriptor fd, std::uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}
  /// Writes what is buffered, logs a failure, closes the descriptor.
  void close();

  std::string path_;
  FileDescriptor fd_;
  /// Bytes of the file after every buffered byte is written.
  std::uint64_t size_ = 0;
  /// Not handed to the kernel yet.
  std::string buffer_;
};

}  // namespace troupe::base
