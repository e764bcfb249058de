#include "model/policy/sac_policy.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>

#include "base/random.h"
#include "model/loss/flow_matching.h"
#include "model/loss/sac_loss.h"
#include "model/policy/sac_objective.h"
#include "tests/model/policy/policy_fixture.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

PolicyCase sac_case() {
  auto c = testing::continuous_case();
  c.algorithm.name = Algorithm::sac;
  c.policy.hidden = {16, 16};
  c.policy.activation = Activation::relu;
  c.shape.action_low.assign(6, -2.0f);
  c.shape.action_high.assign(6, 1.0f);
  return c;
}

std::shared_ptr<const SacModel> make_model(const PolicyCase& c) {
  auto model = SacModel::make(c.policy, c.algorithm, c.shape);
  EXPECT_TRUE(model) << (model ? "" : model.error().to_string());
  return *model;
}

Batch draw_transitions(const PolicyShape& shape, std::int64_t rows, std::uint64_t seed) {
  const auto generator = at::detail::createCPUGenerator(seed);
  auto batch = testing::draw_observation(shape, rows, seed + 100);
  const auto width = shape.chunk * shape.action_dim;
  const auto normal = [&](std::int64_t columns) { return at::randn({rows, columns}, generator, at::kFloat); };
  batch[rl_keys::kAction] = normal(width).tanh();
  batch[rl_keys::kReward] = normal(1);
  if (shape.state_dim > 0) batch[rl_keys::kNextState] = normal(shape.state_dim);
  for (const auto& image : shape.images) {
    batch[rl_keys::kNextImagePrefix + image.name] =
        at::randint(0, 256, {rows, image.height, image.width, image.channels}, generator, at::kByte);
  }
  batch[rl_keys::kContinues] = 0.99 * (at::rand({rows, 1}, generator, at::kFloat) < 0.9).to(at::kFloat);
  batch[rl_keys::kActionNoise] = normal(width);
  batch[rl_keys::kNextNoise] = normal(width);
  return batch;
}

double largest(const ParamView& view) {
  double most = 0;
  for (const auto& [name, tensor] : view.tensors()) {
    const double here = tensor.abs().max().item<double>();
    most = std::isfinite(here) ? std::max(most, here) : here;
  }
  return most;
}

struct PhaseRun {
  MicroResult result;
  std::vector<ParamView> params, gradients;
};
PhaseRun run_phase(const PolicyCase& c, const std::string& phase, const Batch& batch) {
  const auto net = make_sac_policy_net(c.policy, c.algorithm, c.shape);
  EXPECT_TRUE(net) << (net ? "" : net.error().to_string());
  const auto objective = (*net)->objective(phase);
  PhaseRun run{{}, testing::start_parameters((*net)->units(), 3, 0.1), testing::empty_gradients((*net)->units())};
  run.result = testing::run_tape(*objective, run.params, batch, 1.0, run.gradients);
  return run;
}

// y = r + gamma (min Q - alpha logp) by hand: vector 10 of tests/model/loss/vectors_test.cpp.
TEST(SacPolicyTest, TheTargetIsThatOfVectorTen) {
  const auto value = [](double x) { return at::full({1, 1}, x, at::kDouble); };
  const auto next = aggregate_critics(at::tensor({3.0, 2.5}, at::kDouble).view({1, 2}), CriticAggregation::min, {});
  EXPECT_NEAR(
      sac_target(value(1), value(0.8), next, value(-1.2), at::scalar_tensor(0.01, at::kDouble), true).item<double>(),
      3.0096, 1e-5);
}

TEST(SacPolicyTest, TheCriticsPhaseTrainsTheCriticsAlone) {
  const auto c = sac_case();
  const auto run = run_phase(c, "critic", draw_transitions(c.shape, 32, 1));
  EXPECT_EQ(largest(run.gradients[SacModel::kActor]), 0);
  EXPECT_EQ(largest(run.gradients[SacModel::kTemperature]), 0);
  EXPECT_TRUE(run.gradients[SacModel::kTarget].tensors().empty()) << "a target is not trained";
  EXPECT_GT(largest(run.gradients[SacModel::kCritic]), 0);
  EXPECT_DOUBLE_EQ(run.result.metrics.at("sac/critic_loss"), run.result.loss);
}

TEST(SacPolicyTest, TheActorsPhaseTrainsTheActorAndTheTemperatureAlone) {
  const auto c = sac_case();
  const auto run = run_phase(c, "actor", draw_transitions(c.shape, 32, 1));
  EXPECT_GT(largest(run.gradients[SacModel::kActor]), 0);
  EXPECT_EQ(largest(run.gradients[SacModel::kCritic]), 0);
  // alpha = exp(p): d loss / d p = -alpha (mean logp + H_target), H_target = -6 actions
  const double alpha = run.result.metrics.at("sac/alpha"), entropy = run.result.metrics.at("actor/entropy");
  EXPECT_NEAR(run.gradients[SacModel::kTemperature][SacModel::kTemperatureParam].item<double>(),
              -alpha * (-entropy - 6), 1e-4);
}

TEST(SacPolicyTest, TheCriticsLossIsTheMeanSquareOfWhatTheTargetSays) {
  auto c = sac_case();
  c.algorithm.sac.critics = 3;
  c.algorithm.sac.target_subset = 2;
  c.policy.critic_layer_norm = true;
  auto batch = draw_transitions(c.shape, 16, 2);
  batch[rl_keys::kSubset] = at::tensor({2, 0}, at::kLong);
  const auto run = run_phase(c, "critic", batch);
  const auto model = make_model(c);
  const Batch next{{rl_keys::kState, batch.at(rl_keys::kNextState)}};
  const auto sample = model->sample(run.params[SacModel::kActor], next, batch.at(rl_keys::kNextNoise));
  const auto q = model->target_values(run.params[SacModel::kTarget], next, sample.action);
  const auto least = at::minimum(q.select(1, 0), q.select(1, 2)).unsqueeze(1);
  const auto alpha = model->alpha(run.params[SacModel::kTemperature]);
  const auto y =
      batch.at(rl_keys::kReward) + batch.at(rl_keys::kContinues) * (least - alpha * sample.logp.sum(1, true));
  const auto values = model->values(run.params[SacModel::kCritic], batch, batch.at(rl_keys::kAction));
  EXPECT_NEAR(run.result.loss, (values - y).square().mean().item<double>(), 1e-4);
}

TEST(SacPolicyTest, TheExplicitBackwardAgreesWithAutograd) {
  for (const auto aggregation : {CriticAggregation::min, CriticAggregation::mean}) {
    for (const auto temperature : {TemperatureKind::exp, TemperatureKind::softplus, TemperatureKind::fixed}) {
      auto c = sac_case();
      c.algorithm.sac.temperature = temperature;
      c.algorithm.sac.alpha = 0.4;
      c.algorithm.sac.actor_aggregation = c.algorithm.sac.target_aggregation = aggregation;
      c.algorithm.sac.critics = 3;
      const auto batch = draw_transitions(c.shape, 24, 6);
      const auto net = *make_sac_policy_net(c.policy, c.algorithm, c.shape);
      for (const std::string phase : {"critic", "actor"}) {
        const auto generic = run_phase(c, phase, batch);
        const auto* form = net->objective(phase)->manual_backward();
        ASSERT_NE(form, nullptr);
        const auto gradients = testing::empty_gradients(net->units());
        const auto params = testing::start_parameters(net->units(), 3, 0.1);
        const auto result = form->run(params, batch, 1.0, gradients);
        EXPECT_NEAR(result.loss, generic.result.loss, 1e-5) << phase;
        ASSERT_EQ(result.metrics.size(), generic.result.metrics.size()) << phase;
        for (const auto& [name, value] : generic.result.metrics)
          EXPECT_NEAR(result.metrics.at(name), value, 1e-5) << name;
        for (std::size_t u = 0; u < gradients.size(); ++u) {
          for (const auto& [name, want] : generic.gradients[u].tensors())
            testing::expect_near(gradients[u][name], want, 2e-6, phase + " " + name);
        }
      }
    }
  }
}

TEST(SacPolicyTest, AnyNumberOfThreadsGivesTheSameBits) {
  auto c = sac_case();
  // with the wide one, threads share each layer where there are four or more
  for (const std::int64_t width : {16, 256}) {
    c.policy.hidden = {width, width};
    const auto net = *make_sac_policy_net(c.policy, c.algorithm, c.shape);
    const auto params = testing::start_parameters(net->units(), 3, 0.1);
    for (const char* phase : {"critic", "actor"})
      testing::expect_same_bits_on_any_threads(*net, phase, params, draw_transitions(c.shape, 128, 6));
  }
}

TEST(SacPolicyTest, NormalisedCriticsHaveNoExplicitBackward) {
  auto c = sac_case();
  c.policy.critic_layer_norm = true;
  const auto net = *make_sac_policy_net(c.policy, c.algorithm, c.shape);
  EXPECT_EQ(net->objective("critic")->manual_backward(), nullptr);
}

TEST(SacPolicyTest, AFixedTemperatureHasNoParameter) {
  auto c = sac_case();
  c.algorithm.sac.temperature = TemperatureKind::fixed;
  c.algorithm.sac.alpha = 0.2;
  const auto run = run_phase(c, "actor", draw_transitions(c.shape, 8, 4));
  EXPECT_TRUE(make_model(c)->units()[SacModel::kTemperature].params.empty());
  EXPECT_NEAR(run.result.metrics.at("sac/alpha"), 0.2, 1e-6);
  EXPECT_EQ(run.result.metrics.count("sac/alpha_loss"), 0U);
}

TEST(SacPolicyTest, TheTemperatureStartsAtAlpha) {
  for (const auto kind : {TemperatureKind::exp, TemperatureKind::softplus}) {
    auto c = sac_case();
    c.algorithm.sac.temperature = kind;
    c.algorithm.sac.alpha = 0.3;
    const auto model = make_model(c);
    const auto params = testing::start_parameters(model->units(), 1);
    EXPECT_NEAR(model->alpha(params[SacModel::kTemperature]).item<double>(), 0.3, 1e-6) << enum_name(kind);
  }
}

TEST(SacPolicyTest, ImagesReachTheCriticsAtBothStates) {
  auto c = sac_case();
  c.policy.kind = PolicyKind::cnn;
  c.policy.cnn_channels = {4, 4, 4};
  c.shape.images.push_back({"rgb.front", 40, 40, 3});
  const auto batch = draw_transitions(c.shape, 3, 5);
  for (const std::string phase : {"critic", "actor"}) {
    const auto run = run_phase(c, phase, batch);
    EXPECT_TRUE(std::isfinite(run.result.loss)) << phase;
    EXPECT_GT(largest(run.gradients[phase == "critic" ? SacModel::kCritic : SacModel::kActor]), 0) << phase;
  }
}

TEST(SacPolicyTest, ARowsActionDependsOnItsKeyAndStaysInsideTheBounds) {
  const auto c = sac_case();
  const auto net = *make_sac_policy_net(c.policy, c.algorithm, c.shape);
  const auto views = testing::by_name(net->units(), testing::start_parameters(net->units(), 3, 0.3));
  const auto observation = testing::draw_observation(c.shape, 5, 8);
  const auto keys = testing::row_keys(5);
  const auto all = net->act(views, {observation, 7, keys});
  EXPECT_LE(all.action.max().item<float>(), 1);
  EXPECT_GE(all.action.min().item<float>(), -2);
  EXPECT_FALSE(all.logp.defined());
  const Batch third{{rl_keys::kState, observation.at(rl_keys::kState).narrow(0, 3, 1)}};
  const std::vector<std::uint64_t> key{keys[3]};
  testing::expect_near(net->act(views, {third, 7, key}).action, all.action.narrow(0, 3, 1), 1e-6, "row 3 alone");
  const auto mode = net->act(views, {observation, 7, keys, /*deterministic=*/true}).action;
  testing::expect_near(net->act(views, {observation, 8, keys, true}).action, mode, 0, "the mode has no seed");
}

TEST(SacPolicyTest, PlainRowsGetTheAnswersOfTensors) {
  const auto c = sac_case();
  const auto net = *make_sac_policy_net(c.policy, c.algorithm, c.shape);
  const auto model = make_model(c);
  const auto views = testing::by_name(net->units(), testing::start_parameters(net->units(), 3, 0.3));
  const auto observation = testing::draw_observation(c.shape, 5, 8);
  const at::Tensor& state = observation.at(rl_keys::kState);
  const auto keys = testing::row_keys(5);
  const auto [mean, log_std] = model->distribution(views.at("actor"), observation);
  const auto noise = keyed_noise(7, rng_stream::policy_action, keys, {model->action_width()});
  ASSERT_TRUE(net->acts_on_rows());
  for (const bool deterministic : {false, true}) {
    const at::Tensor action = at::empty({5, model->action_width()}, at::kFloat);
    net->act_on_rows(views, {.rows = 5,
                             .state = state.const_data_ptr<float>(),
                             .state_dim = state.size(1),
                             .seed = 7,
                             .keys = keys,
                             .deterministic = deterministic,
                             .action = action.data_ptr<float>()});
    EXPECT_TRUE(action.equal(net->act(views, {observation, 7, keys, deterministic}).action)) << "to the bit";
    testing::expect_near(action,
                         deterministic ? squashed_mode(mean, model->range())
                                       : sample_squashed(mean, log_std, noise, model->range()).action,
                         1e-6, "the generic form");
  }
}

TEST(SacPolicyTest, TheTargetHasTheLayoutOfTheCritic) {
  const auto units = make_model(sac_case())->units();
  const auto& target = units[SacModel::kTarget];
  EXPECT_EQ(target.average_of, "critic");
  EXPECT_FALSE(target.trainable);
  ASSERT_EQ(target.params.size(), units[SacModel::kCritic].params.size());
  for (std::size_t i = 0; i < target.params.size(); ++i)
    EXPECT_EQ(target.params[i].shape, units[SacModel::kCritic].params[i].shape);
}

TEST(SacPolicyTest, WhatCannotWorkIsNamedByItsKey) {
  const auto message = [](const PolicyCase& c) {
    const auto model = SacModel::make(c.policy, c.algorithm, c.shape);
    return model ? std::string("no error") : model.error().message();
  };
  auto discrete = sac_case();
  discrete.shape.choices = 3;
  EXPECT_THAT(message(discrete), ::testing::HasSubstr("algorithm.name sac"));
  auto unbounded = sac_case();
  unbounded.shape.action_high[2] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(message(unbounded), ::testing::HasSubstr("action dimension 2"));
  auto cold = sac_case();
  cold.algorithm.sac.alpha = 0;
  EXPECT_THAT(message(cold), ::testing::HasSubstr("algorithm.sac.alpha is 0"));
  auto subset = sac_case();
  subset.algorithm.sac.target_subset = 5;
  EXPECT_THAT(message(subset), ::testing::HasSubstr("algorithm.sac.target_subset is 5"));
  auto gaussian = sac_case();
  gaussian.policy.distribution = "gaussian";
  EXPECT_THAT(message(gaussian), ::testing::HasSubstr("policy.distribution is gaussian"));
}

}  // namespace
}  // namespace troupe::model
