#pragma once

#include <cstdint>
#include <span>

#include "workers/report/rl_report.h"

namespace troupe::workers {

/// Two policies on the same tasks, by whether each succeeded.
struct PairedSuccesses {
  std::int64_t both = 0, only_first = 0, only_second = 0, neither = 0;

  std::int64_t pairs() const { return both + only_first + only_second + neither; }
  std::int64_t first() const { return both + only_first; }
  std::int64_t second() const { return both + only_second; }
};

/// McNemar's exact test: the probability, were both policies equally good, of discordant pairs at least this uneven. Of
/// n = only_first + only_second pairs, min(1, 2 P(X <= min(only_first, only_second))) with X ~ Binomial(n, 1/2); 1
/// for n = 0.
/// Source: McNemar (1947), Psychometrika 12, 153; the exact form as in Fagerland, Lydersen, Laake (2013), BMC Medical
/// Research Methodology 13:91.
double mcnemar_exact(std::int64_t only_first, std::int64_t only_second);

/// 95 % interval of the difference of success rates, first minus second: with p = (only_first + 1) / (n + 2) and
/// q = (only_second + 1) / (n + 2) of n pairs, p - q +- z sqrt((p + q - (p - q)^2) / (n + 2)), cut to [-1, 1]. {-1,
/// 1} for n = 0.
/// Source: Bonett, Price (2012), Journal of Educational and Behavioral Statistics 37, 479.
Interval paired_difference_interval(const PairedSuccesses& counts);

/// Result of signed_rank_test.
struct SignedRankTest {
  /// W+: ranks of the positive differences.
  double rank_sum = 0;
  /// two-sided.
  double p = 1;
  /// Differences that are not zero.
  std::int64_t pairs = 0;
  /// False: normal approximation.
  bool exact = true;
};

/// Wilcoxon's signed-rank test that differences are symmetric around zero. Zeros are left out, ties have the mean of
/// their ranks. Up to 200 differences p is exact: 2 min(P(W+ <= w), P(W+ >= w)), at most 1, over all 2^n choices of
/// signs for these very ranks (so it holds with ties); above, normal with variance sum(rank^2) / 4 and a continuity
/// correction of 1/2.
/// Source: Wilcoxon (1945), Biometrics Bulletin 1, 80; Hollander, Wolfe, Chicken (2014), Nonparametric Statistical
/// Methods, 3.1.
SignedRankTest signed_rank_test(std::span<const double> differences);

/// A mean and its 95 % interval.
struct MeanInterval {
  double mean = 0;
  /// Mean -+ infinity for fewer than two numbers.
  Interval interval{};
};

/// Student's interval: mean +- t sqrt(s^2 / n), t the 97.5 % quantile at n - 1 degrees of freedom (Abramowitz, Stegun
/// (1964) 26.7.5 from five degrees on, off by less than 0.0005).
MeanInterval mean_interval(std::span<const double> values);

}  // namespace troupe::workers
