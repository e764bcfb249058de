#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::base {

/// The sentence "path: what: cause" for an errno; resource_exhausted for a full disk or quota, not_found for a
/// missing path, else unavailable.
/// Example: "runs/a/plan.json: cannot be written: No space left on device".
Error file_error(const std::string& path, std::string_view what, int cause);

/// Flushes a directory's entries to disk.
/// Errors: as file_error.
Result<void> sync_directory(const std::string& path);

/// Writes and fsyncs `path` in place; a crash may leave it half there.
/// Mode 0644; an existing file is truncated first. Errors: as file_error.
Result<void> write_file_synced(const std::string& path, std::string_view bytes);

/// Gives a written and synced file its name, and makes the name durable: rename, fsync of the directory.
/// An existing `path` is replaced in one step. Both names are on one file system. Errors: as file_error.
Result<void> commit_file(const std::string& temporary, const std::string& path);

/// Writes `path` so that after a crash it holds either all of `bytes` or what it held before: path.tmp, fsync,
/// rename, fsync of the directory.
/// Two writers of one path at a time would share path.tmp: the caller lets only one in. Errors: as file_error.
Result<void> write_file_durably(const std::string& path, std::string_view bytes);

}  // namespace troupe::base
