#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// Gives a finished and synced file its name and makes the name durable: rename, fsync of the folder. Errors:
/// resource_exhausted when the disk is full, else unavailable; each names the file.
Result<void> commit_file(const std::string& temporary, const std::string& path);

/// Writes `path` so that after a crash it holds all of `text` or what it held before: path.tmp, fsync, commit_file.
Result<void> write_text_durably(const std::string& path, std::string_view text);

}  // namespace troupe
