#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// The name under which a file is written until it is complete.
std::string part_name(const std::string& path);

/// Makes the folders above `path`.
Result<void> make_parent(const std::string& path);

/// Makes a file's contents durable.
Result<void> sync_file(const std::string& path);

/// Gives the complete file part_name(path) its name, durably. Fault point convert.rename (subject: the path).
Result<void> finish_file(const std::string& path);

/// Writes a whole file under its part name and finishes it. Fault point convert.metadata (subject: the path).
Result<void> write_finished(const std::string& path, std::string_view bytes);

}  // namespace troupe
