#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_lock.h"
#include "base/result.h"

namespace troupe::data {

/// The output folder of one conversion, which no other process writes into while this object lives: a lock on
/// OUT/.troupe/convert/lock. Not thread-safe.
class OutputLock {
 public:
  /// Makes the folder and locks it. It must be absent or empty but for what a killed attempt locked, unless `resume`.
  /// Errors: failed_precondition (another process converts into it, named by its id; it holds something); those of
  /// file_error.
  static Result<OutputLock> take(const std::string& out, bool resume);
  /// Removes the lock, and the folders that were made and hold nothing.
  ~OutputLock();
  OutputLock(OutputLock&& other) noexcept
      : lock_(std::exchange(other.lock_, std::nullopt)), folders_(std::move(other.folders_)) {}
  OutputLock& operator=(OutputLock&&) = delete;

 private:
  OutputLock(base::FileLock lock, std::vector<std::string> made);

  /// Nothing: moved from.
  std::optional<base::FileLock> lock_;
  /// Folders that were not there before, the innermost first.
  std::vector<std::string> folders_;
};

}  // namespace troupe::data
