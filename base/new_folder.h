#pragma once

#include <string>

#include "base/result.h"

namespace troupe::base {

/// A folder that is written beside its name, as NAME.tmp-PID, and renamed at the end: a folder called NAME holds all of
/// it. A kill leaves the folder beside it at most. Not thread-safe.
class NewFolder {
 public:
  /// Makes an empty folder to write in, and the folders above it; `name` is absent or an empty folder.
  /// Errors: failed_precondition (`name` holds something); those of file_error.
  static Result<NewFolder> begin(std::string name);
  /// Removes what was not published.
  ~NewFolder();
  NewFolder(NewFolder&& other) noexcept;
  NewFolder& operator=(NewFolder&&) = delete;

  /// Where to write.
  /// NAME.tmp-PID; valid while the object lives, and after publish() empty.
  const std::string& path() const { return path_; }
  /// Makes everything durable and gives it its name. Errors: failed_precondition (somebody else was faster);
  /// those of file_error. What was written is removed then.
  Result<void> publish();

 private:
  NewFolder(std::string name, std::string path);
  void remove() noexcept;

  std::string name_;
  /// Empty: nothing to remove.
  std::string path_;
};

}  // namespace troupe::base
