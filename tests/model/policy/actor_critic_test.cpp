#include "model/policy/actor_critic.h"

#include "model/policy/cnn.h"
#include "tests/model/policy/policy_fixture.h"

namespace troupe::model {
namespace {

PolicyCase image_case() {
  auto c = testing::continuous_case();
  c.policy.kind = PolicyKind::cnn;
  c.policy.cnn_channels = {4, 5, 6};
  c.shape.state_dim = 3;
  c.shape.images = {{.name = "rgb.front", .height = 36, .width = 44, .channels = 3},
                    {.name = "depth.wrist", .height = 40, .width = 40, .channels = 1, .is_depth = true}};
  return c;
}

PolicyCase chunk_case() {
  auto c = testing::discrete_case();
  c.shape.chunk = 3;
  return c;
}

struct ActCase {
  const char* name;
  PolicyCase job;
};

class ActorCriticTest : public ::testing::TestWithParam<ActCase> {
 protected:
  void SetUp() override {
    net_ = testing::make_net(GetParam().job);
    params_ = testing::start_parameters(net_->units(), 21, 0.05);
    views_ = testing::by_name(net_->units(), params_);
    observation_ = testing::draw_observation(shape(), kRows, 4);
    keys_ = testing::row_keys(kRows);
  }
  const PolicyShape& shape() const { return GetParam().job.shape; }
  ActResult act(bool deterministic = false, std::uint64_t seed = 8) const {
    return net_->act(views_, {observation_, seed, keys_, deterministic});
  }
  std::int64_t numbers() const { return shape().chunk * shape().action_dim; }

  static constexpr std::int64_t kRows = 7;
  std::shared_ptr<const PolicyNet> net_;
  std::vector<ParamView> params_;
  UnitViews views_;
  Batch observation_;
  std::vector<std::uint64_t> keys_;
};

TEST_P(ActorCriticTest, ActionsLogProbabilitiesAndValuesHaveTheWidthsStated) {
  const auto acted = act();
  EXPECT_EQ(acted.action.sizes(), (at::IntArrayRef{kRows, numbers()}));
  EXPECT_EQ(acted.logp.sizes(), (at::IntArrayRef{kRows, net_->logp_width()}));
  EXPECT_EQ(acted.value.sizes(), (at::IntArrayRef{kRows, net_->value_width()}));
  EXPECT_EQ(net_->value_width(), shape().chunk);
}

TEST_P(ActorCriticTest, RecomputedLogProbabilitiesAreThoseOfActing) {
  for (const bool deterministic : {false, true}) {
    const auto acted = act(deterministic);
    auto batch = observation_;
    batch[rl_keys::kAction] = acted.action;
    const auto carry = net_->objective("policy")->prologue(params_[0], batch);
    testing::expect_near(carry.x.narrow(1, 0, net_->logp_width()), acted.logp, 1e-5, deterministic ? "mode" : "sample");
    testing::expect_near(net_->logp(views_, batch), acted.logp, 1e-5, "logp()");
  }
}

TEST_P(ActorCriticTest, TheRatioOfUnchangedWeightsIsOne) {
  const auto acted = act();
  auto batch = testing::draw_minibatch(*net_, params_, shape(), kRows, 3);
  batch.insert_or_assign(rl_keys::kMask, at::ones({kRows, shape().chunk}, at::kBool));
  for (const auto& [key, tensor] : observation_) batch.insert_or_assign(key, tensor);
  batch.insert_or_assign(rl_keys::kAction, acted.action);
  batch.insert_or_assign(rl_keys::kOldLogp, acted.logp);
  auto gradients = testing::empty_gradients(net_->units());
  const auto result = testing::run_tape(*net_->objective("policy"), params_, batch, 1.0, gradients);
  EXPECT_NEAR(result.metrics.at("actor/ratio"), 1.0, 1e-5);
}

TEST_P(ActorCriticTest, ARowAloneDrawsWhatItDrawsInABatch) {
  const auto all = act();
  for (std::int64_t i = 0; i < kRows; ++i) {
    Batch one;
    for (const auto& [key, tensor] : observation_) one[key] = tensor.narrow(0, i, 1).contiguous();
    const std::vector<std::uint64_t> key{keys_[static_cast<std::size_t>(i)]};
    const auto alone = net_->act(views_, {one, 8, key});
    testing::expect_near(alone.action, all.action.narrow(0, i, 1), 1e-6, "action of row " + std::to_string(i));
  }
}

TEST_P(ActorCriticTest, AnotherSeedDrawsOtherActions) {
  EXPECT_FALSE(act(false, 8).action.equal(act(false, 9).action));
}

TEST_P(ActorCriticTest, DeterministicActionsDoNotDependOnTheSeed) {
  EXPECT_TRUE(act(true, 8).action.equal(act(true, 9).action));
}

TEST_P(ActorCriticTest, TheValuePathAloneIsTheValueOfActing) {
  EXPECT_TRUE(net_->value(views_, observation_).equal(act().value));
}

TEST_P(ActorCriticTest, PlainRowsGetTheAnswersOfTensorsToTheBit) {
  ASSERT_EQ(net_->acts_on_rows(), shape().images.empty());
  if (!net_->acts_on_rows()) return;
  const at::Tensor state = observation_.at(rl_keys::kState);
  for (const bool deterministic : {false, true}) {
    const auto wanted = act(deterministic);
    const at::Tensor action = at::empty_like(wanted.action), logp = at::empty_like(wanted.logp),
                     value = at::empty_like(wanted.value), value_alone = at::empty_like(wanted.value);
    RowsToAct rows{.rows = kRows,
                   .state = state.const_data_ptr<float>(),
                   .state_dim = state.size(1),
                   .seed = 8,
                   .keys = keys_,
                   .deterministic = deterministic,
                   .action = action.data_ptr<float>(),
                   .logp = logp.data_ptr<float>(),
                   .value = value.data_ptr<float>()};
    net_->act_on_rows(views_, rows);
    EXPECT_TRUE(action.equal(wanted.action));
    EXPECT_TRUE(logp.equal(wanted.logp));
    EXPECT_TRUE(value.equal(wanted.value));
    rows.action = rows.logp = nullptr;
    rows.value = value_alone.data_ptr<float>();
    net_->act_on_rows(views_, rows);
    EXPECT_TRUE(value_alone.equal(wanted.value));
  }
}

TEST_P(ActorCriticTest, EveryTrainedParameterGetsAGradient) {
  auto batch = testing::draw_minibatch(*net_, params_, shape(), 32, 3);
  auto gradients = testing::empty_gradients(net_->units());
  testing::run_tape(*net_->objective("policy"), params_, batch, 1.0, gradients);
  for (const auto& view : gradients) {
    for (const auto& [name, gradient] : view.tensors()) {
      EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << name;
      EXPECT_GT(gradient.abs().max().item<double>(), 0.0) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, ActorCriticTest,
                         ::testing::Values(ActCase{"Gaussian", testing::continuous_case()},
                                           ActCase{"Categorical", testing::discrete_case()},
                                           ActCase{"ChunkOfChoices", chunk_case()}, ActCase{"Images", image_case()}),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(CnnTest, DepthIsReadInMetresAndColourInParts) {
  const PolicyShape::Image image{.name = "p", .height = 36, .width = 36, .channels = 1};
  const auto cnn = Cnn::make("p", Vision::cnn, image, {4, 5, 6});
  ParamView view;
  for (const ParamSpec& param : cnn->params()) view.set(param.name, at::ones(param.shape));
  const at::Tensor white = at::full({1, 36, 36, 1}, 255, at::kByte), one_metre = at::ones({1, 36, 36, 1});
  testing::expect_near(cnn->forward(view, one_metre), cnn->forward(view, white), 1e-3, "features");
}

TEST(ActorCriticUnitsTest, ActorAndCriticHaveTheirGroupsAndTheLossNoParameters) {
  const auto net = testing::make_net(testing::continuous_case());
  ASSERT_EQ(net->units().size(), 3U);
  EXPECT_EQ(net->units()[0].group, "actor");
  EXPECT_EQ(net->units()[1].group, "critic");
  EXPECT_TRUE(net->units()[2].params.empty());
  EXPECT_FALSE(net->units()[2].trainable);
  EXPECT_EQ(net->acting_units(), (std::vector<std::string>{"actor", "critic"}));
}

TEST(ActorCriticUnitsTest, GrpoHasNoCritic) {
  auto job = testing::discrete_case();
  job.algorithm.name = Algorithm::grpo;
  const auto net = testing::make_net(job);
  EXPECT_EQ(net->value_width(), 0);
  EXPECT_EQ(net->acting_units(), std::vector<std::string>{"actor"});
  const auto params = testing::start_parameters(net->units(), 1);
  const auto observation = testing::draw_observation(job.shape, 2, 4);
  EXPECT_FALSE(
      net->act(testing::by_name(net->units(), params), {observation, 1, testing::row_keys(2)}).value.defined());
}

TEST(ActorCriticUnitsTest, ChunkLevelRewardsTakeOneValue) {
  auto job = chunk_case();
  job.algorithm.policy_gradient.reward_level = "chunk";
  EXPECT_EQ(testing::make_net(job)->value_width(), 1);
}

TEST(ActorCriticUnitsTest, LogStdStartsWhereTheConfigurationSays) {
  auto job = testing::continuous_case();
  job.policy.init_log_std = -0.5;
  const auto params = testing::start_parameters(testing::make_net(job)->units(), 1);
  EXPECT_TRUE(params[0][ActionHead::kLogStd].detach().equal(at::full({6}, -0.5f)));
}

TEST(ActorCriticUnitsTest, GaussianActionsAreNotClipped) {
  auto job = testing::continuous_case();
  job.policy.init_log_std = 2;
  const auto net = testing::make_net(job);
  const auto params = testing::start_parameters(net->units(), 1);
  const auto acted = net->act(testing::by_name(net->units(), params),
                              {testing::draw_observation(job.shape, 8, 4), 1, testing::row_keys(8)});
  EXPECT_GT(acted.action.abs().max().item<double>(), 1.0);
}

void expect_refused(const PolicyCase& job, const std::string& words) {
  const auto net = make_actor_critic_net(job.policy, job.algorithm, job.shape);
  EXPECT_EQ(net.error().code(), Errc::invalid_argument);
  EXPECT_NE(net.error().message().find(words), std::string::npos) << net.error().message();
}

TEST(ActorCriticErrorsTest, ADistributionThatDoesNotFitTheActionsIsRefused) {
  auto discrete = testing::discrete_case();
  discrete.policy.distribution = "gaussian";
  expect_refused(discrete, "policy.distribution is gaussian");
  auto continuous = testing::continuous_case();
  continuous.policy.distribution = "categorical";
  expect_refused(continuous, "policy.distribution is categorical");
  continuous.policy.distribution = "squashed_gaussian";
  expect_refused(continuous, "policy.distribution is squashed_gaussian");
}

TEST(ActorCriticErrorsTest, ACnnWithoutImagesIsRefused) {
  auto job = testing::continuous_case();
  job.policy.kind = PolicyKind::cnn;
  expect_refused(job, "policy.vision is cnn; the environment has no images");
}

TEST(ActorCriticErrorsTest, AnMlpOverImagesAloneIsRefused) {
  auto job = image_case();
  job.policy.kind = PolicyKind::mlp;
  job.shape.state_dim = 0;
  expect_refused(job, "policy.vision is none");
}

TEST(ActorCriticErrorsTest, AnImageTooSmallForTheConvolutionsIsRefused) {
  auto job = image_case();
  job.shape.images[0].height = 20;
  expect_refused(job, "rgb.front");
  job.policy.cnn_channels = {8};
  EXPECT_TRUE(make_actor_critic_net(job.policy, job.algorithm, job.shape));
  job.policy.cnn_channels = {8, 8, 8, 8};
  expect_refused(job, "policy.cnn_channels");
}

/// Columns of the state: four of the actor, two of critics alone, five of the mask.
struct ReaderTest : ::testing::Test {
  PolicyCase job = testing::masked_case();
  std::shared_ptr<const PolicyNet> net = testing::make_net(job);
  std::vector<ParamView> params = testing::start_parameters(net->units(), 21, 0.5);
  UnitViews views = testing::by_name(net->units(), params);
  Batch observation = testing::draw_observation(job.shape, 40, 4);
  std::vector<std::uint64_t> keys = testing::row_keys(40);
  at::Tensor columns(std::int64_t first, std::int64_t count) {
    return observation[rl_keys::kState].narrow(1, first, count);
  }
};

TEST_F(ReaderTest, OnlyAllowedActionsAreTaken) {
  for (const bool deterministic : {false, true}) {
    const auto acted = net->act(views, {observation, 8, keys, deterministic});
    EXPECT_TRUE(columns(6, 5).gather(1, acted.action.to(at::kLong)).eq(1).all().item<bool>());
    auto batch = observation;
    batch[rl_keys::kAction] = acted.action;
    testing::expect_near(net->logp(views, batch), acted.logp, 1e-5, "logp()");
  }
}

TEST_F(ReaderTest, TheActorSeesNeitherTheCriticsColumnsNorTheMask) {
  const auto before = net->act(views, {observation, 8, keys, false});
  columns(4, 2).fill_(7);
  const auto after = net->act(views, {observation, 8, keys, false});
  EXPECT_TRUE(after.action.equal(before.action));
  EXPECT_TRUE(after.logp.equal(before.logp));
  EXPECT_FALSE(after.value.equal(before.value)) << "the critic does";
  columns(6, 5).fill_(1);
  EXPECT_TRUE(net->value(views, observation).equal(after.value)) << "of the mask nobody";
}

TEST_F(ReaderTest, AMaskIsOfOneAction) {
  job.shape.chunk = 2;
  const auto refused = make_actor_critic_net(job.policy, job.algorithm, job.shape);
  EXPECT_NE(refused.error().message().find("env.chunk is 2"), std::string::npos);
}

}  // namespace
}  // namespace troupe::model
