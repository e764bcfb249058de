#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "model/policy/categorical.h"
#include "model/policy/gaussian.h"
#include "model/policy/squashed_gaussian.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

at::Tensor row(std::vector<float> values) { return at::tensor(values).unsqueeze(0); }
double number(const at::Tensor& x) { return x.item<double>(); }

TEST(GaussianTest, LogProbabilityOfVectorNine) {
  EXPECT_NEAR(number(gaussian_logp(row({0.05f}), at::tensor({std::log(0.1f)}), row({0.1f}))), 1.258647, 1e-5);
}

TEST(GaussianTest, EntropyIsHalfTheLogOfTwoPiEVariance) {
  EXPECT_NEAR(number(gaussian_entropy(at::tensor({-0.5f}))), 0.5 * std::log(2 * M_PI * M_E * std::exp(-1.0)), 1e-6);
}

TEST(GaussianTest, GradientOfTheMeanIsTheDeviationOverTheVariance) {
  auto mean = row({0.3f, -1.0f});
  mean.requires_grad_(true);
  const auto log_std = at::tensor({-0.5f, 0.25f}), action = row({0.1f, 0.7f});
  const auto found = torch::autograd::grad({gaussian_logp(mean, log_std, action).sum()}, {mean});
  testing::expect_near(found[0], (action - mean.detach()) / (2 * log_std).exp(), 1e-6, "d logp / d mean");
}

TEST(GaussianTest, ADrawIsTheMeanAndSoManyDeviationsOfNoise) {
  const std::vector<float> mean{1.0f, -2.0f}, log_std{std::log(0.5f), std::log(2.0f)}, noise{2.0f, -1.0f};
  std::array<float, 2> action{}, logp{};
  draw_gaussian(mean, log_std.data(), noise.data(), action.data(), logp.data());
  EXPECT_NEAR(action[0], 2.0f, 1e-6);
  EXPECT_NEAR(action[1], -4.0f, 1e-6);
  testing::expect_near(row({logp[0], logp[1]}),
                       gaussian_logp(row(mean), at::tensor(log_std), row({action[0], action[1]})), 1e-6, "logp");
  draw_gaussian(mean, log_std.data(), nullptr, action.data(), logp.data());
  EXPECT_EQ(action[0], mean[0]);
  EXPECT_EQ(action[1], mean[1]);
}

TEST(SquashedGaussianTest, ActionAndBothDensitiesOfVectorNine) {
  const auto range = make_action_range({-1.0f}, {1.0f}, 1);
  const auto draw = [&](TanhCorrection correction) {
    return sample_squashed(row({0.3f}), row({-1.0f}), row({0.5f}), range, correction);
  };
  const auto plain = draw(TanhCorrection::epsilon);
  EXPECT_NEAR(number(plain.u), 0.483940, 1e-5);
  EXPECT_NEAR(number(plain.action), 0.449393, 1e-5);
  EXPECT_NEAR(number(plain.logp), 0.181650, 1e-5);
  EXPECT_NEAR(number(draw(TanhCorrection::stable).logp), 0.181651, 1e-5);
}

TEST(SquashedGaussianTest, ActionsFillTheBoundsOfEveryActionOfAChunk) {
  const auto range = make_action_range({-2.0f, 0.0f}, {2.0f, 4.0f}, 2);
  const auto high = squashed_mode(at::full({1, 4}, 50.0f), range), low = squashed_mode(at::full({1, 4}, -50.0f), range);
  EXPECT_TRUE(high.equal(row({2.0f, 4.0f, 2.0f, 4.0f})));
  EXPECT_TRUE(low.equal(row({-2.0f, 0.0f, -2.0f, 0.0f})));
}

TEST(SquashedGaussianTest, TheStableDensityIsFiniteWhereTanhIsOne) {
  const auto range = make_action_range({-1.0f}, {1.0f}, 1);
  const auto drawn = sample_squashed(row({30.0f}), row({0.0f}), row({0.0f}), range, TanhCorrection::stable);
  EXPECT_NEAR(number(drawn.logp), -kHalfLogTwoPi - 2 * (std::log(2.0) - 30.0), 1e-4);
}

TEST(SquashedGaussianTest, TheDensityOfTheScaledActionIntegratesToOne) {
  const auto range = make_action_range({-2.0f}, {2.0f}, 1);
  const auto u = at::linspace(-8, 8, 4001, at::kDouble).unsqueeze(1);
  const auto mean = at::full_like(u, 0.4), log_std = at::full_like(u, -0.3);
  const auto drawn = sample_squashed(mean, log_std, (u - mean) / log_std.exp(), range, TanhCorrection::stable);
  const auto area = at::trapezoid(drawn.logp.exp().squeeze(1), drawn.action.squeeze(1));
  EXPECT_NEAR(number(area), 1.0, 1e-4);
}

TEST(SquashedGaussianTest, LogStdStaysInsideItsBounds) {
  const auto bounded = squash_log_std(at::tensor({-100.0f, 0.0f, 100.0f}), -5, 2);
  testing::expect_near(bounded, at::tensor({-5.0f, -1.5f, 2.0f}), 1e-6, "log std");
}

TEST(SquashedGaussianTest, GradientsFlowThroughActionAndDensity) {
  const auto range = make_action_range({-1.0f}, {1.0f}, 1);
  const auto noise = at::full({1, 1}, 0.7, at::kDouble);
  const auto loss = [&](const at::Tensor& mean, const at::Tensor& log_std) {
    const auto s = sample_squashed(mean, log_std, noise, range);
    return (2 * s.action + 3 * s.logp).sum();
  };
  auto mean = at::full({1, 1}, 0.3, at::kDouble), log_std = at::full({1, 1}, -1.0, at::kDouble);
  mean.requires_grad_(true);
  log_std.requires_grad_(true);
  const auto found = torch::autograd::grad({loss(mean, log_std)}, {mean, log_std});
  const double h = 1e-6;
  const auto m = mean.detach(), s = log_std.detach();
  EXPECT_NEAR(number(found[0]), number(loss(m + h, s) - loss(m - h, s)) / (2 * h), 1e-6);
  EXPECT_NEAR(number(found[1]), number(loss(m, s + h) - loss(m, s - h)) / (2 * h), 1e-6);
}

TEST(CategoricalTest, LogProbabilityAndEntropyPerActionOfAChunk) {
  const auto log_probs = categorical_log_probs(at::tensor({0.0f, 0.0f, std::log(3.0f), 0.0f}).unsqueeze(0), 2);
  testing::expect_near(categorical_logp(log_probs, row({1.0f, 0.0f})), row({std::log(0.5f), std::log(0.75f)}), 1e-6,
                       "logp");
  const double second = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  testing::expect_near(categorical_entropy(log_probs), row({std::log(2.0f), static_cast<float>(second)}), 1e-6,
                       "entropy");
}

TEST(CategoricalTest, ASampleIsTheFirstChoiceWhoseCumulativeProbabilityExceedsTheDraw) {
  const std::vector<float> log_probs{std::log(0.25f), std::log(0.25f), std::log(0.5f)};
  for (const auto& [uniform, choice] : {std::pair{0.0f, 0}, {0.2f, 0}, {0.3f, 1}, {0.75f, 2}, {0.999999f, 2}}) {
    EXPECT_EQ(drawn_choice(log_probs, uniform), choice) << uniform;
  }
}

/// Logits of five choices of which 1 and 3 are allowed, as a network gives them, and those two alone.
struct MaskedChoices {
  at::Tensor logits = row({3.0f, 0.5f, 40.0f, -1.0f, 0.1f}), mask = row({0.0f, 1.0f, 0.0f, 1.0f, 0.0f});
  at::Tensor few = row({0.5f, -1.0f});
  at::Tensor log_probs() const { return categorical_log_probs(masked_logits(logits, mask), 5); }
  std::vector<float> plain_log_probs() const {
    std::vector<float> result(5);
    log_softmax_choices(logits.const_data_ptr<float>(), mask.const_data_ptr<float>(), result);
    return result;
  }
};

TEST(MaskedCategoricalTest, DensityAndEntropyAreThoseOfTheAllowedChoicesAlone) {
  const MaskedChoices five;
  const auto log_probs = five.log_probs(), few = categorical_log_probs(five.few, 2);
  for (const auto& [choice, place] : {std::pair{1, 0}, {3, 1}}) {
    EXPECT_EQ(number(categorical_logp(log_probs, row({static_cast<float>(choice)}), true)),
              number(categorical_logp(few, row({static_cast<float>(place)}))));
  }
  const double p = 1 / (1 + std::exp(-1.5)), q = 1 - p;
  EXPECT_NEAR(number(categorical_logp(log_probs, row({1.0f}), true)), std::log(p), 1e-6);
  EXPECT_NEAR(number(categorical_entropy(log_probs)), -(p * std::log(p) + q * std::log(q)), 1e-6);
  for (const float masked : {0.0f, 2.0f, 4.0f}) {
    EXPECT_EQ(number(categorical_logp(log_probs, row({masked}), true)), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(number(log_probs.exp().select(-1, static_cast<std::int64_t>(masked))), 0);
  }
}

TEST(MaskedCategoricalTest, AMaskedChoiceIsNeverDrawn) {
  constexpr std::int64_t kDraws = 1'000'000;
  const std::vector<float> log_probs = MaskedChoices().plain_log_probs();
  std::array<std::int64_t, 5> counts{};
  CounterRng rng(7, rng_stream::policy_action, 1);
  for (std::int64_t i = 0; i < kDraws; ++i) ++counts[static_cast<std::size_t>(drawn_choice(log_probs, rng.uniform()))];
  EXPECT_EQ(counts[0] + counts[2] + counts[4], 0);
  EXPECT_NEAR(static_cast<double>(counts[1]) / kDraws, 1 / (1 + std::exp(-1.5)), 0.002);
  EXPECT_EQ(likeliest_choice(log_probs), 1) << "though another has the largest logit";
}

TEST(MaskedCategoricalTest, RoundingAndTheEndsOfTheIntervalDrawAllowedChoices) {
  std::vector<float> log_probs = MaskedChoices().plain_log_probs();
  EXPECT_EQ(drawn_choice(log_probs, 0.0f), 1);
  EXPECT_EQ(drawn_choice(log_probs, 0.99999994f), 3);
  // the probabilities add up to less than the draw
  for (float& log_prob : log_probs) log_prob -= 1e-3f;
  EXPECT_EQ(drawn_choice(log_probs, 0.9999f), 3);
}

TEST(MaskedCategoricalTest, PlainLogProbabilitiesAreThoseOfTensors) {
  const MaskedChoices five;
  const std::vector<float> plain = five.plain_log_probs();
  testing::expect_near(row({plain[0], plain[1], plain[2], plain[3], plain[4]}).view({1, 1, 5}), five.log_probs(), 1e-6,
                       "log-probabilities");
}

TEST(MaskedCategoricalTest, ARowThatAllowsNothingIsTakenForOneWithoutAMask) {
  const auto logits = row({1.0f, 2.0f, 3.0f});
  EXPECT_TRUE(masked_logits(logits, at::zeros_like(logits)).equal(logits));
}

TEST(MaskedCategoricalTest, GradientsAreFiniteAndDoNotReachMaskedLogits) {
  const MaskedChoices five;
  auto logits = five.logits.clone().requires_grad_(true), few = five.few.clone().requires_grad_(true);
  const auto of = [](const at::Tensor& log_probs, float action) {
    return (2 * categorical_logp(log_probs, row({action}), true) + 3 * categorical_entropy(log_probs)).sum();
  };
  const auto found =
      torch::autograd::grad({of(categorical_log_probs(masked_logits(logits, five.mask), 5), 3)}, {logits});
  const auto alone = torch::autograd::grad({of(categorical_log_probs(few, 2), 1)}, {few});
  EXPECT_TRUE(found[0].isfinite().all().item<bool>());
  testing::expect_near(found[0], row({0.0f, alone[0][0][0].item<float>(), 0.0f, alone[0][0][1].item<float>(), 0.0f}),
                       1e-7, "gradient");
}

TEST(CategoricalTest, FrequenciesAreTheProbabilities) {
  const std::vector<float> log_probs{std::log(0.1f), std::log(0.6f), std::log(0.3f)};
  std::array<double, 3> counts{};
  CounterRng rng(11, rng_stream::policy_action, 5);
  for (int i = 0; i < 20000; ++i) ++counts[static_cast<std::size_t>(drawn_choice(log_probs, rng.uniform()))];
  EXPECT_NEAR(counts[0] / 20000, 0.1, 0.015);
  EXPECT_NEAR(counts[1] / 20000, 0.6, 0.015);
}

TEST(CategoricalTest, TheLikeliestIsTheFirstOfEquals) {
  EXPECT_EQ(likeliest_choice(std::vector<float>{-1.0f, -0.5f, -0.5f}), 1);
}

}  // namespace
}  // namespace troupe::model
