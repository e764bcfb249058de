#include "data/sampling/mixture_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "base/random.h"
#include "base/result.h"

namespace troupe::data {

namespace {

constexpr std::uint64_t kPeriod = std::uint64_t{1} << 32;

constexpr std::uint32_t reverse_bits(std::uint32_t x) noexcept {
  x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  x = ((x >> 4) & 0x0F0F0F0Fu) | ((x & 0x0F0F0F0Fu) << 4);
  x = ((x >> 8) & 0x00FF00FFu) | ((x & 0x00FF00FFu) << 8);
  return (x >> 16) | (x << 16);
}

/// Where a position falls on [0, 2^32).
std::uint64_t point(std::uint64_t seed, std::uint64_t position) noexcept {
  return reverse_bits(static_cast<std::uint32_t>(position)) ^
         static_cast<std::uint32_t>(mix64(seed ^ rng_stream::mixture));
}

/// Points below `bound` among r, r + step, r + 2 step, ... below 2^32, where r < step.
std::uint64_t points_below(std::uint64_t bound, std::uint64_t r, unsigned step_bits) noexcept {
  return bound <= r ? 0 : (bound - r + (std::uint64_t{1} << step_bits) - 1) >> step_bits;
}

/// Widths of the intervals: largest remainder over 2^32, at least 1 each.
std::vector<std::uint64_t> widths_of(std::span<const double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::uint64_t> widths(weights.size());
  std::vector<double> remainder(weights.size());
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double exact = weights[i] / total * static_cast<double>(kPeriod);
    widths[i] = static_cast<std::uint64_t>(exact);
    remainder[i] = exact - std::floor(exact);
    if (widths[i] == 0) widths[i] = 1, remainder[i] = 0;
    used += widths[i];
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return remainder[a] > remainder[b]; });
  for (std::size_t i = 0; used < kPeriod; i = (i + 1) % order.size()) ++widths[order[i]], ++used;
  // Intervals that were widened to 1 are paid for by the widest.
  while (used > kPeriod) {
    auto& widest = *std::max_element(widths.begin(), widths.end());
    const std::uint64_t taken = std::min(used - kPeriod, widest - 1);
    widest -= taken;
    used -= taken;
  }
  return widths;
}

}  // namespace

MixtureOrder::MixtureOrder(std::span<const double> weights) : bounds_{0} {
  TROUPE_CHECK(weights.size() < 65536, "a mixture has fewer than 2^16 datasets");
  TROUPE_CHECK(std::all_of(weights.begin(), weights.end(), [](double w) { return w > 0 && std::isfinite(w); }),
               "weights of a mixture are positive");
  if (weights.empty()) {
    bounds_.push_back(kPeriod);
    return;
  }
  for (const std::uint64_t width : widths_of(weights)) bounds_.push_back(bounds_.back() + width);
}

double MixtureOrder::share(std::size_t dataset) const {
  return static_cast<double>(bounds_[dataset + 1] - bounds_[dataset]) / static_cast<double>(kPeriod);
}

std::size_t MixtureOrder::dataset_at(std::uint64_t seed, std::uint64_t position) const {
  const auto above = std::upper_bound(bounds_.begin(), bounds_.end(), point(seed, position));
  return static_cast<std::size_t>(above - bounds_.begin()) - 1;
}

std::uint64_t MixtureOrder::count_before(std::uint64_t seed, std::size_t dataset, std::uint64_t position) const {
  const std::uint64_t low = bounds_[dataset], high = bounds_[dataset + 1];
  std::uint64_t count = position / kPeriod * (high - low);
  const std::uint64_t rest = position % kPeriod;
  // [0, rest) as aligned blocks, the largest first. In a block of 2^k the low bits of the position run over all values,
  // which are the high bits of the point; the other bits of the point are those of the block's start.
  for (unsigned k = 32; k-- > 0;) {
    if (((rest >> k) & 1) == 0) continue;
    const std::uint64_t start = rest >> (k + 1) << (k + 1);
    const unsigned step_bits = 32 - k;
    const std::uint64_t r = point(seed, start) & ((std::uint64_t{1} << step_bits) - 1);
    count += points_below(high, r, step_bits) - points_below(low, r, step_bits);
  }
  return count;
}

MixtureOrder::Draw MixtureOrder::draw(std::uint64_t seed, std::uint64_t position) const {
  const std::size_t dataset = dataset_at(seed, position);
  return {dataset, datasets() == 1 ? position : count_before(seed, dataset, position)};
}

std::uint64_t MixtureOrder::inner_seed(std::uint64_t seed, std::size_t dataset) noexcept {
  return dataset == 0 ? seed : mix64(seed ^ mix64(static_cast<std::uint64_t>(dataset) * 0x9E3779B97F4A7C15ULL));
}

}  // namespace troupe::data
