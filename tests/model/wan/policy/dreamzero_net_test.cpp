// DreamZero as a policy: what a call draws, and the same rows judged again.
#include "model/wan/policy/dreamzero_net.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <set>

#include "tests/model/wan/policy/dreamzero_fixture.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

/// Rows enough that every step of four draws in some.
constexpr std::int64_t kRows = 24;

std::set<std::int64_t> steps_of(const ActedDreamZero& acted) {
  std::set<std::int64_t> steps;
  const auto& step = acted.result.extra.at("step");
  for (std::int64_t i = 0; i < step.size(0); ++i) steps.insert(step[i][0].item<std::int64_t>());
  return steps;
}

TEST(DreamZeroNetTest, TheSameWeightsGiveTheSameLogProbabilitiesInEveryStep) {
  for (const bool image_to_video : {false, true}) {
    const auto acted = testing::act_dreamzero(testing::dreamzero_case(image_to_video), kRows);
    EXPECT_EQ(steps_of(acted), (std::set<std::int64_t>{0, 1, 2, 3}));
    const auto again = acted.net->logp(acted.views, acted.rows);
    ASSERT_EQ(again.size(1), acted.net->logp_width());
    const auto difference = again - acted.result.logp;
    EXPECT_LE(difference.abs().max().item<double>(), 1e-4) << "per number";
    EXPECT_NEAR(difference.exp().mean().item<double>(), 1.0, 1e-3);
    EXPECT_GT(acted.result.logp.abs().max().item<double>(), 0.01);
  }
}

TEST(DreamZeroNetTest, ActionsAndExtrasHaveTheShapesThatItStates) {
  const auto c = testing::dreamzero_case();
  const auto acted = testing::act_dreamzero(c, 3);
  EXPECT_EQ(acted.result.action.sizes(), at::IntArrayRef({3, c.shape.chunk * c.shape.action_dim}));
  EXPECT_EQ(acted.net->logp_width(), c.shape.chunk * c.shape.action_dim);
  EXPECT_EQ(acted.net->value_width(), 0);
  ASSERT_EQ(acted.net->extras().size(), acted.result.extra.size());
  for (const auto& extra : acted.net->extras()) {
    auto shape = extra.shape;
    shape.insert(shape.begin(), 3);
    EXPECT_EQ(acted.result.extra.at(extra.name).sizes(), at::IntArrayRef(shape)) << extra.name;
    EXPECT_EQ(acted.result.extra.at(extra.name).scalar_type(), extra.is_integer ? at::kLong : at::kFloat) << extra.name;
  }
  EXPECT_EQ(acted.net->acting_units().size(), acted.net->units().size());
  for (const auto& unit : acted.net->units()) EXPECT_EQ(unit.group, "actor") << unit.name;
}

TEST(DreamZeroNetTest, WithoutNoiseACallIsTheDeterministicOne) {
  auto c = testing::dreamzero_case();
  c.policy.flow.noise_level = 0;
  const auto drawn = testing::act_dreamzero(c, 6), plain = testing::act_dreamzero(c, 6, /*deterministic=*/true);
  testing::expect_near(drawn.result.action, plain.result.action, 1e-5, "actions");
  for (const auto* acted : {&drawn, &plain}) {
    EXPECT_EQ(acted->result.logp.abs().max().item<double>(), 0.0);
    EXPECT_EQ(acted->net->logp(acted->views, acted->rows).abs().max().item<double>(), 0.0);
  }
  EXPECT_EQ(steps_of(plain), std::set<std::int64_t>{-1});
}

TEST(DreamZeroNetTest, ADeterministicRowHasLogProbabilityZeroAtAnyNoiseLevel) {
  const auto acted = testing::act_dreamzero(testing::dreamzero_case(), 3, /*deterministic=*/true);
  EXPECT_EQ(acted.result.logp.abs().max().item<double>(), 0.0);
  EXPECT_EQ(acted.net->logp(acted.views, acted.rows).abs().max().item<double>(), 0.0);
}

TEST(DreamZeroNetTest, StepsThatAreIgnoredDoNotDraw) {
  auto c = testing::dreamzero_case();
  c.policy.flow.ignore_last = true;
  EXPECT_EQ(steps_of(testing::act_dreamzero(c, kRows)), (std::set<std::int64_t>{0, 1, 2}));
  c.policy.flow.ignore_first = 2;
  EXPECT_EQ(steps_of(testing::act_dreamzero(c, kRows)), (std::set<std::int64_t>{2}));
}

TEST(DreamZeroNetTest, ARowDependsOnItsObservationAndKeyAlone) {
  const auto acted = testing::act_dreamzero(testing::dreamzero_case(true), 5);
  const Batch row{{rl_keys::kState, acted.observation.at(rl_keys::kState).narrow(0, 3, 1)}};
  const std::vector<std::uint64_t> key{testing::row_keys(5, 200)[3]};
  const auto alone = acted.net->act(acted.views, {row, 9, key, false, 0.5});
  testing::expect_near(alone.action, acted.result.action.narrow(0, 3, 1), 1e-5, "action");
  testing::expect_near(alone.logp, acted.result.logp.narrow(0, 3, 1), 1e-4, "log-probability");
  for (const auto& [name, tensor] : alone.extra)
    testing::expect_near(tensor, acted.result.extra.at(name).narrow(0, 3, 1), 1e-5, name);
  const auto other = acted.net->act(acted.views, {row, 10, key, false, 0.5});
  EXPECT_GT(testing::max_difference(other.action, alone.action), 0.01) << "another seed";
}

TEST(DreamZeroNetTest, RowsAreJudgedAloneAsTogether) {
  const auto acted = testing::act_dreamzero(testing::dreamzero_case(), 20);
  const auto all = acted.net->logp(acted.views, acted.rows);
  for (const std::int64_t row : {0, 7, 19}) {
    Batch one;
    for (const auto& [name, tensor] : acted.rows) one[name] = tensor.dim() > 0 ? tensor.narrow(0, row, 1) : tensor;
    testing::expect_near(acted.net->logp(acted.views, one), all.narrow(0, row, 1), 1e-5, "row " + std::to_string(row));
  }
}

TEST(DreamZeroNetTest, PaddedColumnsOfTheDrawnActionsTakeNoPart) {
  auto acted = testing::act_dreamzero(testing::dreamzero_case(), 4);
  const auto before = acted.net->logp(acted.views, acted.rows);
  auto& next = acted.rows["extra.next"];
  next = next.clone();
  next.narrow(2, 3, 2).fill_(100.0);
  EXPECT_TRUE(at::equal(acted.net->logp(acted.views, acted.rows), before));
  next.select(2, 1).add_(0.1);
  EXPECT_GT(testing::max_difference(acted.net->logp(acted.views, acted.rows), before), 1e-3);
}

/// Whether making this policy is refused with a message that names the key.
void expect_refused(const std::string& key, const std::function<void(DreamZeroCase&)>& change) {
  auto c = testing::dreamzero_case();
  change(c);
  const auto net = testing::make_dreamzero(c);
  ASSERT_FALSE(net) << key;
  EXPECT_EQ(net.error().code(), Errc::invalid_argument) << key;
  EXPECT_THAT(net.error().to_string(), ::testing::HasSubstr(key));
}

TEST(DreamZeroNetTest, WhatItDoesNotDoIsRefusedByName) {
  expect_refused("algorithm.name", [](auto& c) { c.algorithm.name = Algorithm::ppo; });
  expect_refused("algorithm.name", [](auto& c) { c.algorithm.name = Algorithm::sac; });
  expect_refused("env.chunk", [](auto& c) { c.shape.chunk = 2; });
  expect_refused("model.dit.action_dim", [](auto& c) { c.shape.action_dim = 6; });
  expect_refused("discrete", [](auto& c) { c.shape.choices = 3; });
  for (const char* sampler : {"ode", "cps", "noise"})
    expect_refused("policy.flow.sampler", [&](auto& c) { c.policy.flow.sampler = sampler; });
  expect_refused("policy.flow.joint", [](auto& c) { c.policy.flow.joint = true; });
  expect_refused("policy.flow.logprob_reduce", [](auto& c) { c.policy.flow.logprob_reduce = "per_step"; });
  expect_refused("policy.flow.safe_logprob", [](auto& c) { c.policy.flow.safe_logprob = true; });
  expect_refused("policy.flow.ignore_last", [](auto& c) {
    c.policy.flow.ignore_last = true;
    c.policy.flow.denoise_steps = 1;
  });
  expect_refused("policy.flow.ignore_first", [](auto& c) { c.policy.flow.ignore_first = 4; });
  expect_refused("policy.memory", [](auto& c) { c.policy.memory = PolicyMemory::gru; });
  expect_refused("policy.distribution", [](auto& c) { c.policy.distribution = "gaussian"; });
  expect_refused("model.target_height", [](auto& c) { c.model.target_height = 72; });
}

TEST(DreamZeroNetTest, AskingForWhatItHasNotThrows) {
  const auto acted = testing::act_dreamzero(testing::dreamzero_case(), 1);
  EXPECT_THROW((void)acted.net->objective("sft"), c10::Error);
  EXPECT_THROW((void)acted.net->value(acted.views, acted.observation), c10::Error);
}

}  // namespace
}  // namespace troupe::model
