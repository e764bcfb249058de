#include "model/policy/flow_policy.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <cmath>

#include "model/policy/flow_imitation.h"
#include "tests/model/policy/policy_fixture.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

PolicyCase flow_case(const std::string& sampler = "sde") {
  PolicyCase c;
  c.policy.kind = PolicyKind::flow;
  c.policy.hidden = {24, 24};
  c.policy.flow.sampler = sampler;
  c.policy.flow.joint = sampler == "noise";
  c.policy.flow.ignore_last = sampler == "cps";
  c.shape.state_dim = 5;
  c.shape.action_dim = 2;
  c.shape.chunk = 3;
  c.shape.action_low = {-1, 0};
  c.shape.action_high = {1, 4};
  return c;
}

/// A policy with weights, and what it did in 8 rows.
struct Acted {
  std::shared_ptr<const PolicyNet> net;
  std::vector<ParamView> params;
  UnitViews views;
  Batch batch;
  ActResult result;
};
Acted act(const PolicyCase& c, bool deterministic = false, std::int64_t rows = 8) {
  auto net = make_flow_policy_net(c.policy, c.algorithm, c.shape);
  EXPECT_TRUE(net) << (net ? "" : net.error().to_string());
  Acted acted{
      *net, testing::start_parameters((*net)->units(), 5, 0.2), {}, testing::draw_observation(c.shape, rows, 2), {}};
  acted.views = testing::by_name(acted.net->units(), acted.params);
  const auto keys = testing::row_keys(rows);
  acted.result = acted.net->act(acted.views, {acted.batch, 9, keys, deterministic, c.policy.flow.noise_level});
  acted.batch = testing::stored_rows(acted.batch, acted.result, c.policy.flow.noise_level);
  acted.batch[rl_keys::kOldLogp] = acted.result.logp;
  return acted;
}

// Consistency: recomputed with the same weights, |difference of logp| < 1e-4 in f32.
TEST(FlowPolicyTest, TheSameWeightsGiveTheSameLogProbabilities) {
  for (const std::string sampler : {"sde", "cps", "noise"}) {
    for (const std::string reduce : {"mean", "sum", "per_step"}) {
      auto c = flow_case(sampler);
      c.policy.flow.joint = c.policy.flow.joint || reduce == "per_step";
      c.policy.flow.logprob_reduce = reduce;
      const auto acted = act(c);
      EXPECT_EQ(acted.result.logp.size(1), acted.net->logp_width());
      const auto again = acted.net->logp(acted.views, acted.batch);
      EXPECT_LT(testing::max_difference(again, acted.result.logp), 1e-4) << sampler << " " << reduce;
      EXPECT_GT(acted.result.logp.abs().max().item<double>(), 0.01) << sampler << " " << reduce;
    }
  }
}

TEST(FlowPolicyTest, TheSameWeightsInBf16GiveNearlyTheSameLogProbabilities) {
  const auto c = flow_case();
  auto acted = act(c);
  ParamView half;
  for (const auto& [name, tensor] : acted.views.at("actor").tensors())
    half.set(name, tensor.detach().to(at::kBFloat16));
  acted.views["actor"] = half;
  const auto keys = testing::row_keys(8);
  const auto rolled = acted.net->act(acted.views, {acted.batch, 9, keys, false, 0.5});
  for (const auto& [name, tensor] : rolled.extra) acted.batch[rl_keys::kExtraPrefix + name] = tensor;
  EXPECT_LT(testing::max_difference(acted.net->logp(acted.views, acted.batch), rolled.logp), 2e-2);
}

TEST(FlowPolicyTest, ActionsAreInsideTheBoundsAndChainsAreKept) {
  const auto acted = act(flow_case(), false, 200);
  const auto action = acted.result.action.view({-1, 3, 2});
  for (std::int64_t d = 0; d < 2; ++d) {
    const auto values = action.select(2, d);
    EXPECT_GE(values.min().item<float>(), d == 0 ? -1 : 0);
    EXPECT_LE(values.max().item<float>(), d == 0 ? 1 : 4);
  }
  ASSERT_EQ(acted.net->extras().size(), 2U);
  for (const auto& extra : acted.net->extras()) {
    auto shape = extra.shape;
    shape.insert(shape.begin(), 200);
    EXPECT_EQ(acted.result.extra.at(extra.name).sizes(), at::IntArrayRef(shape)) << extra.name;
    EXPECT_EQ(acted.result.extra.at(extra.name).scalar_type(), extra.is_integer ? at::kLong : at::kFloat) << extra.name;
  }
  const auto last = acted.result.extra.at("chains").select(1, 4).view({-1, 3, 2}).clamp(-1, 1);
  testing::expect_near(action, at::stack({last.select(2, 0), 2 + 2 * last.select(2, 1)}, 2), 1e-5,
                       "the action is the end of its chain");
}

TEST(FlowPolicyTest, EveryStepDrawsButThoseThatAreIgnored) {
  auto c = flow_case();
  auto index = act(c, false, 400).result.extra.at("denoise_inds");
  EXPECT_EQ(index.min().item<std::int64_t>(), 0);
  EXPECT_EQ(index.max().item<std::int64_t>(), 3);
  c.policy.flow.ignore_last = true;
  index = act(c, false, 400).result.extra.at("denoise_inds");
  EXPECT_EQ(index.max().item<std::int64_t>(), 2);
  c.policy.flow.ignore_first = 1;
  index = act(c, false, 400).result.extra.at("denoise_inds");
  EXPECT_EQ(index.min().item<std::int64_t>(), 1);
  EXPECT_EQ(index.max().item<std::int64_t>(), 2);
}

TEST(FlowPolicyTest, ARowDependsOnItsKeyAlone) {
  const auto c = flow_case();
  const auto acted = act(c);
  const Batch row{{rl_keys::kState, acted.batch.at(rl_keys::kState).narrow(0, 5, 1)}};
  const std::vector<std::uint64_t> key{testing::row_keys(8)[5]};
  const auto alone = acted.net->act(acted.views, {row, 9, key, false, 0.5});
  testing::expect_near(alone.action, acted.result.action.narrow(0, 5, 1), 1e-5, "action");
  testing::expect_near(alone.logp, acted.result.logp.narrow(0, 5, 1), 1e-4, "logp");
}

TEST(FlowPolicyTest, EvaluationTakesTheOdeFromTheSameNoise) {
  const auto c = flow_case();
  const auto drawn = act(c), plain = act(c, /*deterministic=*/true);
  const auto first = [](const Acted& a) { return a.result.extra.at("chains").select(1, 0); };
  testing::expect_near(first(drawn), first(plain), 0, "initial noise");
  EXPECT_EQ(plain.result.extra.at("denoise_inds").max().item<std::int64_t>(), -1);
  EXPECT_EQ(plain.result.logp.abs().max().item<double>(), 0);
  EXPECT_EQ(plain.result.logp.sizes(), drawn.result.logp.sizes());
}

TEST(FlowPolicyTest, ThePolicyPhaseStartsWithARatioOfOne) {
  for (const std::string sampler : {"sde", "noise"}) {
    auto c = flow_case(sampler);
    c.algorithm.policy_gradient.logprob_level = Granularity::chunk;
    c.algorithm.policy_gradient.reward_level = "chunk";
    c.algorithm.policy_gradient.entropy_bonus = 0.01;
    auto acted = act(c);
    acted.batch[rl_keys::kAdvantage] = at::linspace(-1, 1, 8).unsqueeze(1);
    acted.batch[rl_keys::kOldValue] = acted.result.value;
    acted.batch[rl_keys::kReturn] = acted.result.value + 1;
    const auto gradients = testing::empty_gradients(acted.net->units());
    const auto result = testing::run_tape(*acted.net->objective("policy"), acted.params, acted.batch, 1.0, gradients);
    EXPECT_NEAR(result.metrics.at("actor/ratio"), 1, 1e-3) << sampler;
    for (std::size_t u = 0; u < gradients.size(); ++u) {
      for (const auto& [name, tensor] : gradients[u].tensors()) {
        EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << name;
        EXPECT_GT(tensor.abs().max().item<double>(), 0) << name << " " << sampler;
      }
    }
  }
}

TEST(FlowPolicyTest, StepsOfAChainStandBehindTheirAction) {
  auto c = flow_case("noise");
  c.policy.flow.logprob_reduce = "per_step";
  const auto model = *FlowModel::make(c.policy, c.algorithm, c.shape);
  const auto steps = at::arange(4 * 6, at::kFloat).view({1, 4, 6});
  const auto flat = model->flatten(steps);
  ASSERT_EQ(flat.sizes(), at::IntArrayRef({1, 24}));
  // action 1 of the chunk: dimensions 2 and 3 of every step
  testing::expect_near(flat.narrow(1, 8, 8),
                       at::tensor({2., 3., 8., 9., 14., 15., 20., 21.}).view({1, 8}).to(at::kFloat), 0, "action 1");
}

TEST(FlowPolicyTest, GrpoHasNoCritic) {
  auto c = flow_case();
  c.algorithm.name = Algorithm::grpo;
  const auto acted = act(c);
  EXPECT_EQ(acted.net->value_width(), 0);
  EXPECT_FALSE(acted.result.value.defined());
  EXPECT_THAT(acted.net->acting_units(), ::testing::ElementsAre("actor"));
}

/// One demonstrated chunk per state, linear in it.
Batch demonstrations(const PolicyShape& shape, std::int64_t rows, std::uint64_t seed) {
  auto batch = testing::draw_observation(shape, rows, seed);
  const auto chunk = (0.5 * batch.at(rl_keys::kState).narrow(1, 0, 1)).tanh().expand({rows, 6}).view({rows, 3, 2});
  batch[rl_keys::kAction] = at::stack({chunk.select(2, 0), 2 + 2 * chunk.select(2, 1)}, 2).view({rows, 6});
  const auto keys = testing::row_keys(rows, seed * 1000);
  draw_flow_targets(4, keys, 6, /*held_out=*/false, batch);
  return batch;
}

TEST(FlowPolicyTest, ClonedDemonstrationsAreActedOut) {
  auto c = flow_case();
  c.policy.hidden = {48, 48};
  const auto net = *make_flow_policy_net(c.policy, c.algorithm, c.shape);
  const auto objective = net->objective("sft");
  const auto params = testing::start_parameters(net->units(), 5);
  const auto gradients = testing::empty_gradients(net->units());
  testing::SmallAdam adam(0.003);
  for (std::uint64_t step = 1; step <= 250; ++step) {
    testing::run_tape(*objective, params, demonstrations(c.shape, 64, step), 1.0, gradients);
    adam.step(params[0], gradients[0]);
  }
  for (const auto& [name, gradient] : gradients[1].tensors())
    EXPECT_EQ(gradient.abs().max().item<double>(), 0) << "the critic is not trained";
  const auto batch = demonstrations(c.shape, 64, 5000);
  const auto keys = testing::row_keys(64);
  const auto acted = net->act(testing::by_name(net->units(), params), {batch, 1, keys, /*deterministic=*/true});
  EXPECT_LT((acted.action - batch.at(rl_keys::kAction)).abs().mean().item<double>(), 0.35) << "of a range of 2 and 4";
}

/// Mean pay of a policy that is trained where chunks near (0.5, 0.5 of each range) pay.
double train_on_pay(const PolicyCase& c, int iterations) {
  const auto net = *make_flow_policy_net(c.policy, c.algorithm, c.shape);
  const auto params = testing::start_parameters(net->units(), 5);
  const auto views = testing::by_name(net->units(), params);
  const auto gradients = testing::empty_gradients(net->units());
  const auto objective = net->objective("policy");
  testing::SmallAdam adam(0.006);
  double mean = 0;
  for (int i = 0; i <= iterations; ++i) {
    auto batch = testing::draw_observation(c.shape, 128, static_cast<std::uint64_t>(i));
    const auto keys = testing::row_keys(128, 1000 * static_cast<std::uint64_t>(i + 1));
    const auto acted = net->act(views, {batch, 3, keys, false, c.policy.flow.noise_level});
    const auto unit = (acted.action.view({-1, 3, 2}) - at::tensor({0.5F, 3.0F})) / at::tensor({1.0F, 2.0F});
    const auto pay = -unit.square().mean({1, 2}).unsqueeze(1);
    mean = pay.mean().item<double>();
    batch[rl_keys::kAction] = acted.action;
    batch[rl_keys::kOldLogp] = acted.logp;
    for (const auto& [name, tensor] : acted.extra) batch[rl_keys::kExtraPrefix + name] = tensor;
    batch[rl_keys::kNoiseLevel] = at::scalar_tensor(c.policy.flow.noise_level, at::kDouble);
    batch[rl_keys::kAdvantage] = (pay - pay.mean()) / (pay.std() + 1e-5);
    for (int epoch = 0; epoch < 2; ++epoch) {
      testing::run_tape(*objective, params, batch, 1.0, gradients);
      adam.step(params[0], gradients[0]);
    }
  }
  return mean;
}

TEST(FlowPolicyTest, ActionsThatPayBecomeMoreLikely) {
  for (const std::string sampler : {"sde", "cps", "noise"}) {
    auto c = flow_case(sampler);
    c.algorithm.name = Algorithm::grpo;
    c.algorithm.policy_gradient.logprob_level = Granularity::chunk;
    c.algorithm.policy_gradient.reward_level = "chunk";
    const double before = train_on_pay(c, 0), after = train_on_pay(c, 25);
    EXPECT_GT(after, 0.7 * before) << sampler << ": pay is at most 0; " << before << " before";
  }
}

TEST(FlowPolicyTest, ActionsThatDoNotCountAreNotCloned) {
  const auto c = flow_case();
  const auto model = *FlowModel::make(c.policy, c.algorithm, c.shape);
  const auto params = testing::start_parameters(model->units(), 5);
  auto batch = demonstrations(c.shape, 16, 1);
  const auto loss = [&](const std::vector<bool>& counts) {
    batch[rl_keys::kMask] = at::zeros({16, 3}, at::kBool);
    for (std::size_t k = 0; k < counts.size(); ++k)
      batch[rl_keys::kMask].select(1, static_cast<std::int64_t>(k)).fill_(counts[k]);
    return testing::run_tape(FlowImitationObjective(model), params, batch, 1.0,
                             testing::empty_gradients(model->units()))
        .loss;
  };
  const double each[] = {loss({true, false, false}), loss({false, true, false}), loss({false, false, true})};
  EXPECT_NEAR(loss({true, true, true}), each[0] + each[1] + each[2], 1e-5);
  EXPECT_EQ(loss({false, false, false}), 0);
}

TEST(FlowPolicyTest, WhatCannotWorkIsNamedByItsKey) {
  const auto message = [](const PolicyCase& c) {
    const auto net = make_flow_policy_net(c.policy, c.algorithm, c.shape);
    return net ? std::string("no error") : net.error().message();
  };
  auto discrete = flow_case();
  discrete.shape.choices = 3;
  EXPECT_THAT(message(discrete), ::testing::HasSubstr("policy.kind flow"));
  auto noise = flow_case("noise");
  noise.policy.flow.joint = false;
  EXPECT_THAT(message(noise), ::testing::HasSubstr("policy.flow.joint"));
  auto cps = flow_case("cps");
  cps.policy.flow.ignore_last = false;
  EXPECT_THAT(message(cps), ::testing::HasSubstr("policy.flow.ignore_last"));
  auto sampler = flow_case();
  sampler.policy.flow.sampler = "euler";
  EXPECT_THAT(message(sampler), ::testing::HasSubstr("policy.flow.sampler is euler"));
  auto unbounded = flow_case();
  unbounded.shape.action_low[1] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(message(unbounded), ::testing::HasSubstr("action dimension 1"));
  auto steps = flow_case();
  steps.policy.flow.logprob_reduce = "per_step";
  EXPECT_THAT(message(steps), ::testing::HasSubstr("policy.flow.logprob_reduce"));
}

}  // namespace
}  // namespace troupe::model
