#pragma once

// Internal to data/convert: what was written against what was read.
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/write_files.h"

namespace troupe::data {

/// Compares the files on disk with the sources. counts: rows per table, frames per episode. full: every column by value
/// and type, every coded frame, every decoded frame (frames that were coded anew: number and size only).
/// Returns one sentence per difference.
Result<std::vector<std::string>> verify_output(const ConvertContext& context);

}  // namespace troupe::data
