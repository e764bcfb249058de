#include "data/statistics/statistics.h"

#include <cmath>

namespace troupe::data {

bool FeatureStatistics::is_complete(std::size_t width) const {
  for (const auto* v : {&min, &max, &mean, &std, &q01, &q99}) {
    if (v->size() != width) return false;
    for (double x : *v) {
      if (!std::isfinite(x)) return false;
    }
  }
  return true;
}

std::vector<std::size_t> FeatureStatistics::constant_dimensions() const {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < width(); ++d) {
    if (q01[d] == q99[d]) dims.push_back(d);
  }
  return dims;
}

FeatureStatistics FeatureStatistics::slice(std::size_t begin, std::size_t end) const {
  const auto part = [&](const std::vector<double>& v) {
    if (v.size() < end) return std::vector<double>();
    return std::vector<double>(v.begin() + static_cast<std::ptrdiff_t>(begin),
                               v.begin() + static_cast<std::ptrdiff_t>(end));
  };
  return {.min = part(min),
          .max = part(max),
          .mean = part(mean),
          .std = part(std),
          .q01 = part(q01),
          .q99 = part(q99),
          .q10 = part(q10),
          .q50 = part(q50),
          .q90 = part(q90)};
}

void FeatureStatistics::append(const SeriesSummary& s) {
  min.push_back(s.min);
  max.push_back(s.max);
  mean.push_back(s.mean);
  std.push_back(s.std);
  q01.push_back(s.quantiles[0]);
  q10.push_back(s.quantiles[1]);
  q50.push_back(s.quantiles[2]);
  q90.push_back(s.quantiles[3]);
  q99.push_back(s.quantiles[4]);
}

}  // namespace troupe::data
