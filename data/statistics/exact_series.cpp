#include "data/statistics/exact_series.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace troupe::data {

namespace {

constexpr std::uint64_t kSign64 = std::uint64_t{1} << 63;
constexpr std::uint32_t kSign32 = std::uint32_t{1} << 31;

/// Least shift with (high - low) >> shift below the number of bins.
int shift_for(std::uint64_t low, std::uint64_t high) {
  const auto bits = static_cast<int>(std::bit_width(high - low));
  return std::max(0, bits - static_cast<int>(std::bit_width(ExactSeries::kBins - 1)));
}

struct Position {
  std::int64_t low = 0;
  double fraction = 0;
};

/// Where the quantile p of n values lies: between ranks low and low + 1.
Position position_of(double p, std::int64_t n) {
  const double position = p * static_cast<double>(n - 1);
  return {static_cast<std::int64_t>(std::floor(position)), position - std::floor(position)};
}

}  // namespace

std::uint64_t ExactSeries::key_of(double value) const {
  if (narrow_) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value) + 0.0f);
    return (bits & kSign32) != 0 ? static_cast<std::uint32_t>(~bits) : bits | kSign32;
  }
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
  return (bits & kSign64) != 0 ? ~bits : bits | kSign64;
}

double ExactSeries::value_of(std::uint64_t key) const {
  if (narrow_) {
    const auto k = static_cast<std::uint32_t>(key);
    return static_cast<double>(std::bit_cast<float>((k & kSign32) != 0 ? k & ~kSign32 : ~k));
  }
  return std::bit_cast<double>((key & kSign64) != 0 ? key & ~kSign64 : ~key);
}

void ExactSeries::reserve(std::int64_t values) {
  if (!keep_) return;
  if (narrow_) {
    kept_narrow_.reserve(static_cast<std::size_t>(values));
  } else {
    kept_.reserve(static_cast<std::size_t>(values));
  }
}

void ExactSeries::add(std::span<const double> values) {
  if (values.empty()) return;
  if (first_) {
    add_moments(values);
  } else {
    count(values);
  }
}

void ExactSeries::add_moments(std::span<const double> values) {
  const auto rounded = [this](double v) {
    return narrow_ ? static_cast<double>(static_cast<float>(v)) + 0.0 : v + 0.0;
  };
  double low = rounded(values[0]), high = low, sum = 0;
  for (double v : values) {
    const double x = rounded(v);
    low = std::min(low, x);
    high = std::max(high, x);
    sum += x;
    if (!keep_) continue;
    if (narrow_) {
      kept_narrow_.push_back(static_cast<float>(x));
    } else {
      kept_.push_back(x);
    }
  }
  const auto n = static_cast<double>(values.size());
  const double mean = sum / n;
  double squares = 0;
  for (double v : values) squares += (rounded(v) - mean) * (rounded(v) - mean);
  if (summary_.count == 0) {
    summary_ = {.count = static_cast<std::int64_t>(values.size()), .min = low, .max = high, .mean = mean};
    squares_ = squares;
    return;
  }
  const auto before = static_cast<double>(summary_.count);
  const double delta = mean - summary_.mean;
  summary_.mean += delta * (n / (before + n));
  squares_ += squares + delta * delta * (before * n / (before + n));
  summary_.count += static_cast<std::int64_t>(values.size());
  summary_.min = std::min(summary_.min, low);
  summary_.max = std::max(summary_.max, high);
}

void ExactSeries::count(std::span<const double> values) {
  for (double v : values) {
    const std::uint64_t key = key_of(v);
    for (Bracket& b : brackets_) {
      if (key < b.low || key > b.high) continue;
      ++b.counts[static_cast<std::size_t>((key - b.low) >> b.shift)];
      break;  // brackets do not overlap
    }
  }
}

void ExactSeries::end_pass() {
  if (first_) {
    first_ = false;
    finish_first_pass();
  } else {
    narrow_brackets();
  }
  if (!done_ && std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.known; })) finish_quantiles();
}

void ExactSeries::finish_first_pass() {
  if (summary_.count == 0) {
    done_ = true;
    return;
  }
  if (summary_.min == summary_.max) {  // no rounding of the mean where there is nothing to average
    summary_.mean = summary_.min;
    squares_ = 0;
  }
  summary_.std = std::sqrt(squares_ / static_cast<double>(summary_.count));
  for (double p : SeriesSummary::kQuantiles) {
    const Position at = position_of(p, summary_.count);
    ranks_.push_back({.rank = at.low});
    if (at.fraction > 0) ranks_.push_back({.rank = at.low + 1});
  }
  std::sort(ranks_.begin(), ranks_.end(), [](const Rank& a, const Rank& b) { return a.rank < b.rank; });
  ranks_.erase(std::unique(ranks_.begin(), ranks_.end(), [](const Rank& a, const Rank& b) { return a.rank == b.rank; }),
               ranks_.end());
  if (keep_) {
    if (narrow_) {
      select(kept_narrow_);
    } else {
      select(kept_);
    }
    return;
  }
  (void)bracket_at(key_of(summary_.min), key_of(summary_.max), 0, brackets_);
}

/// The order statistics of values that were kept; releases them.
template <class T>
void ExactSeries::select(std::vector<T>& values) {
  auto from = values.begin();
  for (Rank& rank : ranks_) {
    const auto nth = values.begin() + static_cast<std::ptrdiff_t>(rank.rank);
    std::nth_element(from, nth, values.end());
    rank.value = static_cast<double>(*nth);
    rank.known = true;
    from = nth;
  }
  values = {};
}

/// The bracket [low, high] among `brackets`, made when it is not there.
std::size_t ExactSeries::bracket_at(std::uint64_t low, std::uint64_t high, std::int64_t below,
                                    std::vector<Bracket>& brackets) const {
  for (std::size_t i = 0; i < brackets.size(); ++i) {
    if (brackets[i].low == low) return i;
  }
  const int shift = shift_for(low, high);
  brackets.push_back(
      {low, high, below, shift, std::vector<std::int64_t>(static_cast<std::size_t>((high - low) >> shift) + 1)});
  return brackets.size() - 1;
}

void ExactSeries::narrow_brackets() {
  std::vector<Bracket> next;
  for (Rank& rank : ranks_) {
    if (rank.known) continue;
    const Bracket& b = brackets_[rank.bracket];
    std::int64_t below = b.below;
    std::size_t bin = 0;
    while (below + b.counts[bin] <= rank.rank) below += b.counts[bin++];
    const std::uint64_t low = b.low + (static_cast<std::uint64_t>(bin) << b.shift);
    if (b.shift == 0) {
      rank.known = true;
      rank.value = value_of(low);
      continue;
    }
    const std::uint64_t high = std::min(b.high, low + ((std::uint64_t{1} << b.shift) - 1));
    rank.bracket = bracket_at(low, high, below, next);
  }
  brackets_ = std::move(next);
}

void ExactSeries::finish_quantiles() {
  const auto value_at = [this](std::int64_t rank) {
    return std::lower_bound(ranks_.begin(), ranks_.end(), rank,
                            [](const Rank& r, std::int64_t v) { return r.rank < v; })
        ->value;
  };
  for (std::size_t i = 0; i < SeriesSummary::kQuantiles.size(); ++i) {
    const Position at = position_of(SeriesSummary::kQuantiles[i], summary_.count);
    const double a = value_at(at.low);
    summary_.quantiles[i] = a;
    if (at.fraction == 0) continue;
    const double b = value_at(at.low + 1);
    // From the nearer end, so that the result never leaves [a, b].
    summary_.quantiles[i] = at.fraction < 0.5 ? a + (b - a) * at.fraction : b - (b - a) * (1.0 - at.fraction);
  }
  done_ = true;
  brackets_ = {};
  ranks_ = {};
}

}  // namespace troupe::data
