#include "model/optim/adamw.h"

#include <ATen/ATen.h>
#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "kernels/threads.h"

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
      adamw_step(span_of(p), span_of(m), span_of(v), span_of(g), 1.0f, adamw_update(1e-2, t, options));
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
  adamw_step(span_of(p), span_of(m), span_of(v), span_of(g), 0.3f, adamw_update(1e-3, 5, {}));
  for (const auto& [begin, count] : {std::pair<std::size_t, std::size_t>{0, 333}, {333, 1}, {334, 666}}) {
    adamw_step(span_of(p2).subspan(begin, count), span_of(m2).subspan(begin, count), span_of(v2).subspan(begin, count),
               span_of(g).subspan(begin, count), 0.3f, adamw_update(1e-3, 5, {}));
  }
  EXPECT_TRUE(at::equal(p, p2) && at::equal(m, m2) && at::equal(v, v2));
}

TEST(AdamWTest, ZeroPaddingStaysZero) {
  std::vector<float> p(64), m(64), v(64), g(64);
  for (std::int64_t t = 1; t <= 3; ++t) adamw_step(p, m, v, g, 0.5f, adamw_update(1e-2, t, {}));
  EXPECT_EQ(p, std::vector<float>(64, 0.0f));
  EXPECT_EQ(m, std::vector<float>(64, 0.0f));
  EXPECT_EQ(v, std::vector<float>(64, 0.0f));
}

TEST(AdamWTest, TheScaleMultipliesTheGradientBeforeTheMoments) {
  std::vector<float> p = {1.0f}, m = {0.0f}, v = {0.0f}, g = {4.0f};
  adamw_step(p, m, v, g, 0.25f, adamw_update(0.1, 1, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0, .weight_decay = 0}));
  EXPECT_EQ(m[0], 0.5f);
  EXPECT_EQ(v[0], 0.25f);
  EXPECT_NEAR(p[0], 0.9f, 1e-7);  // the first update has size lr whatever the gradient
}

/// Parameters and gradients of a run; moments start at zero.
struct Bf16Run {
  std::vector<float> p, g;
  std::vector<simd::Bf16> m, v;
  explicit Bf16Run(std::size_t n) : p(n), g(n), m(n), v(n) {
    CounterRng rng(9, rng_stream::toy_scene, 0);
    for (float& x : p) x = rng.normal();
  }
  void step(std::int64_t t, const AdamWOptions& options) {
    CounterRng rng(9, rng_stream::toy_scene, static_cast<std::uint64_t>(t));
    for (float& x : g) x = rng.normal();
    adamw_step(p, m, v, g, 0.7f, adamw_update(1e-2, t, options));
  }
};

TEST(AdamWTest, Bf16MomentsMatchAScalarReferenceThatRoundsWhatItStores) {
  const AdamWOptions options{.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1};
  Bf16Run run(517);
  auto p = run.p;
  std::vector<c10::BFloat16> m(p.size(), 0.0f), v(p.size(), 0.0f);
  for (std::int64_t t = 1; t <= 20; ++t) {
    run.step(t, options);
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = static_cast<double>(run.g[i]) * static_cast<double>(0.7f);
      const double mi = 0.9 * static_cast<double>(m[i]) + 0.1 * g, vi = 0.99 * static_cast<double>(v[i]) + 0.01 * g * g;
      const double root = std::sqrt(vi / (1 - std::pow(0.99, t))) + 1e-8;
      p[i] = static_cast<float>(p[i] * (1 - 1e-2 * 0.1) - 1e-2 / (1 - std::pow(0.9, t)) * mi / root);
      ASSERT_NEAR(run.p[i], p[i], 2e-6) << t << " " << i;
      // f32 against f64: a value between two of bf16 may fall to either side, rarely
      ASSERT_NEAR(simd::to_float(run.m[i]), static_cast<float>(mi), std::abs(mi) / 255) << t << " " << i;
      ASSERT_NEAR(simd::to_float(run.v[i]), static_cast<float>(vi), vi / 255) << t << " " << i;
      m[i] = std::bit_cast<c10::BFloat16>(run.m[i]);
      v[i] = std::bit_cast<c10::BFloat16>(run.v[i]);
    }
  }
}

TEST(AdamWTest, Bf16RoundsToNearestEven) {
  CounterRng rng(2, rng_stream::toy_scene, 0);
  for (int i = 0; i < 100'000; ++i) {
    std::uint32_t bits = rng.next_u32();
    if (i % 4 == 0) bits = (bits & 0xFFFF0000U) | 0x8000U;  // between two neighbours
    const auto x = std::bit_cast<float>(bits);
    const simd::Bf16 ours = simd::to_bf16(x);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(simd::to_float(ours)));
      continue;
    }
    ASSERT_EQ(ours.bits, c10::BFloat16(x).x) << x;
  }
}

TEST(AdamWTest, NeitherThreadsNorSplitsChangeABitOfBf16Moments) {
  const auto bits_after = [](int threads) {
    set_num_threads(threads);
    Bf16Run run(100'003);
    for (std::int64_t t = 1; t <= 3; ++t) run.step(t, {});
    set_num_threads(0);
    std::vector<std::uint32_t> bits;
    for (std::size_t i = 0; i < run.p.size(); ++i) {
      bits.push_back(std::bit_cast<std::uint32_t>(run.p[i]));
      bits.push_back(std::uint32_t{run.m[i].bits} << 16 | run.v[i].bits);
    }
    return bits;
  };
  const auto one = bits_after(1);
  for (const int threads : {2, 3, 7}) EXPECT_EQ(bits_after(threads), one) << threads;
  Bf16Run whole(1000), parts(1000);
  whole.step(1, {});
  parts.g = whole.g;
  for (const auto& [begin, count] : {std::pair<std::size_t, std::size_t>{0, 333}, {333, 1}, {334, 666}}) {
    const std::size_t from = begin, length = count;
    const auto part = [&](auto& values) { return std::span(values).subspan(from, length); };
    adamw_step(part(parts.p), part(parts.m), part(parts.v), std::span<const float>(part(parts.g)), 0.7f,
               adamw_update(1e-2, 1, {}));
  }
  EXPECT_EQ(whole.p, parts.p);
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

}  // namespace
}  // namespace troupe::model
