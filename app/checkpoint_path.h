#pragma once

#include <string>

#include "base/result.h"

namespace troupe {

/// A checkpoint as a command names it.
struct CheckpointPlace {
  std::string folder;  ///< holds manifest.json (Troupe) or config.json (DreamZero)
  std::string run;     ///< the run directory it lies in; empty: none
};

/// What a user means by CKPT: a checkpoint's folder, a DreamZero folder, or a run (directory, link, name under
/// `run_root`), whose newest checkpoint with right digests is taken. Errors: not_found, data_loss.
Result<CheckpointPlace> find_checkpoint(const std::string& source, const std::string& run_root);

}  // namespace troupe
