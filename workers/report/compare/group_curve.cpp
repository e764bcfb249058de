#include "workers/report/compare/group_curve.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "workers/report/compare/seed_statistics.h"

namespace troupe::workers {

namespace {

constexpr std::size_t kStretches = 100;

MetricCurve finite_part(const MetricCurve& curve) {
  MetricCurve out;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    if (!std::isfinite(curve.y[i])) continue;
    out.x.push_back(curve.x[i]);
    out.y.push_back(curve.y[i]);
  }
  return out;
}

/// The curve at `x`, which is inside it, by distance between its neighbours.
double value_at(const MetricCurve& curve, double x) {
  const auto after = std::lower_bound(curve.x.begin(), curve.x.end(), x);
  const auto i = static_cast<std::size_t>(after - curve.x.begin());
  if (*after == x) return curve.y[i];
  const double share = (x - curve.x[i - 1]) / (curve.x[i] - curve.x[i - 1]);
  return curve.y[i - 1] + share * (curve.y[i] - curve.y[i - 1]);
}

/// The curve over (from, to]; nothing outside of it.
std::optional<double> value_over(const MetricCurve& curve, double from, double to) {
  const auto begin = std::upper_bound(curve.x.begin(), curve.x.end(), from),
             end = std::upper_bound(curve.x.begin(), curve.x.end(), to);
  if (begin != end) {
    double sum = 0;
    for (auto at = begin; at != end; ++at) sum += curve.y[static_cast<std::size_t>(at - curve.x.begin())];
    return sum / static_cast<double>(end - begin);
  }
  if (begin == curve.x.begin() || end == curve.x.end()) return std::nullopt;
  return value_at(curve, to);
}

void append(GroupCurve& out, double x, const std::vector<double>& values) {
  if (values.empty()) return;
  // a single seed among others that have ended has no spread to show
  const double middle = interquartile_mean(values);
  const Interval interval = values.size() > 1 ? bootstrap_interval(values) : Interval{middle, middle};
  out.x.push_back(x);
  out.middle.push_back(middle);
  out.low.push_back(interval.low);
  out.high.push_back(interval.high);
}

GroupCurve over_stretches(const std::vector<MetricCurve>& seeds) {
  double low = seeds.front().x.front(), high = seeds.front().x.back();
  for (const MetricCurve& curve : seeds) {
    low = std::min(low, curve.x.front());
    high = std::max(high, curve.x.back());
  }
  GroupCurve out;
  const double width = (high - low) / static_cast<double>(kStretches);
  for (std::size_t i = 0; i < kStretches; ++i) {
    const double from = low + static_cast<double>(i) * width, to = i + 1 == kStretches ? high : from + width;
    std::vector<double> values;
    for (const MetricCurve& curve : seeds) {
      // the first stretch has its lower end, too
      if (const auto value = value_over(curve, i == 0 ? std::nextafter(low, low - 1) : from, to))
        values.push_back(*value);
    }
    append(out, to, values);
  }
  return out;
}

}  // namespace

GroupCurve group_curve(const RunGroup& group, const std::string& metric, bool over_env_steps) {
  std::vector<MetricCurve> seeds;
  for (const ComparedRun& run : group.runs) {
    MetricCurve curve = finite_part(metric_curve(run.metrics, metric, over_env_steps));
    if (!curve.x.empty()) seeds.push_back(std::move(curve));
  }
  if (seeds.empty()) return {};
  if (seeds.size() == 1) return {.x = seeds.front().x, .middle = seeds.front().y};
  const bool is_aligned =
      std::all_of(seeds.begin(), seeds.end(), [&](const MetricCurve& c) { return c.x == seeds.front().x; });
  if (!is_aligned || seeds.front().x.size() > 2 * kStretches) return over_stretches(seeds);
  GroupCurve out;
  for (std::size_t i = 0; i < seeds.front().x.size(); ++i) {
    std::vector<double> values;
    for (const MetricCurve& curve : seeds) values.push_back(curve.y[i]);
    append(out, seeds.front().x[i], values);
  }
  return out;
}

}  // namespace troupe::workers
