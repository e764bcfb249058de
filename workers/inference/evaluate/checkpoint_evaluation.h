#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "workers/inference/evaluate/open_loop.h"
#include "workers/inference/evaluate/open_loop_report.h"
#include "workers/inference/policy/find_checkpoint.h"
#include "workers/inference/policy/policy_options.h"

namespace troupe::workers {

/// What a checkpoint is evaluated on, and how its policy runs.
struct CheckpointEvaluationOptions {
  /// Dataset folder; empty: of the datasets of the checkpoint's job the first that holds out episodes, else the first.
  std::string data{};
  /// Episode indices; empty: those that the job held out in that dataset, and where there are none every episode.
  std::vector<std::int64_t> episodes{};
  /// Windows evaluated at most.
  std::int64_t windows = 16;
  PolicyOptions policy{};
  /// Told before the policy runs that no episode was held out and none is named, so that all are looked at, trained on
  /// or not; may be empty.
  std::function<void()> on_training_episodes{};
  /// Windows.
  Progress progress{};
};

/// What was measured, and on what.
struct CheckpointEvaluation {
  OpenLoopResult result;
  OpenLoopSubject subject;
};

/// Loads the policy of a checkpoint, drives it through recorded windows (run_open_loop) and writes eval.json and
/// open_loop.png into `folder`, which exists (docs/evaluation.md#open-loop-evaluation).
/// Errors: invalid_argument for a DreamZero folder without options.data; those of opening checkpoint and dataset, of
///         run_open_loop and of writing.
Result<CheckpointEvaluation> evaluate_checkpoint(const CheckpointPlace& place,
                                                 const CheckpointEvaluationOptions& options, const std::string& folder);

}  // namespace troupe::workers
