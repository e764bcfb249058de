#include "model/policy/manual_policy_gradient.h"

#include <thread>

#include "tests/model/policy/policy_fixture.h"

namespace troupe::model {
namespace {

struct ExplicitCase {
  const char* name;
  PolicyCase job;
  std::int64_t rows = 64;
  bool has_scale = false;
};
void PrintTo(const ExplicitCase& c, std::ostream* out) { *out << c.name; }

/// The network sums a row's log-probabilities in f32: that rounding alone moves a ratio by up to 1e-6.
constexpr double kRounding = 2e-6;

PolicyCase with(PolicyCase c, const std::function<void(PolicyCase&)>& change) {
  change(c);
  return c;
}

std::vector<ExplicitCase> cases() {
  const auto continuous = testing::continuous_case();
  const auto discrete = testing::discrete_case();
  const auto plain = [](PolicyCase&) {};
  const auto gradient = [](PolicyCase& c) -> PolicyGradientConfig& { return c.algorithm.policy_gradient; };
  const auto chunked = [](PolicyCase& c) { c.shape.chunk = 4; };
  std::vector<ExplicitCase> list;
  const auto add = [&](const char* name, const PolicyCase& base, const std::function<void(PolicyCase&)>& change,
                       std::int64_t rows = 64, bool has_scale = false) {
    list.push_back({name, with(base, change), rows, has_scale});
  };
  add("Gaussian", continuous, plain);
  add("GaussianOneRow", continuous, plain, 1);
  add("GaussianManyRows", continuous, plain, 1000);
  add("GaussianScaled", continuous, plain, 64, true);
  add("Categorical", discrete, plain);
  add("CategoricalScaled", discrete, plain, 33, true);
  const auto masked = testing::masked_case();
  add("Masked", masked, plain);
  add(
      "MaskedEntropyBonus", masked, [&](PolicyCase& c) { gradient(c).entropy_bonus = 0.05; }, 33, true);
  add("MaskedGrpo", masked, [](PolicyCase& c) { c.algorithm.name = Algorithm::grpo; });
  add("CriticSeesMore", continuous, [](PolicyCase& c) { c.shape.critic_dim = 5; });
  add("Relu", continuous, [](PolicyCase& c) { c.policy.activation = Activation::relu; });
  add("OneLinearLayer", continuous, [](PolicyCase& c) { c.policy.hidden.clear(); });
  add("ThreeLayersOtherCritic", continuous, [](PolicyCase& c) {
    c.policy.hidden = {32, 16, 8};
    c.policy.critic_hidden = {24};
  });
  add("EntropyBonus", continuous, [&](PolicyCase& c) { gradient(c).entropy_bonus = 0.02; });
  add("CategoricalEntropyBonus", discrete, [&](PolicyCase& c) { gradient(c).entropy_bonus = 0.05; });
  add("DualClip", continuous, [&](PolicyCase& c) { gradient(c).clip_ratio_c = 1.2; });
  add("ReciprocalClip", discrete, [&](PolicyCase& c) { gradient(c).clip_range = "reciprocal"; });
  add("AsymmetricClip", continuous, [&](PolicyCase& c) { gradient(c).clip_ratio_high = 0.6; });
  add("NarrowLogRatioClamp", continuous, [&](PolicyCase& c) { gradient(c).log_ratio_clamp = 0.3; });
  add("SquaredValueError", continuous, [&](PolicyCase& c) { gradient(c).value_loss = "mse"; });
  add("SmallHuber", continuous, [&](PolicyCase& c) { gradient(c).huber_delta = 0.5; });
  add("NoValueClip", discrete, [&](PolicyCase& c) { gradient(c).value_clip = 0; });
  add("TokenLogp", continuous, [&](PolicyCase& c) {
    gradient(c).logprob_level = Granularity::token;
    gradient(c).entropy_level = Granularity::token;
    gradient(c).entropy_bonus = 0.01;
  });
  add("ChunkPerAction", continuous, [&](PolicyCase& c) {
    chunked(c);
    gradient(c).entropy_bonus = 0.01;
  });
  add("ChunkWithActionLogpAndChunkReward", continuous, [&](PolicyCase& c) {
    chunked(c);
    gradient(c).reward_level = "chunk";
  });
  add("ChunkOfChoicesWhole", discrete, [&](PolicyCase& c) {
    chunked(c);
    gradient(c).reward_level = "chunk";
    gradient(c).logprob_level = Granularity::chunk;
    gradient(c).entropy_level = Granularity::token;
    gradient(c).entropy_bonus = 0.03;
  });
  add("ChunkEntropyUnderActionRewards", discrete, [&](PolicyCase& c) {
    chunked(c);
    gradient(c).entropy_level = Granularity::chunk;
    gradient(c).entropy_bonus = 0.03;
  });
  add("TrajectoryAggregation", continuous, [&](PolicyCase& c) { gradient(c).aggregation = "trajectory"; });
  add(
      "TrajectoryAggregationScaled", discrete, [&](PolicyCase& c) { gradient(c).aggregation = "trajectory"; }, 64,
      true);
  add("GrpoWithoutCritic", continuous, [](PolicyCase& c) { c.algorithm.name = Algorithm::grpo; });
  add("GrpoWithReference", discrete, [&](PolicyCase& c) {
    c.algorithm.name = Algorithm::grpo;
    gradient(c).kl_beta = 0.1;
  });
  add("Decoupled", continuous, [](PolicyCase& c) { c.algorithm.name = Algorithm::decoupled_ppo; });
  add("Vtrace", discrete, [](PolicyCase& c) { c.algorithm.name = Algorithm::vtrace; });
  add("Parity", continuous, [](PolicyCase& c) { c.algorithm.parity = true; });
  return list;
}

/// The networks under policy_gradient_loss itself, so that autograd finds every gradient.
class ByAutograd final : public Network {
 public:
  ByAutograd(const Network& network, const PolicyCase& job)
      : network_(network),
        options_(make_policy_gradient_options(job.algorithm, job.shape.chunk, job.shape.max_episode_steps)) {}
  const std::vector<UnitSpec>& units() const override { return network_.units(); }
  Carry prologue(const ParamView& params, const Batch& batch) const override {
    return network_.prologue(params, batch);
  }
  at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry, const Batch& batch) const override {
    return network_.block(index, params, carry, batch);
  }
  Outputs epilogue(const ParamView&, const Carry& carry, const Batch& batch) const override {
    auto inputs = policy_gradient_inputs(batch);
    const auto l = inputs.old_logp.size(1), v = carry.x.size(1) - 2 * l;
    inputs.logp = carry.x.narrow(1, 0, l);
    inputs.entropy = carry.x.narrow(1, l, l);
    if (v > 0) inputs.value = carry.x.narrow(1, 2 * l, v);
    if (options_.kl_beta == 0) inputs.reference_logp = at::Tensor();
    auto loss = policy_gradient_loss(inputs, options_);
    return {loss.loss, std::move(loss.metrics), {}};
  }

 private:
  const Network& network_;
  const PolicyGradientOptions options_;
};

/// One minibatch in three ways: autograd alone, the generic unit with the loss's manual backward, the manual backward
/// of the unit.
class ExplicitPolicyGradientTest : public ::testing::TestWithParam<ExplicitCase> {
 protected:
  struct Found {
    const char* how;
    MicroResult result;
    std::vector<ParamView> gradients;
  };

  void run(double policy_weight) {
    const auto& c = GetParam();
    const auto net = testing::make_net(c.job);
    const auto network = net->objective("policy");
    ASSERT_NE(network->manual_backward(), nullptr);
    const auto params = testing::start_parameters(net->units(), 5, 0.05);
    batch_ = testing::draw_minibatch(*net, params, c.job.shape, c.rows, 9);
    if (c.has_scale) batch_[rl_keys::kLossScale] = at::tensor({2.0f / 64, 1.5f / 64});
    batch_[rl_keys::kPolicyWeight] = at::scalar_tensor(policy_weight, at::kFloat);
    const auto find = [&](const char* how, const auto& program) {
      auto gradients = testing::empty_gradients(net->units());
      auto result = program(gradients);
      return Found{how, std::move(result), std::move(gradients)};
    };
    want_ = find("autograd",
                 [&](auto& g) { return testing::run_tape(ByAutograd(*network, c.job), params, batch_, 0.5, g); });
    got_ = {find("generic unit", [&](auto& g) { return testing::run_tape(*network, params, batch_, 0.5, g); }),
            find("explicit", [&](auto& g) { return network->manual_backward()->run(params, batch_, 0.5, g); })};
  }

  Batch batch_;
  Found want_;
  std::vector<Found> got_;
};

TEST_P(ExplicitPolicyGradientTest, GradientsEqualAutograds) {
  run(1.0);
  for (const auto& got : got_) {
    SCOPED_TRACE(got.how);
    for (std::size_t u = 0; u < want_.gradients.size(); ++u) {
      for (const auto& [name, want] : want_.gradients[u].tensors()) {
        EXPECT_LE(testing::relative_l2(got.gradients[u][name], want), kRounding)
            << name << ", norm " << want.norm().item<double>();
      }
    }
  }
}

TEST_P(ExplicitPolicyGradientTest, LossAndMetricsEqualAutograds) {
  run(1.0);
  for (const auto& got : got_) {
    SCOPED_TRACE(got.how);
    EXPECT_NEAR(got.result.loss, want_.result.loss, kRounding * (1 + std::abs(want_.result.loss)));
    for (const auto& [name, value] : want_.result.metrics) {
      ASSERT_TRUE(got.result.metrics.contains(name)) << name;
      EXPECT_NEAR(got.result.metrics.at(name), value, kRounding * (1 + std::abs(value))) << name;
    }
    EXPECT_EQ(got.result.metrics.size(), want_.result.metrics.size());
  }
}

TEST_P(ExplicitPolicyGradientTest, TheActorStandsStillWhileOnlyTheCriticLearns) {
  run(0.0);
  for (const auto& got : got_) {
    for (const auto& [name, gradient] : got.gradients[0].tensors())
      EXPECT_EQ(gradient.abs().max().item<double>(), 0.0) << got.how << ", " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, ExplicitPolicyGradientTest, ::testing::ValuesIn(cases()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(ExplicitPolicyGradientRowsTest, RowsThatAreNotFiniteAreLeftOutAsByTheNetwork) {
  const auto job = testing::continuous_case();
  const auto net = testing::make_net(job);
  const auto network = net->objective("policy");
  const auto params = testing::start_parameters(net->units(), 5, 0.05);
  auto batch = testing::draw_minibatch(*net, params, job.shape, 16, 9);
  batch[rl_keys::kMask].fill_(true);
  batch[rl_keys::kAdvantage][3][0] = std::numeric_limits<float>::infinity();
  batch[rl_keys::kReturn][7][0] = std::nan("");
  auto want = testing::empty_gradients(net->units()), got = testing::empty_gradients(net->units());
  testing::run_tape(*network, params, batch, 1.0, want);
  const auto result = network->manual_backward()->run(params, batch, 1.0, got);
  EXPECT_EQ(result.metrics.at("nonfinite_samples"), 2.0);
  EXPECT_LE(testing::relative_l2(got[0]["actor.0.weight"], want[0]["actor.0.weight"]), kRounding);
}

TEST(ExplicitPolicyGradientRowsTest, AnEmptyGradientViewLeavesItsUnitOut) {
  const auto job = testing::discrete_case();
  const auto net = testing::make_net(job);
  const auto params = testing::start_parameters(net->units(), 5, 0.05);
  const auto batch = testing::draw_minibatch(*net, params, job.shape, 16, 9);
  auto gradients = testing::empty_gradients(net->units());
  gradients[0] = ParamView();
  net->objective("policy")->manual_backward()->run(params, batch, 1.0, gradients);
  EXPECT_TRUE(gradients[1]["critic.0.weight"].isfinite().all().item<bool>());
}

TEST(ExplicitPolicyGradientRowsTest, ThreadsDoNotShareTheirMemory) {
  const auto job = testing::continuous_case();
  const auto net = testing::make_net(job);
  const auto network = net->objective("policy");
  const auto params = testing::start_parameters(net->units(), 5, 0.05);
  std::vector<Batch> batches;
  for (std::uint64_t i = 0; i < 3; ++i) batches.push_back(testing::draw_minibatch(*net, params, job.shape, 16, 9 + i));
  std::vector<double> alone, together(batches.size());
  for (const auto& batch : batches)
    alone.push_back(network->manual_backward()->run(params, batch, 1.0, testing::empty_gradients(net->units())).loss);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        together[i] =
            network->manual_backward()->run(params, batches[i], 1.0, testing::empty_gradients(net->units())).loss;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(together, alone);
}

TEST(ExplicitPolicyGradientRowsTest, AnyNumberOfThreadsGivesTheSameBits) {
  auto job = testing::continuous_case();
  // with the wide one, threads share each layer where there are four or more
  for (const std::int64_t width : {16, 256}) {
    job.policy.hidden = {width, width};
    const auto net = testing::make_net(job);
    const auto params = testing::start_parameters(net->units(), 5, 0.05);
    const auto batch = testing::draw_minibatch(*net, params, job.shape, 128, 9);
    testing::expect_same_bits_on_any_threads(*net, "policy", params, batch);
  }
}

TEST(ExplicitPolicyGradientRowsTest, AMinibatchCutFromLargerTensorsIsTheSame) {
  auto job = testing::discrete_case();
  job.shape.chunk = 2;
  const auto net = testing::make_net(job);
  const auto params = testing::start_parameters(net->units(), 5, 0.05);
  const auto batch = testing::draw_minibatch(*net, params, job.shape, 16, 9);
  Batch cut;
  for (const auto& [key, tensor] : batch)
    cut[key] = tensor.dim() == 2 ? at::cat({tensor, tensor}, 1).narrow(1, 0, tensor.size(1)) : tensor;
  const auto run = [&](const Batch& b) {
    auto gradients = testing::empty_gradients(net->units());
    net->objective("policy")->manual_backward()->run(params, b, 1.0, gradients);
    return gradients[0]["actor.0.weight"];
  };
  EXPECT_TRUE(run(cut).equal(run(batch)));
}

TEST(ExplicitPolicyGradientRowsTest, TheSwitchLeavesAutogradAlone) {
  auto job = testing::continuous_case();
  job.algorithm.explicit_backward = false;
  EXPECT_EQ(testing::make_net(job)->objective("policy")->manual_backward(), nullptr);
}

}  // namespace
}  // namespace troupe::model
