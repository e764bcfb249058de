#include "model/loss/policy_gradient_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "model/loss/rl_keys.h"
#include "tests/model/loss/doubles.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kRows = 12, kChunk = 3, kWidth = 2;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A mini-batch with unequal valid counts in every third of its rows.
PolicyGradientInputs make_inputs() {
  at::manual_seed(3);
  PolicyGradientInputs in;
  in.logp = random({kRows, kChunk * kWidth}).requires_grad_(true);
  in.old_logp = in.logp.detach() + 0.3 * random({kRows, kChunk * kWidth});
  in.reference_logp = in.logp.detach() + 0.1 * random({kRows, kChunk * kWidth});
  in.entropy = random({kRows, kChunk * kWidth}).requires_grad_(true);
  in.value = random({kRows, kChunk}).requires_grad_(true);
  in.old_value = in.value.detach() + 0.3 * random({kRows, kChunk});
  in.returns = random({kRows, kChunk});
  in.advantage = random({kRows, kChunk});
  in.mask = random({kRows, kChunk}) > -0.3;
  in.mask.narrow(0, 0, 4).fill_(true);
  in.valid_steps = at::arange(1, kRows + 1, at::TensorOptions().dtype(at::kDouble)).unsqueeze(1);
  return in;
}

PolicyGradientOptions make_options() {
  PolicyGradientOptions o;
  o.chunk = kChunk;
  o.entropy_bonus = 0.02;
  o.kl_beta = 0.1;
  o.max_episode_steps = 20;
  return o;
}

std::vector<at::Tensor> grads(const PolicyGradientLoss& got, const PolicyGradientInputs& in) {
  return torch::autograd::grad({got.loss}, {in.logp, in.entropy, in.value}, {}, true, false, true);
}

PolicyGradientInputs rows_of(const PolicyGradientInputs& in, std::int64_t first, std::int64_t count) {
  auto part = in;
  for (auto* x : {&part.logp, &part.old_logp, &part.reference_logp, &part.entropy, &part.value, &part.old_value,
                  &part.returns, &part.advantage, &part.mask, &part.valid_steps}) {
    *x = x->narrow(0, first, count);
  }
  return part;
}

class PolicyGradientPartsTest : public ::testing::TestWithParam<Aggregation> {};

TEST_P(PolicyGradientPartsTest, TheMeanOverPartsIsTheMeanOverTheWhole) {
  const auto in = make_inputs();
  auto o = make_options();
  o.aggregation = GetParam();
  const auto whole = policy_gradient_loss(in, o);
  const auto want = grads(whole, in);
  const double valid = in.mask.sum().item<double>(), parts = 3;
  at::Tensor sum = at::zeros({}, at::kDouble);
  std::map<std::string, double> metrics;
  for (std::int64_t p = 0; p < 3; ++p) {
    auto part = rows_of(in, p * 4, 4);
    part.scale = at::tensor({parts / valid, parts / static_cast<double>(in.mask.numel())}, at::kDouble);
    const auto got = policy_gradient_loss(part, o);
    sum = sum + got.loss / parts;
    for (const auto& [name, x] : got.metrics) metrics[name] += x.item<double>() / parts;
  }
  EXPECT_NEAR(sum.item<double>(), whole.loss.item<double>(), 1e-6);
  const auto got = torch::autograd::grad({sum}, {in.logp, in.entropy, in.value});
  for (std::size_t i = 0; i < got.size(); ++i)
    testing::expect_near(got[i], want[i], 1e-6, "gradient " + std::to_string(i));
  for (const auto& [name, x] : whole.metrics) EXPECT_NEAR(metrics[name], x.item<double>(), 1e-6) << name;
}

INSTANTIATE_TEST_SUITE_P(Both, PolicyGradientPartsTest, ::testing::Values(Aggregation::mean, Aggregation::trajectory),
                         [](const auto& param_info) {
                           return param_info.param == Aggregation::mean ? "Mean" : "Trajectory";
                         });

TEST(PolicyGradientLossTest, ARowThatIsNotFiniteCountsNothingAndIsReported) {
  const auto clean = make_inputs();
  const auto want = policy_gradient_loss(rows_of(clean, 1, kRows - 1), make_options());
  auto in = clean;
  in.advantage = in.advantage.clone();
  in.advantage[0][1] = std::numeric_limits<double>::quiet_NaN();
  const auto got = policy_gradient_loss(in, make_options());
  EXPECT_NEAR(got.loss.item<double>(), want.loss.item<double>(), 1e-6);
  EXPECT_EQ(got.metrics.at("nonfinite_samples").item<double>(), 1);
  for (const auto& gradient : grads(got, in)) {
    EXPECT_TRUE(gradient.isfinite().all().item<bool>());
    EXPECT_EQ(gradient[0].abs().sum().item<double>(), 0);
  }
}

TEST(PolicyGradientLossTest, AMaskedRowMayHoldAnythingAndIsNotReported) {
  auto in = make_inputs();
  in.mask[5].fill_(false);
  const auto want = policy_gradient_loss(in, make_options());
  in.returns[5].fill_(kInfinity);
  const auto got = policy_gradient_loss(in, make_options());
  EXPECT_NEAR(got.loss.item<double>(), want.loss.item<double>(), 1e-6);
  EXPECT_EQ(got.metrics.at("nonfinite_samples").item<double>(), 0);
}

TEST(PolicyGradientLossTest, HugeLogRatiosStayFinite) {
  auto in = make_inputs();
  in.old_logp = in.logp.detach() - 500;
  const auto got = policy_gradient_loss(in, make_options());
  EXPECT_TRUE(got.loss.isfinite().item<bool>());
  EXPECT_LE(got.metrics.at("actor/ratio").item<double>(), std::exp(20.0) * (1 + 1e-9));
}

TEST(PolicyGradientLossTest, ZeroPolicyWeightTrainsTheCriticAlone) {
  auto in = make_inputs();
  in.policy_weight = at::zeros({}, at::kDouble);
  const auto got = policy_gradient_loss(in, make_options());
  const auto g = grads(got, in);
  EXPECT_EQ(g[0].abs().sum().item<double>(), 0);
  EXPECT_EQ(g[1].abs().sum().item<double>(), 0);
  EXPECT_GT(g[2].abs().sum().item<double>(), 0);
  EXPECT_EQ(got.metrics.at("actor/policy_loss").item<double>(), 0);
}

TEST(PolicyGradientLossTest, ParityCountsEveryTokenOfACell) {
  const auto in = make_inputs();
  auto o = make_options();
  o.logp_level = Granularity::token;
  const double ours = policy_gradient_loss(in, o).metrics.at("actor/policy_loss").item<double>();
  o.parity = true;
  EXPECT_NEAR(policy_gradient_loss(in, o).metrics.at("actor/policy_loss").item<double>(), kWidth * ours, 1e-6);
}

TEST(PolicyGradientLossTest, TheWholeLossIsTheSumOfItsTerms) {
  const auto in = make_inputs();
  const auto o = make_options();
  const auto got = policy_gradient_loss(in, o);
  const auto term = [&got](const char* name) { return got.metrics.at(name).item<double>(); };
  EXPECT_NEAR(got.loss.item<double>(),
              term("actor/policy_loss") - o.entropy_bonus * term("actor/entropy_loss") +
                  o.kl_beta * term("actor/kl_loss") + o.value_coef * term("critic/value_loss"),
              1e-9);
}

TEST(PolicyGradientLossTest, EntropyOfChunksWeighsRowsByTheirValidActions) {
  auto in = make_inputs();
  auto o = make_options();
  o.entropy_level = Granularity::chunk;
  const auto per_row = in.mask.sum(1).to(at::kDouble);
  const auto executed = in.entropy * in.mask.repeat_interleave(kWidth, 1);
  const double want = ((executed.sum(1) * per_row).sum() / per_row.sum()).item<double>();
  EXPECT_NEAR(policy_gradient_loss(in, o).metrics.at("actor/entropy_loss").item<double>(), want, 1e-6);
}

TEST(PolicyGradientLossTest, ReciprocalRangeEndsAtOneOverOnePlusEps) {
  const auto one = at::ones({1, 1, 1}, at::kDouble);
  const auto e = ppo_entries(-1 * one, 0 * one, -1 * one, one, {.low = .25, .reciprocal = true});
  EXPECT_NEAR(e.clipped_ratio.item<double>(), .8, 1e-12);
  EXPECT_NEAR(e.loss.item<double>(), .8, 1e-12);
}

TEST(PolicyGradientLossTest, SquaredValueErrorWithoutClipping) {
  const auto one = at::ones({1, 1, 1}, at::kDouble);
  EXPECT_NEAR(value_entries(3 * one, {}, 7 * one, {.clip = 0, .is_huber = false}).item<double>(), 8, 1e-12);
}

TEST(PolicyGradientLossTest, VtraceLossIsTheLogProbabilityTimesTheAdvantage) {
  auto in = make_inputs();
  in.value = at::Tensor();
  auto o = make_options();
  o.actor = ActorLoss::vtrace;
  o.entropy_bonus = o.kl_beta = 0;
  const auto logp = in.logp.reshape({kRows, kChunk, kWidth}).sum(2);
  const double want = -(in.advantage * logp * in.mask).sum().item<double>() / in.mask.sum().item<double>();
  EXPECT_NEAR(policy_gradient_loss(in, o).loss.item<double>(), want, 1e-6);
}

TEST(PolicyGradientLossTest, DecoupledLossWithoutVersionsOrProximalIsPlainPpo) {
  const auto in = make_inputs();
  auto o = make_options();
  const double want = policy_gradient_loss(in, o).loss.item<double>();
  o.actor = ActorLoss::decoupled;
  EXPECT_NEAR(policy_gradient_loss(in, o).loss.item<double>(), want, 1e-6);
}

TEST(PolicyGradientLossTest, ABatchIsReadByItsKeys) {
  const std::map<std::string, at::Tensor> batch = {{rl_keys::kOldLogp, at::zeros({2, 1})},
                                                   {rl_keys::kMask, at::ones({2, 1})}};
  const auto in = policy_gradient_inputs(batch);
  EXPECT_TRUE(in.old_logp.defined());
  EXPECT_TRUE(in.mask.defined());
  EXPECT_FALSE(in.advantage.defined());
}

TEST(PolicyGradientLossTest, OptionsComeFromTheConfiguration) {
  AlgorithmConfig c;
  c.name = Algorithm::decoupled_ppo;
  c.policy_gradient.clip_range = "reciprocal";
  c.policy_gradient.aggregation = "trajectory";
  c.policy_gradient.logprob_level = Granularity::token;
  c.policy_gradient.value_loss = "mse";
  const auto o = make_policy_gradient_options(c, 4, 100);
  EXPECT_EQ(o.actor, ActorLoss::decoupled);
  EXPECT_TRUE(o.clip.reciprocal);
  EXPECT_EQ(o.aggregation, Aggregation::trajectory);
  EXPECT_EQ(o.logp_level, Granularity::token);
  EXPECT_FALSE(o.value.is_huber);
  EXPECT_EQ(o.chunk, 4);
}

TEST(PolicyGradientLossTest, AnAdvantageOfTheWrongWidthNamesTheSetting) {
  auto in = make_inputs();
  in.advantage = in.advantage.narrow(1, 0, 1);
  try {
    policy_gradient_loss(in, make_options());
    FAIL() << "no error";
  } catch (const c10::Error& e) {
    EXPECT_NE(std::string(e.what()).find("reward_level"), std::string::npos) << e.what();
  }
}

TEST(PolicyGradientLossTest, ExplainedVarianceOfAPerfectCriticIsOne) {
  EXPECT_NEAR(explained_variance(1, 3, .5, .25), 1, 1e-12);
  EXPECT_TRUE(std::isnan(explained_variance(1, 1, 0, 0)));
}

}  // namespace
}  // namespace troupe::model
