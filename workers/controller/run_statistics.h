#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "comm/control/messages.h"
#include "workers/controller/quantile_sketch.h"
#include "workers/controller/run_curve.h"

namespace troupe::workers {

/// What the final report and the progress line say about a run, gathered step by step. Times are metrics of the
/// steps, in seconds: time/step, time/stall, time/compute, time/vote, time/checkpoint (docs/metrics.md). Its memory
/// does not grow with the steps: sums, a sketch of quantiles, and at most RunCurve::kMostPoints points a metric. Pure;
/// not thread-safe.
class RunStatistics {
 public:
  /// A step has `global_batch` samples, or as many as its metric `sample_metric` says.
  explicit RunStatistics(std::int64_t global_batch, std::string sample_metric = {})
      : global_batch_(global_batch), sample_metric_(std::move(sample_metric)) {}

  /// Begins with what earlier attempts of the run recorded up to `step`, metric -> step -> value: curves alone, since
  /// times are those of this attempt.
  void go_on_from(const std::map<std::string, std::map<std::int64_t, double>>& recorded, std::int64_t step);
  /// Adds one point to the curve of each metric. A step with train/applied 0 counts as skipped.
  void add_step(const StepReport& report);
  /// Adds the metrics of an evaluation (eval/...) at its step.
  void add_eval(const EvalReport& report);
  /// The group went back: steps above `step` will be trained again and do not count twice in the curves.
  void roll_back(std::int64_t step);

  using Point = RunCurve::Point;
  /// Mean of the first and of the last `n` training losses that are finite, n at most RunCurve::kFirst; 0 when there
  /// are none.
  double first_mean(std::size_t n) const;
  double last_mean(std::size_t n) const;
  /// Step and value of the lowest finite training loss; 0, 0 without any.
  Point best() const;
  /// Empty for an unknown name.
  const RunCurve& curve(const std::string& name) const;
  const std::map<std::string, RunCurve>& curves() const { return curves_; }

  /// Over all steps: samples / total step time.
  double samples_per_second() const;
  /// Quantile q in [0, 1] of the rates of single steps, to 1 % of itself.
  double samples_per_second_quantile(double q) const;
  /// 100 * sum of per-step maxima over ranks / sum of step times; the next three likewise.
  double stall_percent() const;
  double compute_percent() const;
  double vote_percent() const;
  double checkpoint_percent() const;
  /// Seconds: mean of all steps, and the newest.
  double seconds_per_step() const { return steps() > 0 ? total_ / static_cast<double>(steps()) : 0; }
  std::int64_t steps() const { return rates_.count(); }
  /// Steps whose update was not applied.
  std::int64_t skipped() const { return skipped_; }
  /// The newest value of a metric, of training or evaluation; 0 where it never came.
  double metric(const std::string& name) const;

 private:
  double share(double part) const;
  const std::int64_t global_batch_;
  const std::string sample_metric_;
  std::map<std::string, RunCurve> curves_;
  std::map<std::string, double> last_;
  // Samples per second of single steps.
  QuantileSketch rates_;
  double samples_ = 0, total_ = 0, stall_ = 0, compute_ = 0, vote_ = 0, checkpoint_ = 0;
  std::int64_t skipped_ = 0;
};

}  // namespace troupe::workers
