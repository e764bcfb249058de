#pragma once

#include <string>

#include "configs/job_config.h"
#include "placement/plan.h"

namespace troupe::workers {

/// Floating-point operations of one step of a DreamZero that learns in an environment (policy.kind dreamzero): products
/// and attention of the transformer, and the frozen networks that see for it. A multiply-add counts as 2.
struct LearningWork {
  /// of all policy calls: every denoising step, and the present frame
  double acting = 0;
  /// of all passes over their rows: forward, backward, and what `plan` computes again; the reference policy's forward
  double learning = 0;
};

LearningWork learning_work(const JobConfig& job, const Plan& plan);

/// One line of a plan: both, on what they are computed, and which of them a step waits for. That is the one with more
/// operations a core where both are on cores; on cores beside learners on devices it is acting.
std::string work_line(const JobConfig& job, const Plan& plan);

}  // namespace troupe::workers
