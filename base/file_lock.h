#pragma once

#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::base {

/// One process at a time: an exclusive flock(2) on a file that holds the owner's process id as a line. The kernel lets
/// go of it when the process ends, however it ends; the file stays, and means nothing by itself. Not thread-safe.
class FileLock {
 public:
  /// Takes the lock or says at once who has it. The file is made if it is missing; its folder must exist.
  /// Errors: failed_precondition (held; the message names the file and the process); those of file_error.
  static Result<FileLock> acquire(const std::string& path);
  /// The process that holds the lock of `path`: nothing where nobody does or the file is missing, 0 for one that has
  /// not written its id yet. Changes nothing. Errors: those of file_error.
  static Result<std::optional<int>> holder(const std::string& path);

  /// Deletes the file and lets go. Whoever opened the deleted file meanwhile takes the next one of its name instead.
  Result<void> remove();

 private:
  FileLock(std::string path, FileDescriptor fd);

  std::string path_;
  /// Its closing releases the lock; programs that are started do not inherit it.
  FileDescriptor fd_;
};

}  // namespace troupe::base
