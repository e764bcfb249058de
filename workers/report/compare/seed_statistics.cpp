#include "workers/report/compare/seed_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace troupe::workers {

namespace {

constexpr std::size_t kDraws = 2000;

double middle_mean(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const auto cut = static_cast<std::ptrdiff_t>(values.size() / 4);
  const auto begin = values.begin() + cut, end = values.end() - cut;
  return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

/// Between neighbours by their distance.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1), below = std::floor(at);
  const auto i = static_cast<std::size_t>(below);
  const double low = sorted[i], high = sorted[std::min(i + 1, sorted.size() - 1)];
  return low + (at - below) * (high - low);
}

}  // namespace

double interquartile_mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> copy(values.begin(), values.end());
  return middle_mean(copy);
}

Interval bootstrap_interval(std::span<const double> values) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (values.size() < 2) return {-kInfinity, kInfinity};
  CounterRng random(0, rng_stream::bootstrap, 0);
  std::vector<double> means(kDraws), draw(values.size());
  for (double& mean : means) {
    for (double& value : draw) value = values[random.below(static_cast<std::uint32_t>(values.size()))];
    mean = middle_mean(draw);
  }
  std::sort(means.begin(), means.end());
  return {quantile(means, 0.025), quantile(means, 0.975)};
}

}  // namespace troupe::workers
