#include "model/policy/flow_sampler.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

using Reduce = FlowSampling::Reduce;

/// Any smooth network: velocities and widths depend on x and t.
FlowPrediction wavy(const at::Tensor& x, const at::Tensor& t) {
  const auto time = t.view({-1, 1, 1});
  return {(x * 1.3 + time).sin() - 0.4 * x, flow_noise_std(x * 0.7 - time), (x.mean({1, 2}) + t)};
}

struct Draws {
  at::Tensor initial, noise;
};
Draws draw(std::int64_t rows, std::int64_t steps, at::ScalarType type = at::kFloat) {
  const auto generator = at::detail::createCPUGenerator(11);
  return {at::randn({rows, 3, 2}, generator, type), at::randn({steps, rows, 3, 2}, generator, type)};
}

FlowSampling sampling_of(FlowMethod method, std::int64_t steps, bool joint = false) {
  FlowSampling sampling;
  sampling.method = method;
  sampling.times = flow_times(steps);
  sampling.joint = joint;
  return sampling;
}

// Consistency: recomputed with the same weights, |difference of logp| < 1e-4 in f32 and the mean ratio is in [0.99,
// 1.01].
TEST(FlowSamplerTest, TheLearnerFindsTheLogProbabilitiesOfTheRollout) {
  const auto [initial, noise] = draw(6, 5);
  const auto index = at::tensor({0, 1, 2, 3, 4, 0}, at::kLong);
  for (const auto method : {FlowMethod::sde, FlowMethod::cps, FlowMethod::noise}) {
    for (const bool joint : {false, true}) {
      for (const auto reduce : {Reduce::mean, Reduce::sum, Reduce::per_step}) {
        auto sampling = sampling_of(method, 5, joint);
        sampling.reduce = reduce;
        const auto chain = sample_flow_chain(wavy, initial, noise, index, sampling);
        const auto density = flow_chain_density(wavy, chain.chain, index, sampling);
        EXPECT_LT(testing::max_difference(density.logp, chain.logp), 1e-4) << static_cast<int>(method) << joint;
        const double ratio = (density.logp - chain.logp).exp().mean().item<double>();
        EXPECT_GT(ratio, 0.99);
        EXPECT_LT(ratio, 1.01);
      }
    }
  }
}

// Consistency: noise level 0 gives the deterministic sampler.
TEST(FlowSamplerTest, WithoutNoiseFlowSdeAndFlowCpsAreTheDeterministicSampler) {
  const auto [initial, noise] = draw(4, 6, at::kDouble);
  const auto plain = sample_flow_chain(wavy, initial, {}, {}, sampling_of(FlowMethod::ode, 6));
  for (const auto method : {FlowMethod::sde, FlowMethod::cps}) {
    auto sampling = sampling_of(method, 6, /*joint=*/true);
    sampling.noise_level = 0;
    const auto chain = sample_flow_chain(wavy, initial, noise, {}, sampling);
    testing::expect_near(chain.chain, plain.chain, 1e-12, "chain");
  }
  EXPECT_EQ(plain.logp.abs().sum().item<double>(), 0) << "no step drew";
}

TEST(FlowSamplerTest, ARowDrawsAtItsOwnStepAlone) {
  const auto [initial, noise] = draw(3, 4, at::kDouble);
  const auto index = at::tensor({2, 0, -1}, at::kLong);
  const auto chain = sample_flow_chain(wavy, initial, noise, index, sampling_of(FlowMethod::sde, 4)).chain;
  const auto plain = sample_flow_chain(wavy, initial, {}, {}, sampling_of(FlowMethod::ode, 4)).chain;
  testing::expect_near(chain[0].narrow(0, 0, 3), plain[0].narrow(0, 0, 3), 1e-12, "row 0 before it draws");
  EXPECT_GT(testing::max_difference(chain[0][3], plain[0][3]), 0.01) << "row 0 draws in step 2";
  EXPECT_GT(testing::max_difference(chain[1][1], plain[1][1]), 0.01) << "row 1 draws in step 0";
  testing::expect_near(chain[2], plain[2], 1e-12, "row 2 draws nowhere");
}

TEST(FlowSamplerTest, ARowThatDrewNowhereHasNoDensity) {
  const auto [initial, noise] = draw(2, 4);
  const auto index = at::tensor({-1, 1}, at::kLong);
  const auto sampling = sampling_of(FlowMethod::noise, 4);
  const auto chain = sample_flow_chain(wavy, initial, noise, index, sampling);
  const auto density = flow_chain_density(wavy, chain.chain, index, sampling);
  EXPECT_EQ(density.logp[0].abs().sum().item<double>(), 0);
  EXPECT_EQ(density.entropy[0].abs().sum().item<double>(), 0);
  EXPECT_GT(density.logp[1].abs().sum().item<double>(), 0);
}

TEST(FlowSamplerTest, MeanSumAndStepsOfAJointChainAreOneSetOfTerms) {
  const Draws draws = draw(3, 4, at::kDouble);
  auto sampling = sampling_of(FlowMethod::noise, 4, /*joint=*/true);
  const auto logp_of = [&](Reduce reduce) {
    sampling.reduce = reduce;
    return sample_flow_chain(wavy, draws.initial, draws.noise, {}, sampling).logp;
  };
  const auto mean = logp_of(Reduce::mean), sum = logp_of(Reduce::sum), steps = logp_of(Reduce::per_step);
  ASSERT_EQ(steps.sizes(), at::IntArrayRef({3, 4, 3, 2}));
  testing::expect_near(mean * 5, sum, 1e-12, "N + 1 terms");
  const auto first = flow_step_logp(draws.initial, at::zeros_like(draws.initial), at::ones_like(draws.initial), false);
  testing::expect_near(steps.sum(1) + first, sum, 1e-12, "the initial noise is the first term");
}

TEST(FlowSamplerTest, EveryWholeChainHasItsShape) {
  const auto [initial, noise] = draw(3, 4);
  const auto sampling = sampling_of(FlowMethod::sde, 4);
  const auto chain = sample_flow_chain(wavy, initial, noise, at::zeros({3}, at::kLong), sampling);
  EXPECT_EQ(chain.chain.sizes(), at::IntArrayRef({3, 5, 3, 2}));
  EXPECT_EQ(chain.value.sizes(), at::IntArrayRef({3}));
  testing::expect_near(chain.action(), chain.chain.select(1, 4), 0, "the action is the last state");
  EXPECT_THROW(flow_chain_density(wavy, chain.chain.narrow(1, 0, 4), at::zeros({3}, at::kLong), sampling), c10::Error);
}

}  // namespace
}  // namespace troupe::model
