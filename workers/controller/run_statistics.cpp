#include "workers/controller/run_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::workers {

namespace {

double mean(const std::vector<RunStatistics::Point>& points, std::size_t begin, std::size_t end) {
  if (begin >= end) return 0;
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += points[i].value;
  return sum / static_cast<double>(end - begin);
}

std::vector<RunStatistics::Point> finite(std::vector<RunStatistics::Point> points) {
  std::erase_if(points, [](const RunStatistics::Point& p) { return !std::isfinite(p.value); });
  return points;
}

}  // namespace

void RunStatistics::go_on_from(const std::map<std::string, std::map<std::int64_t, double>>& recorded,
                               std::int64_t step) {
  for (const auto& [name, values] : recorded) {
    for (const auto& [at, value] : values) {
      if (at <= step) curves_[name].push_back({at, value});
    }
  }
}

void RunStatistics::add_step(const StepReport& report) {
  for (const auto& [name, value] : report.metrics) {
    curves_[name].push_back({report.step, value});
    last_[name] = value;
  }
  const double seconds = metric("time/step");
  step_seconds_.push_back(seconds);
  step_samples_.push_back(sample_metric_.empty() ? static_cast<double>(global_batch_) : metric(sample_metric_));
  total_ += seconds;
  stall_ += metric("time/stall");
  compute_ += metric("time/compute");
  vote_ += metric("time/vote");
  checkpoint_ += metric("time/checkpoint");
  if (metric("train/applied") == 0) ++skipped_;
}

void RunStatistics::add_eval(const EvalReport& report) {
  for (const auto& [name, value] : report.metrics) {
    curves_[name].push_back({report.step, value});
    last_[name] = value;
  }
}

void RunStatistics::roll_back(std::int64_t step) {
  for (auto& [name, points] : curves_) std::erase_if(points, [&](const Point& p) { return p.step > step; });
}

const std::vector<RunStatistics::Point>& RunStatistics::curve(const std::string& name) const {
  static const std::vector<Point> kNone;
  const auto found = curves_.find(name);
  return found == curves_.end() ? kNone : found->second;
}

double RunStatistics::first_mean(std::size_t n) const {
  const auto losses = finite(curve("train/loss"));
  return mean(losses, 0, std::min(n, losses.size()));
}

double RunStatistics::last_mean(std::size_t n) const {
  const auto losses = finite(curve("train/loss"));
  return mean(losses, losses.size() - std::min(n, losses.size()), losses.size());
}

RunStatistics::Point RunStatistics::best() const {
  const auto losses = finite(curve("train/loss"));
  if (losses.empty()) return {};
  return *std::min_element(losses.begin(), losses.end(),
                           [](const Point& a, const Point& b) { return a.value < b.value; });
}

double RunStatistics::samples_per_second() const {
  return total_ > 0 ? std::accumulate(step_samples_.begin(), step_samples_.end(), 0.0) / total_ : 0;
}

double RunStatistics::samples_per_second_quantile(double q) const {
  if (step_seconds_.empty()) return 0;
  std::vector<double> rates;
  for (std::size_t i = 0; i < step_seconds_.size(); ++i)
    rates.push_back(step_seconds_[i] > 0 ? step_samples_[i] / step_seconds_[i] : 0);
  const auto index = static_cast<std::size_t>(std::llround(q * static_cast<double>(rates.size() - 1)));
  std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(index), rates.end());
  return rates[index];
}

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
