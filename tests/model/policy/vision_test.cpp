// Policies that look at pictures: what convolutions find, and who sees what.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "model/policy/cnn.h"
#include "model/policy/flow_imitation.h"
#include "model/policy/flow_policy.h"
#include "tests/model/policy/policy_fixture.h"

namespace troupe::model {
namespace {

using ::testing::HasSubstr;

TEST(SpatialKeypointsTest, APeakIsFoundWhereItIs) {
  // 3 rows, 5 columns
  auto maps = at::zeros({1, 2, 3, 5});
  maps[0][0][0][4] = 100;
  maps[0][1][2][1] = 100;
  EXPECT_TRUE(spatial_keypoints(maps).allclose(at::tensor({1.0F, -0.5F, -1.0F, 1.0F}).view({1, 4}), 0, 1e-5));
}

TEST(SpatialKeypointsTest, AFlatMapIsInTheMiddle) {
  EXPECT_TRUE(spatial_keypoints(at::full({2, 3, 4, 6}, 7.0)).allclose(at::zeros({2, 6}), 0, 1e-6));
  EXPECT_TRUE(spatial_keypoints(at::full({2, 3, 1, 1}, 7.0)).allclose(at::zeros({2, 6}), 0, 1e-6));
}

TEST(SpatialKeypointsTest, GradientsAreThoseOfDifferences) {
  const auto generator = at::detail::createCPUGenerator(3);
  const auto at_rest = at::randn({1, 2, 3, 4}, generator, at::kDouble);
  const auto weight = at::randn({1, 4}, generator, at::kDouble);
  const auto value = [&](const at::Tensor& maps) { return (spatial_keypoints(maps) * weight).sum(); };
  const auto maps = at_rest.clone().requires_grad_(true);
  value(maps).backward();
  for (std::int64_t i = 0; i < at_rest.numel(); ++i) {
    auto up = at_rest.clone(), down = at_rest.clone();
    up.view({-1})[i] += 1e-5;
    down.view({-1})[i] -= 1e-5;
    EXPECT_NEAR(maps.grad().view({-1})[i].item<double>(), ((value(up) - value(down)) / 2e-5).item<double>(), 1e-8);
  }
}

/// Two cameras beside three numbers, and two numbers that critics alone read.
PolicyCase seeing_case(PolicyKind kind, Vision vision) {
  PolicyCase c;
  c.policy.kind = kind;
  c.policy.vision = vision;
  c.policy.hidden = {24, 24};
  c.policy.cnn_channels = {4, 5, 6};
  c.shape.state_dim = 5;
  c.shape.critic_dim = 2;
  c.shape.images = {{.name = "rgb.front", .height = 36, .width = 44}, {.name = "rgb.side", .height = 40, .width = 40}};
  c.shape.action_dim = 2;
  c.shape.action_low = {-1, 0};
  c.shape.action_high = {1, 4};
  return c;
}

struct SeeingCase {
  const char* name;
  PolicyKind kind;
  Vision vision;
};

class VisionTest : public ::testing::TestWithParam<SeeingCase>, protected testing::PolicyInUse {
 protected:
  static PolicyCase job(bool critic_sees = true) {
    auto c = seeing_case(GetParam().kind, GetParam().vision);
    c.policy.critic_sees = critic_sees;
    return c;
  }
  /// What changes when a part of the observation does.
  struct Seen {
    bool by_actor, by_critic;
    bool operator==(const Seen&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const Seen& seen) {
      return out << "actor " << seen.by_actor << ", critic " << seen.by_critic;
    }
  };
  Seen change(const std::function<void(Batch&)>& how) {
    const auto before = act();
    for (auto& [name, tensor] : observation_) tensor = tensor.clone();
    how(observation_);
    const auto after = act();
    return {!before.action.equal(after.action), !before.value.equal(after.value)};
  }
};

TEST_P(VisionTest, ActorAndCriticSeeEveryCameraAndTheActorNotWhatIsTheCritics) {
  ASSERT_NO_FATAL_FAILURE(use(job()));
  for (const std::string camera : {"rgb.front", "rgb.side"}) {
    const auto seen = change([&](Batch& batch) { batch.at(rl_keys::kImagePrefix + camera).bitwise_not_(); });
    EXPECT_EQ(seen, (Seen{true, true})) << camera;
  }
  EXPECT_EQ(change([](Batch& batch) { batch.at(rl_keys::kState).select(1, 2).add_(1); }), (Seen{true, true}));
  EXPECT_EQ(change([](Batch& batch) { batch.at(rl_keys::kState).select(1, 3).add_(1); }), (Seen{false, true}));
}

TEST_P(VisionTest, ACriticThatDoesNotSeeReadsItsNumbersAlone) {
  ASSERT_NO_FATAL_FAILURE(use(job(/*critic_sees=*/false)));
  EXPECT_EQ(change([](Batch& batch) { batch.at(rl_keys::kImagePrefix + std::string("rgb.front")).bitwise_not_(); }),
            (Seen{true, false}));
  EXPECT_EQ(change([](Batch& batch) { batch.at(rl_keys::kState).select(1, 4).add_(1); }), (Seen{false, true}));
  const auto critic = std::find_if(net_->units().begin(), net_->units().end(),
                                   [](const UnitSpec& unit) { return unit.name == "critic"; });
  for (const auto& param : critic->params) EXPECT_THAT(param.name, ::testing::Not(HasSubstr("rgb")));
}

TEST_P(VisionTest, LogProbabilitiesAreFoundAgainFromTheStoredPictures) {
  ASSERT_NO_FATAL_FAILURE(use(job()));
  const auto acted = act();
  EXPECT_LT(testing::max_difference(net_->logp(views(), stored(acted)), acted.logp), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Policies, VisionTest,
                         ::testing::Values(SeeingCase{"MlpCnn", PolicyKind::mlp, Vision::cnn},
                                           SeeingCase{"MlpKeypoints", PolicyKind::mlp, Vision::keypoints},
                                           SeeingCase{"FlowCnn", PolicyKind::flow, Vision::cnn},
                                           SeeingCase{"FlowKeypoints", PolicyKind::flow, Vision::keypoints}),
                         [](const auto& instance) { return std::string(instance.param.name); });

std::vector<std::string> tensors_of(const PolicyCase& c) {
  std::vector<std::string> names;
  const auto net = make_policy_net(c.policy, c.algorithm, c.shape);
  for (const auto& unit : (*net)->units()) {
    for (const auto& param : unit.params) names.push_back(unit.name + ":" + param.name);
  }
  return names;
}

TEST(VisionNamesTest, TheEarlierKindIsAnMlpThatSees) {
  auto earlier = seeing_case(PolicyKind::cnn, Vision::none);
  EXPECT_EQ(tensors_of(earlier), tensors_of(seeing_case(PolicyKind::mlp, Vision::cnn)));
}

TEST(VisionNamesTest, WhatDoesNotFitIsNamed) {
  const auto message = [](const PolicyCase& c) {
    const auto net = make_policy_net(c.policy, c.algorithm, c.shape);
    return net ? std::string("no error") : net.error().message();
  };
  auto blind = seeing_case(PolicyKind::flow, Vision::keypoints);
  blind.shape.images.clear();
  EXPECT_THAT(message(blind), HasSubstr("policy.vision is keypoints; the environment has no images"));
  auto nothing = seeing_case(PolicyKind::flow, Vision::none);
  nothing.shape.state_dim = nothing.shape.critic_dim = 0;
  EXPECT_THAT(message(nothing), HasSubstr("policy.vision is none"));
  auto blind_critics = seeing_case(PolicyKind::mlp, Vision::cnn);
  blind_critics.shape.state_dim = blind_critics.shape.critic_dim = 0;
  blind_critics.policy.critic_sees = false;
  for (const Algorithm algorithm : {Algorithm::ppo, Algorithm::sac}) {
    blind_critics.algorithm.name = algorithm;
    EXPECT_THAT(message(blind_critics), HasSubstr("policy.critic_sees is false"));
  }
  auto small = seeing_case(PolicyKind::flow, Vision::keypoints);
  small.shape.images[1].height = 8;
  EXPECT_THAT(message(small), HasSubstr("rgb.side of 8x40 is too small"));
  small.shape.images[1].height = 20;
  EXPECT_THAT(message(small), HasSubstr("rgb.side of 20x40 is too small for policy.vision keypoints"));
}

/// Pictures of a bright dot on black; the action is where it is, (-1, -1) to (1, 1).
Batch dots(std::int64_t rows, std::uint64_t seed) {
  constexpr std::int64_t kSide = 20;
  const auto generator = at::detail::createCPUGenerator(seed);
  const auto corner = at::randint(0, kSide - 3, {rows, 2}, generator, at::kLong);
  auto picture = at::zeros({rows, kSide, kSide, 3}, at::kByte);
  for (std::int64_t row = 0; row < rows; ++row) {
    picture[row]
        .narrow(0, corner[row][1].item<std::int64_t>(), 4)
        .narrow(1, corner[row][0].item<std::int64_t>(), 4)
        .fill_(255);
  }
  Batch batch{{rl_keys::kState, at::zeros({rows, 1})},
              {rl_keys::kAction, corner.to(at::kFloat) * (2.0 / (kSide - 4)) - 1}};
  batch[rl_keys::kImagePrefix + std::string("rgb.top")] = picture;
  std::vector<std::uint64_t> positions;
  for (std::int64_t row = 0; row < rows; ++row) positions.push_back(1000 * seed + static_cast<std::uint64_t>(row));
  draw_flow_targets(seed, positions, 2, /*held_out=*/false, batch);
  return batch;
}

TEST(VisionTrainingTest, AFlowPolicyLearnsToPointAtWhatItSees) {
  PolicyCase c;
  c.policy.kind = PolicyKind::flow;
  c.policy.vision = Vision::keypoints;
  c.policy.cnn_channels = {8};
  c.policy.hidden = {48, 48};
  c.policy.activation = Activation::relu;
  c.algorithm.name = Algorithm::grpo;
  c.shape.state_dim = 1;
  c.shape.images = {{.name = "rgb.top", .height = 20, .width = 20}};
  c.shape.action_dim = 2;
  c.shape.action_low = {-1, -1};
  c.shape.action_high = {1, 1};
  const auto net = *make_flow_policy_net(c.policy, c.algorithm, c.shape);
  const auto params = testing::start_parameters(net->units(), 5);
  const auto gradients = testing::empty_gradients(net->units());
  testing::SmallAdam adam(0.003);
  for (std::uint64_t step = 1; step <= 200; ++step) {
    testing::run_tape(*net->objective("sft"), params, dots(64, step), 1.0, gradients);
    adam.step(params[0], gradients[0]);
  }
  const auto batch = dots(64, 5000);
  const auto keys = testing::row_keys(64);
  const auto acted = net->act(testing::by_name(net->units(), params), {batch, 1, keys, /*deterministic=*/true});
  const double error = (acted.action - batch.at(rl_keys::kAction)).abs().mean().item<double>();
  EXPECT_LT(error, 0.15) << "a policy that does not look is 0.5 off";
}

}  // namespace
}  // namespace troupe::model
