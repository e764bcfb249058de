#include "model/loss/beta_distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace troupe::model {
namespace {

TEST(BetaDistributionTest, TheCdfHasItsClosedForms) {
  for (const double x : {1e-6, 0.01, 0.2, 0.5, 0.77, 0.999}) {
    EXPECT_NEAR(beta_cdf(x, 3, 1), std::pow(x, 3), 1e-13) << x;
    EXPECT_NEAR(beta_cdf(x, 1, 4), 1 - std::pow(1 - x, 4), 1e-13) << x;
    EXPECT_NEAR(beta_cdf(x, 2, 3), x * x * (6 - 8 * x + 3 * x * x), 1e-13) << x;
    EXPECT_NEAR(beta_cdf(x, 0.5, 0.5), 2 / std::numbers::pi * std::asin(std::sqrt(x)), 1e-12) << x;
  }
  EXPECT_EQ(beta_cdf(0, 2, 3), 0);
  EXPECT_EQ(beta_cdf(1, 2, 3), 1);
}

TEST(BetaDistributionTest, LargeParametersStillConverge) {
  // symmetric about one half; the variance of Beta(a, a) is 1 / (4 (2a + 1))
  EXPECT_NEAR(beta_cdf(0.5, 1000, 1000), 0.5, 1e-11);
  const double deviation = 0.5 / std::sqrt(2001.0);
  EXPECT_NEAR(beta_cdf(0.5 + deviation, 1000, 1000), 0.8413, 1e-3);
}

TEST(BetaDistributionTest, TheQuantileInvertsTheCdf) {
  struct Parameters {
    double a, b;
  };
  for (const auto& [a, b] : {Parameters{3, 1}, {1, 4}, {1.5, 2.5}, {0.3, 0.7}, {40, 3}, {1000, 800}}) {
    double before = 0;
    for (const double u : {1e-4, 0.1, 0.37, 0.5, 0.9, 0.9999}) {
      const double x = beta_quantile(u, a, b);
      EXPECT_NEAR(beta_cdf(x, a, b), u, 1e-10) << a << " " << b;
      EXPECT_GE(x, before);
      before = x;
    }
  }
}

TEST(BetaDistributionTest, BisectionAgreesWithTheClosedForm) {
  for (const double u : {0.001, 0.3, 0.8}) {
    EXPECT_NEAR(beta_quantile(u, 3, 1 + 1e-12), beta_quantile(u, 3, 1), 1e-9);
    EXPECT_NEAR(beta_quantile(u, 1 + 1e-12, 3), beta_quantile(u, 1, 3), 1e-9);
  }
}

}  // namespace
}  // namespace troupe::model
