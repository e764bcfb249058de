#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/policy/sac_policy.h"
#include "tests/model/policy/policy_fixture.h"
#include "tests/model/shard/training_harness.h"

namespace troupe::model {
namespace {

testing::PolicyCase small_case() {
  auto c = testing::continuous_case();
  c.algorithm.name = Algorithm::sac;
  c.policy.hidden = {16};
  c.policy.activation = Activation::relu;
  c.shape.state_dim = 3;
  c.shape.action_dim = 2;
  c.shape.action_low = {-1, -2};
  c.shape.action_high = {1, 2};
  return c;
}

std::shared_ptr<const PolicyNet> make_sac(const testing::PolicyCase& c) {
  auto net = make_sac_policy_net(c.policy, c.algorithm, c.shape);
  EXPECT_TRUE(net) << (net ? "" : net.error().to_string());
  return *net;
}

/// Episodes of one step that pay for actions near (0.5, -1).
Batch bandit(const testing::PolicyCase& c, std::int64_t rows, std::uint64_t seed) {
  const auto generator = at::detail::createCPUGenerator(seed);
  auto batch = testing::draw_observation(c.shape, rows, seed + 500);
  const auto action = at::rand({rows, 2}, generator, at::kFloat) * at::tensor({2.0F, 4.0F}) - at::tensor({1.0F, 2.0F});
  batch[rl_keys::kAction] = action;
  batch[rl_keys::kReward] = -((action - at::tensor({0.5F, -1.0F})) / at::tensor({1.0F, 2.0F})).square().sum(1, true);
  batch[rl_keys::kNextState] = batch.at(rl_keys::kState);
  batch[rl_keys::kContinues] = at::zeros({rows, 1});
  batch[rl_keys::kActionNoise] = at::randn({rows, 2}, generator, at::kFloat);
  batch[rl_keys::kNextNoise] = at::randn({rows, 2}, generator, at::kFloat);
  return batch;
}

void run_update(Engine& engine, const PolicyNet& net, const std::vector<Batch>& own, double weight, double lr) {
  for (const std::string phase : {"critic", "actor"}) {
    GroupRates rates{{phase, lr}};
    // a fixed temperature has no group
    if (phase == "actor" && net.units()[SacModel::kTemperature].trainable) rates["temperature"] = lr;
    bool is_first = true;
    for (const auto& batch : own) {
      const auto result = engine.accumulate(batch, weight, is_first, net.objective(phase).get());
      ASSERT_TRUE(result) << result.error().to_string();
      is_first = false;
    }
    const auto vote = engine.vote({}, {});
    ASSERT_TRUE(vote->finite);
    engine.commit(rates, *vote);
  }
  engine.average(0.05);
}

EngineOptions options_of(const PolicyNet& net) {
  EngineOptions options;
  options.param_slots = options.grad_slots = static_cast<int>(net.units().size());
  options.recompute = {RecomputeLevel::none};
  options.clip_grad_norm = 0;
  options.adamw = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0};
  return options;
}

/// The state after three updates on the same two micro-batches.
FullState train_on(int world, const EngineOptions& options, const std::shared_ptr<const PolicyNet>& net,
                   const testing::PolicyCase& c) {
  return state_after(world, net->objective("critic"), options, 11, [&](Engine& engine) {
    for (std::uint64_t step = 0; step < 3; ++step) {
      std::vector<Batch> own;
      for (int j = engine.rank(); j < 2; j += world)
        own.push_back(bandit(c, 8, 10 * step + static_cast<std::uint64_t>(j)));
      run_update(engine, *net, own, 0.5, 1e-2);
    }
  });
}

TEST(SacTrainingTest, TwoRanksTrainToTheBitsOfOne) {
  const auto c = small_case();
  const auto net = make_sac(c);
  EXPECT_TRUE(train_on(1, options_of(*net), net, c) == train_on(2, options_of(*net), net, c));
}

TEST(SacTrainingTest, OneSlotEachAndRecomputationTrainToTheSameBits) {
  auto c = small_case();
  c.algorithm.explicit_backward = false;
  const auto net = make_sac(c);
  auto options = options_of(*net);
  const auto kept = train_on(1, options, net, c);
  options.param_slots = options.grad_slots = 1;
  options.recompute = {RecomputeLevel::full};
  EXPECT_TRUE(train_on(1, options, net, c) == kept);
}

TEST(SacTrainingTest, TheActorFindsTheActionThatPays) {
  auto c = small_case();
  c.policy.hidden = {32, 32};
  c.algorithm.sac.temperature = TemperatureKind::fixed;
  c.algorithm.sac.alpha = 0.02;
  const auto net = make_sac(c);
  run_thread_ranks(1, [&](Collective& collective) {
    Engine engine(net->objective("critic"), options_of(*net));
    engine.attach(collective).value();
    engine.initialise(4);
    for (std::uint64_t step = 0; step < 400; ++step) run_update(engine, *net, {bandit(c, 64, step)}, 1.0, 5e-3);
    const auto views = engine.gather_views(net->acting_units());
    const auto keys = testing::row_keys(64);
    const auto acted = net->act(*views, {testing::draw_observation(c.shape, 64, 9), 1, keys, /*deterministic=*/true});
    const auto mean = acted.action.mean(0);
    EXPECT_NEAR(mean[0].item<double>(), 0.5, 0.2);
    EXPECT_NEAR(mean[1].item<double>(), -1, 0.4);
  });
}

}  // namespace
}  // namespace troupe::model
