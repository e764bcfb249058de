#include "model/optim/sophia.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "kernels/threads.h"

namespace troupe::model {
namespace {

std::vector<float> normals(std::size_t n, std::uint64_t position, double scale = 1) {
  std::vector<float> values(n);
  CounterRng rng(21, rng_stream::toy_scene, position);
  for (float& x : values) x = static_cast<float>(scale) * rng.normal();
  return values;
}

TEST(SophiaTest, ThirtyStepsMatchAScalarReferenceInF64) {
  const SophiaOptions options{.beta1 = 0.9, .beta2 = 0.95, .rho = 0.5, .weight_decay = 0.1};
  constexpr std::size_t kElements = 1031;
  constexpr double kLr = 1e-2, kFactor = 4, kClip = 0.5;
  auto p = normals(kElements, 0, 0.3);
  std::vector<float> m(kElements), h(kElements);
  std::vector<double> p_want(p.begin(), p.end()), m_want(kElements), h_want(kElements);
  std::int64_t whole = 0;
  double whole_want = 0, sum = 0;
  for (std::uint64_t t = 0; t < 30; ++t) {
    const auto g = normals(kElements, 2 * t + 1), label_g = normals(kElements, 2 * t + 2, 0.5);
    if (t % 10 == 0) {
      sum = refresh_curvature(h, label_g, kFactor, options.beta2);
      double sum_want = 0;
      for (std::size_t i = 0; i < kElements; ++i) {
        h_want[i] =
            0.95 * h_want[i] + 0.05 * kFactor * static_cast<double>(label_g[i]) * static_cast<double>(label_g[i]);
        sum_want += h_want[i];
      }
      EXPECT_NEAR(sum, sum_want, 1e-6 * sum_want);
    }
    whole += sophia_step(p, m, h, g, static_cast<float>(kClip), kLr, options);
    for (std::size_t i = 0; i < kElements; ++i) {
      m_want[i] = 0.9 * m_want[i] + 0.1 * kClip * static_cast<double>(g[i]);
      const double ratio = std::abs(m_want[i]) / (0.5 * h_want[i] + 1e-15);
      whole_want += ratio >= 1;
      p_want[i] = p_want[i] * (1 - kLr * 0.1) - kLr * std::copysign(std::min(ratio, 1.0), m_want[i]);
      ASSERT_NEAR(p[i], p_want[i], 1e-6) << t << " " << i;
      ASSERT_NEAR(m[i], m_want[i], 1e-6) << t << " " << i;
      ASSERT_NEAR(h[i], h_want[i], 1e-6) << t << " " << i;
    }
  }
  EXPECT_NEAR(static_cast<double>(whole), whole_want, 3) << "but for what lies at the edge";
  EXPECT_GT(whole, 0);
  EXPECT_LT(whole, static_cast<std::int64_t>(30 * kElements)) << "some move by less";
}

TEST(SophiaTest, WithoutDecayNothingMovesByMoreThanTheLearningRate) {
  constexpr double kLr = 3e-3;
  for (std::uint64_t trial = 0; trial < 50; ++trial) {
    const SophiaOptions options{.rho = 0.04, .weight_decay = trial % 2 == 0 ? 0.0 : 0.3};
    const double size = std::pow(10.0, static_cast<double>(trial % 13) - 6.0);
    const auto before = normals(4096, 100 + trial), g = normals(4096, 200 + trial, size);
    auto p = before, m = normals(4096, 300 + trial, size), h = normals(4096, 400 + trial, size);
    for (std::size_t i = 0; i < h.size(); ++i) h[i] = i % 3 == 0 ? 0.0f : std::abs(h[i]);
    sophia_step(p, m, h, g, 1.0f, kLr, options);
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double moved = static_cast<double>(p[i]) - before[i] + kLr * options.weight_decay * before[i];
      ASSERT_LE(std::abs(moved), kLr + 3e-7 * (1 + std::abs(before[i]))) << trial << " " << i;
      if (h[i] != 0 || std::abs(m[i]) < 1e-12) continue;
      ASSERT_GT(std::abs(moved), 0.99 * kLr - 3e-7 * (1 + std::abs(before[i])));
    }
  }
}

TEST(SophiaTest, NeitherThreadsNorSplitsChangeABit) {
  struct After {
    std::vector<float> p, m, h;
    std::int64_t whole = 0;
    double sum = 0;
    bool operator==(const After&) const = default;
  };
  const std::size_t n = 100'003;
  const auto g = normals(n, 1), label_g = normals(n, 2);
  const auto run = [&](int threads) {
    set_num_threads(threads);
    After after{.p = normals(n, 0), .m = std::vector<float>(n), .h = std::vector<float>(n)};
    after.sum = refresh_curvature(after.h, label_g, 2, 0.9);
    after.whole = sophia_step(after.p, after.m, after.h, g, 0.3f, 1e-2, {});
    set_num_threads(0);
    return after;
  };
  const After one = run(1);
  for (const int threads : {2, 3, 7}) EXPECT_TRUE(run(threads) == one) << threads;
  After parts{.p = normals(n, 0), .m = std::vector<float>(n), .h = std::vector<float>(n)};
  for (const auto& [begin, count] : {std::pair<std::size_t, std::size_t>{0, 333}, {333, 1}, {334, n - 334}}) {
    const std::size_t from = begin, length = count;
    const auto part = [&](auto& values) { return std::span(values).subspan(from, length); };
    refresh_curvature(part(parts.h), part(label_g), 2, 0.9);
    parts.whole += sophia_step(part(parts.p), part(parts.m), part(parts.h), part(g), 0.3f, 1e-2, {});
  }
  EXPECT_EQ(parts.p, one.p);
  EXPECT_EQ(parts.h, one.h);
  EXPECT_EQ(parts.whole, one.whole);
}

TEST(SophiaTest, ZeroPaddingStaysZeroAndIsNoWholeStep) {
  std::vector<float> p(64), m(64), h(64), g(64);
  refresh_curvature(h, g, 8, 0.9);
  EXPECT_EQ(sophia_step(p, m, h, g, 0.5f, 1e-2, {}), 0);
  EXPECT_EQ(p, std::vector<float>(64, 0.0f));
  EXPECT_EQ(h, std::vector<float>(64, 0.0f));
}

}  // namespace
}  // namespace troupe::model
