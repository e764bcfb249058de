#pragma once

#include <string>

#include "base/result.h"

namespace troupe::app {

/// A checkpoint as a command names it.
struct CheckpointPlace {
  /// Holds manifest.json (Troupe) or config.json (DreamZero).
  std::string folder;
  /// The run directory it lies in; empty: none.
  std::string run;
};

/// What a user means by CKPT: a checkpoint's folder, a DreamZero folder, or a run (directory, link, name under
/// `run_root`), whose newest checkpoint with right digests is taken. Errors: not_found
/// (what was looked at), data_loss (no checkpoint of the run has right digests).
Result<CheckpointPlace> find_checkpoint(const std::string& source, const std::string& run_root);

}  // namespace troupe::app
