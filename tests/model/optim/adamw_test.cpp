#include "model/optim/adamw.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace troupe::model {
namespace {

std::span<float> span_of(const at::Tensor& t) { return {t.data_ptr<float>(), static_cast<std::size_t>(t.numel())}; }

/// Both sides round each of about ten f32 operations, in slightly different groupings.
constexpr double kRoundingTolerance = 4e-7;

TEST(AdamWTest, MatchesLibTorchsFusedAdamWOverTenSteps) {
  const AdamWOptions options{.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1};
  at::manual_seed(3);
  for (const std::int64_t n : {1, 7, 64, 1031}) {
    auto p = at::randn({n}), m = at::zeros({n}), v = at::zeros({n});
    auto p_ref = p.clone(), m_ref = m.clone(), v_ref = v.clone(), step = at::zeros({});
    for (std::int64_t t = 1; t <= 10; ++t) {
      const auto g = at::randn({n});
      adamw_step(span_of(p), span_of(m), span_of(v), span_of(g), 1.0f, 1e-2, t, options);
      step.add_(1);
      at::_fused_adamw_({p_ref}, {g.clone()}, {m_ref}, {v_ref}, {}, {step}, 1e-2, options.beta1, options.beta2,
                        options.weight_decay, options.eps, false, false);
    }
    EXPECT_LT((p - p_ref).abs().max().item<double>(), kRoundingTolerance) << n;
    EXPECT_LT((m - m_ref).abs().max().item<double>(), kRoundingTolerance) << n;
    EXPECT_LT((v - v_ref).abs().max().item<double>(), kRoundingTolerance) << n;
  }
}

TEST(AdamWTest, ASplitOfTheParametersGivesTheSameBits) {
  at::manual_seed(4);
  const auto p = at::randn({1000}), m = at::randn({1000}), v = at::rand({1000}), g = at::randn({1000});
  const auto p2 = p.clone(), m2 = m.clone(), v2 = v.clone();
  adamw_step(span_of(p), span_of(m), span_of(v), span_of(g), 0.3f, 1e-3, 5, {});
  for (const auto& [begin, count] : {std::pair<std::size_t, std::size_t>{0, 333}, {333, 1}, {334, 666}}) {
    adamw_step(span_of(p2).subspan(begin, count), span_of(m2).subspan(begin, count), span_of(v2).subspan(begin, count),
               span_of(g).subspan(begin, count), 0.3f, 1e-3, 5, {});
  }
  EXPECT_TRUE(at::equal(p, p2) && at::equal(m, m2) && at::equal(v, v2));
}

TEST(AdamWTest, ZeroPaddingStaysZero) {
  std::vector<float> p(64), m(64), v(64), g(64);
  for (std::int64_t t = 1; t <= 3; ++t) adamw_step(p, m, v, g, 0.5f, 1e-2, t, {});
  EXPECT_EQ(p, std::vector<float>(64, 0.0f));
  EXPECT_EQ(m, std::vector<float>(64, 0.0f));
  EXPECT_EQ(v, std::vector<float>(64, 0.0f));
}

TEST(AdamWTest, TheScaleMultipliesTheGradientBeforeTheMoments) {
  std::vector<float> p = {1.0f}, m = {0.0f}, v = {0.0f}, g = {4.0f};
  adamw_step(p, m, v, g, 0.25f, 0.1, 1, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0, .weight_decay = 0});
  EXPECT_EQ(m[0], 0.5f);
  EXPECT_EQ(v[0], 0.25f);
  EXPECT_NEAR(p[0], 0.9f, 1e-7);  // the first update has size lr whatever the gradient
}

TEST(SumOfSquaresTest, MatchesDoubleArithmetic) {
  at::manual_seed(5);
  for (const std::int64_t n : {0, 1, 9, 1024, 5003}) {
    const auto x = at::randn({n});
    EXPECT_NEAR(sum_of_squares(span_of(x)), x.to(at::kDouble).square().sum().item<double>(),
                1e-9 * static_cast<double>(n + 1));
  }
}

TEST(SumOfSquaresTest, ANonFiniteElementShows) {
  std::vector<float> x(3000, 1.0f);
  x[2999] = std::nanf("");
  EXPECT_TRUE(std::isnan(sum_of_squares(x)));
  x[2999] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(sum_of_squares(x)));
}

TEST(ClipFactorTest, ScalesLongGradientsOnly) {
  EXPECT_EQ(clip_factor(0.5, 1.0), 1.0f);
  EXPECT_EQ(clip_factor(1e9, 0.0), 1.0f);
  EXPECT_FLOAT_EQ(clip_factor(4.0, 1.0), 0.25f);
}

}  // namespace
}  // namespace troupe::model
