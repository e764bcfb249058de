#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// A file that only grows, with a buffer in front. Not thread-safe. The destructor writes what is buffered and logs a
/// failure; call flush() where the error matters.
class AppendFile {
 public:
  enum class Open {
    resume,     ///< made when absent, else continued; the bytes behind the last newline (a torn line) are cut off
    exclusive,  ///< made; an existing file is an error (failed_precondition)
  };
  /// Makes missing parent folders. Errors: failed_precondition, resource_exhausted, data_loss; all name the path.
  static Result<AppendFile> open(const std::string& path, Open how);

  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  /// Bytes in the file and in the buffer.
  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  Result<void> append(std::string_view bytes);
  Result<void> flush();

 private:
  AppendFile(std::string path, int fd, std::uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}
  void close();

  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::string buffer_;
};

}  // namespace troupe
