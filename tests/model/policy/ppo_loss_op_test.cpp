// What manual_policy_gradient_test compares in whole networks, for the loss alone; and where the manual backward
// must not be taken.
#include "model/policy/ppo_loss_op.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

/// 16 rows of one action of three numbers, with a critic, and clipped ratios and values among them.
class PpoLossOpTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 16, kWidth = 3;

  PpoLossOpTest() {
    at::manual_seed(3);
    stream = 0.3 * at::randn({kRows, 2 * kWidth + 1});
    in.old_logp = 0.3 * at::randn({kRows, kWidth});
    in.advantage = at::randn({kRows, 1});
    in.returns = at::randn({kRows, 1});
    in.old_value = 0.3 * at::randn({kRows, 1});
    in.mask = at::rand({kRows, 1}) > 0.2;
    options.value.clip = 0.2;
    options.entropy_bonus = 0.01;
  }

  struct Found {
    PolicyGradientLoss loss;
    at::Tensor gradient;
  };
  template <class Loss>
  Found differentiate(const Loss& loss, double seed) const {
    const auto leaf = stream.detach().clone().requires_grad_(true);
    auto result = loss(leaf);
    auto gradient = torch::autograd::grad({result.loss}, {leaf}, {at::full({}, seed)})[0];
    return {std::move(result), std::move(gradient)};
  }
  Found by_op(double seed = 1) const {
    return differentiate([&](const at::Tensor& x) { return ppo_loss_op(x, kWidth, 1, in, options); }, seed);
  }
  Found by_autograd(double seed = 1) const {
    return differentiate(
        [&](const at::Tensor& x) {
          auto all = in;
          all.logp = x.narrow(1, 0, kWidth);
          all.entropy = x.narrow(1, kWidth, kWidth);
          all.value = x.narrow(1, 2 * kWidth, 1);
          return policy_gradient_loss(all, options);
        },
        seed);
  }

  at::Tensor stream;
  PolicyGradientInputs in;
  PolicyGradientOptions options;
};

TEST_F(PpoLossOpTest, LossMetricsAndGradientAreAutograds) {
  const auto got = by_op(0.25), want = by_autograd(0.25);
  EXPECT_NEAR(got.loss.loss.item<double>(), want.loss.loss.item<double>(), 1e-6);
  EXPECT_LE(testing::relative_l2(got.gradient, want.gradient), 2e-6);
  ASSERT_EQ(got.loss.metrics.size(), want.loss.metrics.size());
  for (const auto& [name, value] : want.loss.metrics)
    EXPECT_NEAR(got.loss.metrics.at(name).item<double>(), value.item<double>(), 2e-6) << name;
}

TEST_F(PpoLossOpTest, WithoutGradientsItIsTheLossAlone) {
  const double want = by_op().loss.loss.item<double>();
  const c10::NoGradGuard no_grad;
  const auto result = ppo_loss_op(stream, kWidth, 1, in, options);
  EXPECT_FALSE(result.loss.requires_grad());
  EXPECT_EQ(result.loss.item<double>(), want);
}

TEST_F(PpoLossOpTest, RowsThatAreNotFiniteAreLeftToTheLossItself) {
  in.mask.fill_(true);
  in.advantage[2][0] = std::nan("");
  const auto got = by_op(), want = by_autograd();
  EXPECT_EQ(got.loss.metrics.at("nonfinite_samples").item<double>(), 1);
  EXPECT_TRUE(got.loss.loss.equal(want.loss.loss));
  EXPECT_TRUE(got.gradient.equal(want.gradient));
}

TEST_F(PpoLossOpTest, OtherLossesAreLeftToTheLossItself) {
  options.actor = ActorLoss::vtrace;
  const auto got = by_op(), want = by_autograd();
  EXPECT_TRUE(got.loss.loss.equal(want.loss.loss));
  EXPECT_TRUE(got.gradient.equal(want.gradient));
}

}  // namespace
}  // namespace troupe::model
