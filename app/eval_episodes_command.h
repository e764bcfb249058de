#pragma once

#include "app/commands.h"
#include "workers/inference/policy/find_checkpoint.h"

namespace troupe::app {

/// Whether a checkpoint's policy was trained for an environment. A folder that says nothing of the kind is not.
Result<bool> plays_episodes(const CheckpointPlace& place);

/// `troupe eval CKPT [--env ID] --episodes N [--compare OTHER]` (docs/evaluation.md): lets the checkpoint's policy
/// play episodes of fixed seeds, prints and writes the result. Returns the command's exit code; what went wrong is on
/// stderr.
int eval_episodes_command(const EvalOptions& options, const CheckpointPlace& place);

}  // namespace troupe::app
