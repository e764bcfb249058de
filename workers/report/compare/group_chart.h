#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "workers/report/compare/run_group.h"

namespace troupe::workers {

/// Draws the metric that says most, return or loss, of the evaluations or else of training: one curve a group with the
/// band of its seeds (GroupCurve), as PNG. Errors: those of draw_loss_curves.
Result<void> draw_groups(const std::string& path, const std::string& title, const std::vector<RunGroup>& groups);

}  // namespace troupe::workers
