#include "workers/controller/run_statistics.h"

#include <algorithm>
#include <numeric>

namespace troupe {

namespace {

double mean(const std::vector<RunStatistics::Point>& points, std::size_t begin, std::size_t end) {
  if (begin >= end) return 0;
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += points[i].value;
  return sum / static_cast<double>(end - begin);
}

}  // namespace

void RunStatistics::add_step(const StepReport& report) {
  for (const auto& [name, value] : report.metrics) {
    curves_[name].push_back({report.step, value});
    last_[name] = value;
  }
  const double seconds = metric("time/step");
  step_seconds_.push_back(seconds);
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
  const auto& losses = curve("train/loss");
  return mean(losses, 0, std::min(n, losses.size()));
}

double RunStatistics::last_mean(std::size_t n) const {
  const auto& losses = curve("train/loss");
  return mean(losses, losses.size() - std::min(n, losses.size()), losses.size());
}

RunStatistics::Point RunStatistics::best() const {
  const auto& losses = curve("train/loss");
  if (losses.empty()) return {};
  return *std::min_element(losses.begin(), losses.end(), [](const Point& a, const Point& b) { return a.value < b.value; });
}

double RunStatistics::samples_per_second() const {
  return total_ > 0 ? static_cast<double>(global_batch_) * static_cast<double>(step_seconds_.size()) / total_ : 0;
}

double RunStatistics::samples_per_second_quantile(double q) const {
  if (step_seconds_.empty()) return 0;
  // A high rate is a short step: the q-quantile of the rate is the (1-q)-quantile of the times.
  std::vector<double> times = step_seconds_;
  const auto index = static_cast<std::size_t>((1.0 - q) * static_cast<double>(times.size() - 1) + 0.5);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(index), times.end());
  return times[index] > 0 ? static_cast<double>(global_batch_) / times[index] : 0;
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

}  // namespace troupe
