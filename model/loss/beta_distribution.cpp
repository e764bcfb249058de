#include "model/loss/beta_distribution.h"

#include <cmath>
#include <limits>

namespace troupe::model {
namespace {

/// The continued fraction of I_x(a, b) (DLMF 8.17.22) by Lentz's method; converges fast for x < (a + 1) / (a + b + 2).
double continued_fraction(double x, double a, double b) {
  constexpr int kMaxTerms = 10'000;  // a few times sqrt(max(a, b)) are needed; the configuration's bound is 1e3
  constexpr double kTiny = std::numeric_limits<double>::min() / std::numeric_limits<double>::epsilon();
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1.0, d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)), fraction = d;
  for (int m = 1; m < kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 0;
    for (const double term : {even, odd}) {
      d = 1.0 / away_from_zero(1.0 + term * d);
      c = away_from_zero(1.0 + term / c);
      change = c * d;
      fraction *= change;
    }
    if (std::abs(change - 1.0) <= 2 * std::numeric_limits<double>::epsilon()) break;
  }
  return fraction;
}

}  // namespace

double beta_cdf(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  // the fraction converges on one side of the mean; the other follows from I_x(a, b) = 1 - I_(1-x)(b, a)
  if (x < (a + 1.0) / (a + b + 2.0)) return front * continued_fraction(x, a, b) / a;
  return 1.0 - front * continued_fraction(1.0 - x, b, a) / b;
}

double beta_quantile(double u, double a, double b) {
  if (b == 1.0) return std::pow(u, 1.0 / a);
  if (a == 1.0) return -std::expm1(std::log1p(-u) / b);
  double low = 0, high = 1;
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return middle;
    (beta_cdf(middle, a, b) < u ? low : high) = middle;
  }
}

}  // namespace troupe::model
