#pragma once

#include <optional>
#include <string>

#include "base/file_lock.h"
#include "base/result.h"

namespace troupe::workers {

/// Short folder for this user's sockets, stores and keys of one run or node, because a socket's path is at most 107
/// bytes (unix(7)): $XDG_RUNTIME_DIR/troupe/ID, else /tmp/troupe-UID/ID, mode 0700. It belongs to one process, which
/// holds the lock of the file ID.lock beside it, and goes with it. Not thread-safe.
class RuntimeDirectory {
 public:
  /// Takes the folder, empty, and removes those of this user whose lock proves that their owner is dead. Errors:
  /// failed_precondition (it or the folder above belongs to somebody else, or others may enter it; another process owns
  /// it), those of file_error and FileLock.
  static Result<RuntimeDirectory> take(const std::string& id);

  /// None.
  RuntimeDirectory() = default;
  RuntimeDirectory(RuntimeDirectory&& other) noexcept;
  RuntimeDirectory& operator=(RuntimeDirectory&& other) noexcept;
  RuntimeDirectory(const RuntimeDirectory&) = delete;
  RuntimeDirectory& operator=(const RuntimeDirectory&) = delete;
  ~RuntimeDirectory() { remove(); }

  /// Empty: none.
  const std::string& path() const { return path_; }
  /// Removes the folder and lets go of it. What cannot be removed is logged; the next take() tries again.
  void remove();

 private:
  std::string path_;
  std::optional<FileLock> lock_;
};

}  // namespace troupe::workers
