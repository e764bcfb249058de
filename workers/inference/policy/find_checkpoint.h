#pragma once

#include <string>

#include "base/result.h"

namespace troupe::workers {

/// A checkpoint as a command names it.
struct CheckpointPlace {
  /// Holds manifest.json (Troupe) or config.json (DreamZero).
  std::string folder;
  /// The run directory it lies in; empty: none.
  std::string run;
};

/// What a user means by CKPT: a checkpoint's folder, a DreamZero folder or one of the Hugging Face cache (owner/name),
/// RUN/checkpoints/best, or a run (directory, link, name under `run_root`), whose newest checkpoint is taken. Of that
/// one all but the rank files and the base is compared with its digests, as reading these compares them. Errors:
/// not_found (what was looked at); those of newest_checkpoint.
Result<CheckpointPlace> find_checkpoint(const std::string& source, const std::string& run_root);

/// The folder that an evaluation writes into, made if need be: `out`, or when that is empty RUN/eval/<name of the
/// checkpoint's folder>. Errors: invalid_argument for a checkpoint outside a run without `out`; those of making a
/// folder.
Result<std::string> evaluation_folder(const CheckpointPlace& place, const std::string& out);

}  // namespace troupe::workers
