#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace troupe::base {

/// A new, empty folder of mode 0700 for temporary files, which goes with the object and all that it holds. Not
/// thread-safe.
class TemporaryFolder {
 public:
  /// NAME-XXXXXX, six random letters, in the folder that TMPDIR names, else in /tmp. Errors: failed_precondition (none
  /// can be made there).
  static Result<TemporaryFolder> make(const std::string& name);
  /// What cannot be removed stays.
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  /// empty: moved away
  std::string path_;
};

}  // namespace troupe::base
