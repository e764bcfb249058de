// What a block's rewards are made of, and what they leave alone.
#include "env/row_reward.h"

#include <gmock/gmock.h>

#include <future>
#include <limits>

#include "env/env_block.h"
#include "tests/env/scripted_env.h"

namespace troupe::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;

std::vector<float> rewards_of(std::span<const float> values) { return {values.begin(), values.end()}; }

/// Ten for each step since the reset before the action, and the number of steps after it; so it shows which
/// observations it was given.
class StepCounts final : public RewardModel {
 public:
  explicit StepCounts(double scale = 1) : scale_(scale) {}
  bool reads_observations() const noexcept override { return true; }
  Result<double> reward(const RewardStep& step) const override {
    const auto count = [](const std::byte* field) { return reinterpret_cast<const float*>(field)[1]; };
    return scale_ * (10 * count(step.observation[0]) + count(step.next_observation[0]));
  }

 private:
  const double scale_;
};

/// A block of scripted environments, whose own reward is the number of the step.
class RowRewardTest : public ::testing::Test {
 protected:
  void open(RewardRules rules, ResetMode mode = ResetMode::same_step, std::int64_t chunk = 2) {
    options_.reward = std::move(rules);
    options_.reset_mode = mode;
    options_.chunk = chunk;
    auto script = std::make_shared<EnvScript>();
    script->on_demand = on_demand_;
    block_ = EnvBlock::make(scripted(script), options_, *executor_).value();
    memory_.resize(static_cast<std::size_t>(block_->layout().bytes));
    view_ = {&block_->layout(), memory_.data()};
    wait([&](auto done) { block_->reset(0, view_, done); });
  }
  /// The rewards of a policy step.
  std::vector<float> step(const std::vector<float>& actions) {
    wait([&](auto done) { block_->step(actions, view_, done); });
    return rewards_of(view_.reward());
  }

  bool on_demand_ = false;
  BlockView view_;

 private:
  template <class Begin>
  void wait(const Begin& begin) {
    const auto written = std::make_shared<std::promise<void>>();
    begin([written] { written->set_value(); });
    ASSERT_EQ(written->get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  }
  EnvBlock::Options options_;
  std::unique_ptr<Executor> executor_ = Executor::make({.threads = 1});
  std::unique_ptr<EnvBlock> block_;
  std::vector<std::byte> memory_;
};

TEST_F(RowRewardTest, TheCoefficientScalesAndThePenaltyIsPaidEveryStep) {
  open({.coef = 3, .step_penalty = 0.5});
  EXPECT_THAT(step({act::go, act::go}), ElementsAre(2.5f, 5.5f));
  EXPECT_THAT(step({act::succeed, act::go}), ElementsAre(8.5f, 0)) << "nothing is paid behind the end";
}

TEST_F(RowRewardTest, ARelativeRewardIsThatOfTheStepMinusThatBefore) {
  open({.coef = 2, .step_penalty = 1, .relative = true});
  // own rewards 1, 2, 3 and, in the next episode, 1
  EXPECT_THAT(step({act::go, act::go}), ElementsAre(2 - 1, 2 - 1));
  EXPECT_THAT(step({act::finish, act::go}), ElementsAre(2 - 1, 0));
  EXPECT_THAT(step({act::go, act::go}), ElementsAre(2 - 1, 2 - 1)) << "a new episode compares with nothing";
}

TEST_F(RowRewardTest, TheReturnIsTheEnvironmentsOwn) {
  open({.coef = 0, .step_penalty = 7});
  step({act::go, act::go});
  EXPECT_EQ(view_.episode_return()[0], 1 + 2) << "of the episode under way";
  step({act::succeed, act::go});
  EXPECT_EQ(view_.episode_return()[0], 1 + 2 + 3);
  EXPECT_EQ(view_.episode_success()[0], 3);
}

TEST_F(RowRewardTest, AnUnendedEpisodeHasItsReturnSoFarAndAFrozenRowNone) {
  open({.coef = -1}, ResetMode::episode);
  step({act::go, act::finish});
  EXPECT_EQ(view_.episode_return()[0], 1 + 2);
  EXPECT_THAT(step({act::go, act::go}), Each(0));
  EXPECT_EQ(view_.episode_return()[0], 0);
}

TEST_F(RowRewardTest, AModelIsShownTheObservationsBeforeAndAfterEveryAction) {
  for (const bool on_demand : {false, true}) {
    on_demand_ = on_demand;
    open({.coef = 0, .model = std::make_shared<StepCounts>(), .weight = 2});
    EXPECT_THAT(step({act::go, act::go}), ElementsAre(2 * 1, 2 * 12));
    EXPECT_THAT(step({act::finish, act::go}), ElementsAre(2 * 23, 0)) << "the final observation is shown";
    EXPECT_THAT(step({act::go, act::go}), ElementsAre(2 * 1, 2 * 12)) << "and the new episode's first";
  }
}

TEST_F(RowRewardTest, ATerminalModelIsAskedAtTheEndAlone) {
  open({.model = std::make_shared<StepCounts>(), .is_terminal = true});
  EXPECT_THAT(step({act::go, act::go}), ElementsAre(1, 2));
  EXPECT_THAT(step({act::go, act::finish}), ElementsAre(3, 4 + 34));
}

TEST_F(RowRewardTest, AModelsRewardThatIsNotFiniteLosesTheRow) {
  open({.model = std::make_shared<StepCounts>(std::numeric_limits<double>::infinity())}, ResetMode::same_step, 1);
  EXPECT_THAT(step({act::go}), ElementsAre(0));
  EXPECT_EQ(view_.lost()[0], 1);
  EXPECT_EQ(view_.valid()[0], 0);
}

TEST_F(RowRewardTest, ARewardThatABlockCannotHoldLosesTheRow) {
  open({.model = std::make_shared<StepCounts>(1e39)}, ResetMode::same_step, 1);
  EXPECT_THAT(step({act::go}), ElementsAre(0));
  EXPECT_EQ(view_.lost()[0], 1);
}

}  // namespace
}  // namespace troupe::testing
