#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::data {

// Internal to data/convert: a file of the output gets its name only when it is complete and synced, so a killed
// conversion leaves *.part files and nothing that looks finished. Errors are those of the failed system call and name
// the path (file_error of base/file_io.h). All functions may be called from any thread for different paths.

/// The name under which a file is written until it is complete: the path with ".part" behind it.
std::string part_name(const std::string& path);

/// Makes the folders above `path`.
Result<void> make_parent(const std::string& path);

/// Gives the complete file part_name(path) its name, durably. Fault point convert.rename (subject: the path).
Result<void> finish_file(const std::string& path);

/// Writes a whole file under its part name and finishes it. Fault point convert.metadata (subject: the path).
Result<void> write_finished(const std::string& path, std::string_view bytes);

}  // namespace troupe::data
