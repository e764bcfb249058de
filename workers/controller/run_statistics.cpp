#include "workers/controller/run_statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe::workers {

namespace {

double mean(const std::vector<RunStatistics::Point>& points, std::size_t begin, std::size_t end) {
  if (begin >= end) return 0;
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += points[i].value;
  return sum / static_cast<double>(end - begin);
}

}  // namespace

void RunStatistics::go_on_from(const std::map<std::string, std::map<std::int64_t, double>>& recorded,
                               std::int64_t step) {
  for (const auto& [name, values] : recorded) {
    for (const auto& [at, value] : values) {
      if (at <= step) curves_[name].add({at, value});
    }
  }
}

void RunStatistics::add_step(const StepReport& report) {
  for (const auto& [name, value] : report.metrics) {
    curves_[name].add({report.step, value});
    last_[name] = value;
  }
  const double seconds = metric("time/step");
  const double samples = sample_metric_.empty() ? static_cast<double>(global_batch_) : metric(sample_metric_);
  rates_.add(seconds > 0 ? samples / seconds : 0);
  samples_ += samples;
  total_ += seconds;
  stall_ += metric("time/stall");
  compute_ += metric("time/compute");
  vote_ += metric("time/vote");
  checkpoint_ += metric("time/checkpoint");
  if (metric("train/applied") == 0) ++skipped_;
}

void RunStatistics::add_eval(const EvalReport& report) {
  for (const auto& [name, value] : report.metrics) {
    curves_[name].add({report.step, value});
    last_[name] = value;
  }
}

void RunStatistics::roll_back(std::int64_t step) {
  for (auto& [name, curve] : curves_) curve.roll_back(step);
}

const RunCurve& RunStatistics::curve(const std::string& name) const {
  static const RunCurve kNone;
  const auto found = curves_.find(name);
  return found == curves_.end() ? kNone : found->second;
}

double RunStatistics::first_mean(std::size_t n) const {
  const auto& losses = curve("train/loss").first();
  return mean(losses, 0, std::min(n, losses.size()));
}

double RunStatistics::last_mean(std::size_t n) const {
  const auto& recent = curve("train/loss").recent();
  std::vector<Point> losses;
  for (auto point = recent.rbegin(); point != recent.rend() && losses.size() < n; ++point) {
    if (std::isfinite(point->value)) losses.push_back(*point);
  }
  return mean(losses, 0, losses.size());
}

RunStatistics::Point RunStatistics::best() const { return curve("train/loss").lowest().value_or(Point{}); }

double RunStatistics::samples_per_second() const { return total_ > 0 ? samples_ / total_ : 0; }

double RunStatistics::samples_per_second_quantile(double q) const { return rates_.quantile(q); }

double RunStatistics::share(double part) const { return total_ > 0 ? 100.0 * part / total_ : 0; }
double RunStatistics::stall_percent() const { return share(stall_); }
double RunStatistics::compute_percent() const { return share(compute_); }
double RunStatistics::vote_percent() const { return share(vote_); }
double RunStatistics::checkpoint_percent() const { return share(checkpoint_); }

double RunStatistics::metric(const std::string& name) const {
  const auto found = last_.find(name);
  return found == last_.end() ? 0 : found->second;
}

}  // namespace troupe::workers
