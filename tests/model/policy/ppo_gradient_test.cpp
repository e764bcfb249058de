#include "model/policy/ppo_gradient.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace troupe::model {
namespace {

at::Tensor cell(double x) { return at::full({1, 1}, x, at::kFloat); }

struct OneStep {
  MicroResult result;
  double d_logp = 0, d_entropy = 0, d_value = 0;
};

/// One row with one action of one number; without a critic unless value and returns are given.
OneStep one_step(double advantage, double logp, double old_logp, const PolicyGradientOptions& options,
                 PolicyGradientInputs in = {}) {
  in.old_logp = cell(old_logp);
  in.advantage = cell(advantage);
  PpoGradient gradient(options);
  EXPECT_TRUE(gradient.begin(in, 1.0));
  at::Tensor d_logp = cell(0), d_entropy = cell(0), d_value = cell(0);
  EXPECT_TRUE(gradient.actor(cell(logp), cell(1.25), d_logp, d_entropy));
  if (in.value.defined()) {
    EXPECT_TRUE(gradient.critic(in.value, d_value));
  }
  return {gradient.result(), d_logp.item<double>(), d_entropy.item<double>(), d_value.item<double>()};
}

PolicyGradientOptions vector_four() {
  PolicyGradientOptions options;
  options.clip.high = 0.28;
  options.clip.dual = 3;
  return options;
}

TEST(PpoGradientTest, ALikelierGoodActionIsClippedAndPushesNoFurther) {
  const auto step = one_step(1.5, -1.0, -1.4, vector_four());
  EXPECT_NEAR(step.result.loss, -1.92, 1e-5);
  EXPECT_EQ(step.d_logp, 0.0);
}

TEST(PpoGradientTest, ALikelierBadActionPushesBack) {
  const auto step = one_step(-1.5, -1.0, -1.4, vector_four());
  EXPECT_NEAR(step.result.loss, 2.237737, 1e-5);
  EXPECT_NEAR(step.d_logp, 2.237737, 1e-5);
}

TEST(PpoGradientTest, TheDualClipBoundsABadActionsLoss) {
  const auto step = one_step(-1.5, 0.3, -1.2, vector_four());
  EXPECT_NEAR(step.result.loss, 4.5, 1e-5);
  EXPECT_EQ(step.d_logp, 0.0);
  auto options = vector_four();
  options.clip.dual = 0;
  EXPECT_NEAR(one_step(-1.5, 0.3, -1.2, options).result.loss, 6.722533, 1e-5);
}

TEST(PpoGradientTest, ALessLikelyGoodActionIsPulledUp) {
  const auto step = one_step(1.5, -1.6, -1.2, vector_four());
  EXPECT_NEAR(step.result.loss, -1.00548, 1e-5);
  EXPECT_NEAR(step.d_logp, -1.00548, 1e-5);
}

TEST(PpoGradientTest, ARatioBeyondTheClampHasNoGradient) {
  const auto step = one_step(-1.0, 30.0, 0.0, PolicyGradientOptions{});
  EXPECT_NEAR(step.result.metrics.at("actor/approx_kl"), -20.0, 1e-6);
  EXPECT_EQ(step.d_logp, 0.0);
}

TEST(PpoGradientTest, TheEntropysGradientIsMinusTheBonus) {
  PolicyGradientOptions options;
  options.entropy_bonus = 0.1;
  const auto step = one_step(0.0, -1.0, -1.0, options);
  EXPECT_NEAR(step.d_entropy, -0.1, 1e-7);
  EXPECT_NEAR(step.result.loss, -0.125, 1e-6);
}

TEST(PpoGradientTest, TheClippedValueIsJudgedWhereItsErrorIsLarger) {
  PolicyGradientOptions options;
  options.value_coef = 1;
  PolicyGradientInputs in;
  in.value = cell(1.2);
  in.old_value = cell(0.8);
  in.returns = cell(2.0);
  const auto step = one_step(0.0, -1.0, -1.0, options, in);
  EXPECT_NEAR(step.result.metrics.at("critic/value_loss"), 0.5, 1e-6);
  EXPECT_EQ(step.d_value, 0.0);
  EXPECT_EQ(step.result.metrics.at("critic/value_clip_ratio"), 1.0);
}

TEST(PpoGradientTest, TheHuberErrorIsLinearBeyondDelta) {
  PolicyGradientOptions options;
  options.value_coef = 1;
  options.value.clip = 0;
  PolicyGradientInputs in;
  in.value = cell(0.0);
  in.returns = cell(12.0);
  const auto step = one_step(0.0, -1.0, -1.0, options, in);
  EXPECT_NEAR(step.result.loss, 70.0, 1e-5);
  EXPECT_NEAR(step.d_value, -10.0, 1e-6);
}

TEST(PpoGradientTest, AMaskedRowCountsNowhere) {
  PolicyGradientInputs in;
  in.mask = at::zeros({1, 1}, at::kBool);
  const auto step = one_step(1.5, -1.0, -1.4, PolicyGradientOptions{}, in);
  EXPECT_EQ(step.result.loss, 0.0);
  EXPECT_EQ(step.d_logp, 0.0);
}

TEST(PpoGradientTest, NumbersThatAreNotFiniteAreLeftToAutograd) {
  PpoGradient gradient(PolicyGradientOptions{});
  PolicyGradientInputs in;
  in.old_logp = cell(-1);
  in.advantage = cell(1);
  in.returns = cell(1);
  in.old_value = cell(1);
  ASSERT_TRUE(gradient.begin(in, 1.0));
  at::Tensor d_logp = cell(7), d_entropy = cell(7), d_value = cell(7);
  EXPECT_FALSE(gradient.actor(cell(NAN), cell(1), d_logp, d_entropy));
  EXPECT_FALSE(gradient.actor(cell(-1), cell(INFINITY), d_logp, d_entropy));
  EXPECT_FALSE(gradient.critic(cell(NAN), d_value));
  for (const auto& d : {d_logp, d_entropy, d_value}) EXPECT_EQ(d.item<float>(), 7);
  in.advantage = cell(NAN);
  EXPECT_FALSE(gradient.begin(in, 1.0));
}

}  // namespace
}  // namespace troupe::model
