#pragma once

#include <string>

#include "app/checkpoint_path.h"
#include "base/result.h"

namespace troupe::app {

/// The folder that an evaluation writes into, made if need be: `out`, or when that is empty RUN/eval/<name of the
/// checkpoint's folder>. Errors: invalid_argument for a checkpoint outside a run without `out`; those of making a
/// folder.
Result<std::string> evaluation_folder(const CheckpointPlace& place, const std::string& out);

}  // namespace troupe::app
