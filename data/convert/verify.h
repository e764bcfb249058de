#pragma once

// Internal to data/convert: what was written against what was read.
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/write_files.h"

namespace troupe {

/// Compares the files on disk with the sources. counts: rows per table, pictures per episode. full: every column by
/// value
/// and type, every coded picture, every decoded picture (pictures that were coded anew: number and size only).
/// Returns one sentence per difference.
Result<std::vector<std::string>> verify_output(const ConvertContext& context);

}  // namespace troupe
