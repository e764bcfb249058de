#include "data/sampling/mixture_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace troupe::data {

std::vector<double> mixture_weights(const DataConfig& data, std::span<const std::uint64_t> samples) {
  TROUPE_CHECK(!samples.empty(), "a mixture has a dataset");
  std::vector<double> logs;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    double weight = i < data.sets.size() ? data.sets[i].weight : 1.0;
    if (data.mixture.share == "samples") weight *= static_cast<double>(samples[i]);
    logs.push_back(std::log(weight) / data.mixture.temperature);
  }
  const double largest = *std::max_element(logs.begin(), logs.end());
  std::vector<double> weights;
  for (const double log : logs)
    weights.push_back(std::max(std::exp(log - largest), std::numeric_limits<double>::min()));
  return weights;
}

}  // namespace troupe::data
