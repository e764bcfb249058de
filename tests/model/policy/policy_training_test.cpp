#include "tests/model/policy/policy_fixture.h"
#include "tests/model/shard/training_harness.h"

namespace troupe::model {
namespace {

/// State after three steps of an engine over `world` ranks on the same two micro-batches.
FullState train_policy(const std::shared_ptr<const PolicyNet>& net, const PolicyShape& shape, int world, int slots) {
  const auto params = testing::start_parameters(net->units(), 11);
  std::vector<Batch> batches;
  for (std::uint64_t i = 0; i < 2; ++i) batches.push_back(testing::draw_minibatch(*net, params, shape, 16, 30 + i));
  return state_after(world, net->objective("policy"), {.param_slots = slots}, 11, [&](Engine& engine) {
    for (int step = 0; step < 3; ++step) {
      bool is_first = true;
      for (auto j = static_cast<std::size_t>(engine.rank()); j < batches.size(); j += static_cast<std::size_t>(world)) {
        engine.accumulate(batches[j], 0.5, is_first).value();
        is_first = false;
      }
      const auto vote = engine.vote({}, {});
      ASSERT_TRUE(vote->finite);
      engine.commit(1e-3, *vote);
    }
  });
}

class PolicyTrainingTest : public ::testing::TestWithParam<Algorithm> {
 protected:
  testing::PolicyCase job() const {
    auto c = testing::continuous_case();
    c.algorithm.name = GetParam();
    return c;
  }
};

TEST_P(PolicyTrainingTest, TwoRanksTrainToTheBitsOfOne) {
  const auto c = job();
  const auto net = testing::make_net(c);
  EXPECT_TRUE(train_policy(net, c.shape, 1, 3) == train_policy(net, c.shape, 2, 3));
}

TEST_P(PolicyTrainingTest, OneParameterSlotIsEnough) {
  auto c = job();
  c.algorithm.explicit_backward = false;
  const auto net = testing::make_net(c);
  EXPECT_TRUE(train_policy(net, c.shape, 1, 3) == train_policy(net, c.shape, 1, 1));
}

INSTANTIATE_TEST_SUITE_P(Algorithms, PolicyTrainingTest,
                         ::testing::Values(Algorithm::ppo, Algorithm::grpo, Algorithm::decoupled_ppo,
                                           Algorithm::vtrace),
                         [](const auto& param_info) { return std::string(enum_name(param_info.param)); });

}  // namespace
}  // namespace troupe::model
