#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "comm/control/messages.h"
#include "configs/job_config.h"

namespace troupe::workers {

/// What the controller knows of the evaluations that an evaluator makes beside training: which count, how many were
/// left out, and how long the last one is waited for. Pure; not thread-safe.
///
/// An evaluation counts if what training goes on with has the step that it played: no group has formed below that step
/// since the weights were made.
class EvaluationWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `job` outlives it. Fences are those of one controller.
  explicit EvaluationWatch(const JobConfig& job) : job_(job) {}

  /// Evaluations up to `step` were made, or left out, by an earlier start of the run.
  void resume_from(std::int64_t step) { newest_ = step; }
  /// A group begins at a checkpoint; fences ascend. Later steps are trained again, and their evaluations are due again.
  void group_formed(std::uint64_t fence, std::int64_t resume_step);
  bool counts(std::uint64_t fence, std::int64_t step) const;
  /// An evaluation was begun, or taken up again by a new process. True: the death of the process before is blamed on
  /// the environment and not counted as a restart; so are at most kMostEvaluationStarts deaths of one evaluation.
  bool begun(const EvalBegun& begun);
  /// Completes the report of an evaluation that counts: adds kSkippedEvaluations, the number of evaluations that were
  /// due since the one before and were not made.
  EvalReport ended(EvalReport report);
  /// No evaluation of the last step has counted, and none was given up.
  bool owes_last() const { return !has_last_; }
  /// The evaluator has not begun the last step's, so that it needs the weights from the learners.
  bool needs_weights() const { return !has_begun_last_; }

  /// All is trained: the last evaluation is waited for from the first call on.
  void await(TimePoint now);
  bool is_awaited() const { return awaited_since_.has_value(); }
  /// The last step's checkpoint cannot be read: it is trained again.
  void await_no_longer() { awaited_since_.reset(); }
  /// It is waited for longer than eval.timeout_s.
  bool is_overdue(TimePoint now) const;
  /// It is not waited for any more: a report that counts every episode of it as lost.
  EvalReport give_up_last(std::uint64_t fence);

 private:
  const JobConfig& job_;
  /// Steps that groups began at, by fence: since each of them, the least of it and of all later ones.
  std::map<std::uint64_t, std::int64_t> least_since_;
  /// Of evaluations that counted.
  std::int64_t newest_ = 0;
  bool has_last_ = false, has_begun_last_ = false;
  std::optional<TimePoint> awaited_since_;
  /// Fence and step of the newest that was begun, and by how many processes.
  std::pair<std::uint64_t, std::int64_t> begun_;
  std::int64_t starts_ = 0;
};

}  // namespace troupe::workers
