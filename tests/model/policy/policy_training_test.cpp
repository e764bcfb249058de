#include "tests/model/policy/policy_fixture.h"
#include "tests/model/shard/training_harness.h"

namespace troupe::model {
namespace {

/// State after three steps of an engine over `world` ranks on the same two micro-batches.
std::vector<float> train_policy(const std::shared_ptr<const PolicyNet>& net, const PolicyShape& shape, int world,
                                int slots) {
  const auto network = net->objective("policy");
  const auto params = testing::start_parameters(net->units(), 11);
  std::vector<Batch> batches;
  for (std::uint64_t i = 0; i < 2; ++i) batches.push_back(testing::draw_minibatch(*net, params, shape, 16, 30 + i));
  std::vector<std::vector<std::byte>> snapshots(static_cast<std::size_t>(world));
  std::vector<UnitSpec> units;
  std::vector<FlatLayout> layouts;
  run_thread_ranks(world, [&](Collective& collective) {
    EngineOptions options;
    options.param_slots = slots;
    Engine engine(network, options);
    engine.attach(collective);
    engine.initialise(11);
    for (int step = 0; step < 3; ++step) {
      bool is_first = true;
      for (std::size_t j = static_cast<std::size_t>(collective.rank()); j < batches.size();
           j += static_cast<std::size_t>(world)) {
        const auto result = engine.accumulate(batches[j], 0.5, is_first);
        ASSERT_TRUE(result) << result.error().to_string();
        is_first = false;
      }
      const auto vote = engine.vote({}, {});
      ASSERT_TRUE(vote) << vote.error().to_string();
      ASSERT_TRUE(vote->finite);
      engine.commit(1e-3, *vote);
    }
    snapshots[static_cast<std::size_t>(collective.rank())] = snapshot_of(engine);
    if (collective.rank() == 0) {
      units = engine.units();
      layouts = engine.layouts();
    }
  });
  const auto state = full_state(units, layouts, world, snapshots, 3);
  std::vector<float> masters;
  for (const auto& unit : state.values) masters.insert(masters.end(), unit[0].begin(), unit[0].end());
  return masters;
}

class PolicyTrainingTest : public ::testing::TestWithParam<const char*> {
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
  EXPECT_EQ(train_policy(net, c.shape, 1, 3), train_policy(net, c.shape, 2, 3));
}

TEST_P(PolicyTrainingTest, OneParameterSlotIsEnough) {
  auto c = job();
  c.algorithm.explicit_backward = false;
  const auto net = testing::make_net(c);
  EXPECT_EQ(train_policy(net, c.shape, 1, 3), train_policy(net, c.shape, 1, 1));
}

INSTANTIATE_TEST_SUITE_P(Algorithms, PolicyTrainingTest, ::testing::Values("ppo", "grpo", "decoupled_ppo", "vtrace"),
                         [](const auto& param_info) { return std::string(param_info.param); });

}  // namespace
}  // namespace troupe::model
