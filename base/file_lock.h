#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::base {

/// A lock between processes: flock(2) on a file that holds its owner's pid. It is free at once when the object or the
/// process ends, however it ends. The file stays.
class FileLock {
 public:
  /// Takes the lock, or fails within 0.1 s; the file is made when absent, mode 0644.
  /// Errors: failed_precondition (another process holds it: its pid), those of file_error.
  static Result<FileLock> acquire(const std::string& path);

  /// The pid of the process that holds the lock of `path`; nothing when it is free or there is no such file. 0: the
  /// holder has not written its pid yet.
  static std::optional<pid_t> holder(const std::string& path);

 private:
  explicit FileLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

}  // namespace troupe::base
