#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::base {

// Errors of all functions: those of file_error (base/file_io.h).

/// Flushes a file's contents to disk; its name needs sync_directory() too.
Result<void> sync_file(const std::string& path);

/// Flushes a directory's entries to disk.
Result<void> sync_directory(const std::string& path);

/// Makes a folder and those above it that are missing, and makes their names durable: fsync of the folder above each.
/// One that is there already is fine, and its name is made durable too where `synced_up_to`, a folder above it, is
/// given: that of every folder below it is.
Result<void> make_folders_durably(const std::string& path, const std::string& synced_up_to = {});

/// Writes and fsyncs `path` in place; a crash may leave it half there.
/// Mode 0644; an existing file is truncated first.
Result<void> write_file_synced(const std::string& path, std::string_view bytes);

/// Gives a written and synced file its name, and makes the name durable: rename, fsync of the directory.
/// An existing `path` is replaced in one step. Both names are on one file system.
Result<void> commit_file(const std::string& temporary, const std::string& path);

/// Writes `path` so that readers, and a crash, find either all of `bytes` or what was there before: a temporary file
/// PATH.<16 hex digits>.tmp, fsync, rename, fsync of the directory. `mode` is that of the new file, less the umask; a
/// secret never lies under another one. Writers of one path, in any process, do not disturb each other: the last rename
/// stays. A failure removes the temporary file, a kill leaves it.
Result<void> write_file_durably(const std::string& path, std::string_view bytes, unsigned mode = 0644);

}  // namespace troupe::base
