#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "workers/inference/evaluate/open_loop.h"
#include "workers/inference/policy/policy_options.h"

namespace troupe::workers {

/// What was evaluated, for the report. Nothing of time or host goes in: equal evaluations give equal files.
struct OpenLoopSubject {
  std::string checkpoint, dataset, embodiment;
  /// How the policy ran: "steps" -> 16
  std::map<std::string, OptionValue> options;
};

/// The text of eval.json (docs/evaluation.md). A mean of no value is null.
std::string open_loop_json(const OpenLoopResult& result, const OpenLoopSubject& subject);

/// A table for people: one line per dimension, then the whole.
std::string open_loop_table(const OpenLoopResult& result);

/// Draws recorded and predicted actions of up to three windows, spread evenly over those evaluated, as PNG.
/// Errors: those of draw_actions.
Result<void> draw_open_loop(const std::string& path, const OpenLoopResult& result, const OpenLoopSubject& subject);

}  // namespace troupe::workers
