#include "workers/report/paired_test.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace troupe::workers {

namespace {

constexpr double kZ = 1.959963984540054;  // 97.5 % of the normal distribution
constexpr std::size_t kExactDifferences = 200;

/// Ranks of |differences|, doubled, so that the mean of two neighbouring ranks is whole.
std::vector<std::int64_t> doubled_ranks(const std::vector<double>& differences) {
  std::vector<std::size_t> order(differences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](std::size_t i) { return std::abs(differences[i]); };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size(a) < size(b); });
  std::vector<std::int64_t> ranks(differences.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && size(order[end]) == size(order[begin])) ++end;
    // ranks begin + 1 to end
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<std::int64_t>(begin + 1 + end);
    begin = end;
  }
  return ranks;
}

/// Two-sided, over all choices of signs.
double exact_p(const std::vector<std::int64_t>& ranks, std::int64_t sum) {
  const std::int64_t total = std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0});
  std::vector<double> probability(static_cast<std::size_t>(total) + 1, 0.0);  // of each sum of positive ranks
  probability[0] = 1;
  std::int64_t reached = 0;
  for (const std::int64_t rank : ranks) {
    reached += rank;
    for (std::int64_t s = reached; s >= 0; --s) {
      const double without = probability[static_cast<std::size_t>(s)];
      const double with = s >= rank ? probability[static_cast<std::size_t>(s - rank)] : 0;
      probability[static_cast<std::size_t>(s)] = 0.5 * (without + with);
    }
  }
  const auto at = probability.begin() + sum;
  const double low = std::accumulate(probability.begin(), at + 1, 0.0),
               high = std::accumulate(at, probability.end(), 0.0);
  return std::min(1.0, 2 * std::min(low, high));
}

double normal_p(const std::vector<std::int64_t>& ranks, double rank_sum) {
  double mean = 0, variance = 0;
  for (const std::int64_t doubled : ranks) {
    const double rank = static_cast<double>(doubled) / 2;
    mean += rank / 2;
    variance += rank * rank / 4;
  }
  const double distance = std::max(0.0, std::abs(rank_sum - mean) - 0.5);
  return std::erfc(distance / std::sqrt(2 * variance));
}

double student_quantile(std::int64_t freedom) {
  constexpr std::array<double, 4> kFew = {12.706205, 4.302653, 3.182446, 2.776445};
  if (freedom <= 4) return kFew[static_cast<std::size_t>(freedom - 1)];
  const double z = kZ, z2 = z * z, v = static_cast<double>(freedom);
  const double g1 = z * (z2 + 1) / 4;
  const double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
  const double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
  const double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
  return z + (g1 + (g2 + (g3 + g4 / v) / v) / v) / v;
}

}  // namespace

double mcnemar_exact(std::int64_t only_first, std::int64_t only_second) {
  const std::int64_t n = only_first + only_second, fewer = std::min(only_first, only_second);
  const auto x = static_cast<double>(n);
  double tail = 0;
  for (std::int64_t k = 0; k <= fewer; ++k) {
    const auto i = static_cast<double>(k);
    tail += std::exp(std::lgamma(x + 1) - std::lgamma(i + 1) - std::lgamma(x - i + 1) - x * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

Interval paired_difference_interval(const PairedSuccesses& counts) {
  if (counts.pairs() <= 0) return {-1, 1};
  const double n = static_cast<double>(counts.pairs()) + 2;
  const double p = (static_cast<double>(counts.only_first) + 1) / n,
               q = (static_cast<double>(counts.only_second) + 1) / n;
  const double half = kZ * std::sqrt((p + q - (p - q) * (p - q)) / n);
  return {std::max(-1.0, p - q - half), std::min(1.0, p - q + half)};
}

SignedRankTest signed_rank_test(std::span<const double> differences) {
  std::vector<double> nonzero;
  std::copy_if(differences.begin(), differences.end(), std::back_inserter(nonzero), [](double d) { return d != 0; });
  SignedRankTest test{.rank_sum = 0,
                      .p = 1,
                      .pairs = static_cast<std::int64_t>(nonzero.size()),
                      .exact = nonzero.size() <= kExactDifferences};
  if (nonzero.empty()) return test;
  const std::vector<std::int64_t> ranks = doubled_ranks(nonzero);
  std::int64_t positive = 0;
  for (std::size_t i = 0; i < nonzero.size(); ++i) positive += nonzero[i] > 0 ? ranks[i] : 0;
  test.rank_sum = static_cast<double>(positive) / 2;
  test.p = test.exact ? exact_p(ranks, positive) : normal_p(ranks, test.rank_sum);
  return test;
}

MeanInterval mean_interval(std::span<const double> values) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(values.size());
  MeanInterval out{.mean = 0, .interval = {-kInfinity, kInfinity}};
  if (values.empty()) return out;
  for (const double value : values) out.mean += value / n;
  if (values.size() < 2) return out;
  double squares = 0;
  for (const double value : values) squares += (value - out.mean) * (value - out.mean);
  const double half = student_quantile(static_cast<std::int64_t>(values.size()) - 1) * std::sqrt(squares / (n - 1) / n);
  out.interval = {out.mean - half, out.mean + half};
  return out;
}

}  // namespace troupe::workers
