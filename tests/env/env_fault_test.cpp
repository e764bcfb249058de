// Environments that throw, refuse, or give no number, and actions that are none: lost rows, counted, and nothing else.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/env/pool_run.h"
#include "tests/env/scripted_env.h"

namespace troupe::testing {
namespace {

/// Each way in which a row is lost.
class EnvFaultTest : public ::testing::TestWithParam<float> {};

TEST_P(EnvFaultTest, TheRowIsLostAndTruncatedAtTheActionThatFailed) {
  auto pool = begun_pool(scripted(), {.num_envs = 1, .chunk = 4});
  const auto block = pool->step(0, std::vector<float>{act::go, GetParam(), act::go, act::go}).value();
  EXPECT_EQ(block.view().lost()[0], 1);
  EXPECT_EQ(block.view().done()[0], 1);
  EXPECT_EQ(block.view().truncated()[1], 1);
  EXPECT_EQ(block.view().valid()[0], 1);
  EXPECT_EQ(block.view().valid()[1] + block.view().valid()[2] + block.view().valid()[3], 0);
  EXPECT_EQ(block.view().reward()[1], 0);
  EXPECT_EQ(block.view().executed()[0], 1);
  EXPECT_EQ(block.view().episode_return()[0], 1);
}

TEST_P(EnvFaultTest, ANewEnvironmentBeginsTheNextEpisode) {
  auto pool = begun_pool(scripted(), {.num_envs = 1});
  const auto lost = pool->step(0, std::vector<float>{GetParam()}).value();
  EXPECT_EQ(lost.view().episode()[0], 1);
  EXPECT_EQ(lost.view().step()[0], 0);
  const auto next = pool->step(0, std::vector<float>{act::go}).value();
  EXPECT_EQ(next.view().lost()[0], 0);
  EXPECT_EQ(next.view().valid()[0], 1);
  EXPECT_EQ(pool->counters().lost, 1);
}

TEST_P(EnvFaultTest, OtherRowsGoOnAsIfNothingHadHappened) {
  auto pool = begun_pool(scripted(), {.num_envs = 5, .seed = 3, .threads = 2});
  auto calm = begun_pool(scripted(), {.num_envs = 5, .seed = 3});
  for (int s = 0; s < 5; ++s) {
    std::vector<float> actions(5, act::go);
    const auto expected = calm->step(0, actions).value();
    actions[2] = GetParam();
    const auto block = pool->step(0, actions).value();
    for (const std::int64_t row : {0, 1, 3, 4}) {
      EnvHistory a, b;
      append_row(pool->spec(), block.view(), row, a);
      append_row(pool->spec(), expected.view(), row, b);
      EXPECT_TRUE(a == b) << "row " << row;
    }
  }
  EXPECT_EQ(pool->counters().lost, 5);
}

TEST_P(EnvFaultTest, InNextStepModeTheNextStepBeginsAnew) {
  auto pool = begun_pool(scripted(), {.num_envs = 1, .reset_mode = ResetMode::next_step});
  EXPECT_EQ(pool->step(0, std::vector<float>{GetParam()}).value().view().lost()[0], 1);
  const auto begun = pool->step(0, std::vector<float>{act::go}).value();
  EXPECT_EQ(begun.view().lost()[0] + begun.view().valid()[0], 0);
  EXPECT_EQ(begun.view().episode()[0], 1);
}

TEST_P(EnvFaultTest, InEpisodeModeTheRowIsFrozenUntilTheReset) {
  auto pool = begun_pool(scripted(), {.num_envs = 1, .reset_mode = ResetMode::episode});
  EXPECT_EQ(pool->step(0, std::vector<float>{GetParam()}).value().view().lost()[0], 1);
  const auto frozen = pool->step(0, std::vector<float>{act::go}).value();
  EXPECT_EQ(frozen.view().lost()[0] + frozen.view().valid()[0] + frozen.view().done()[0], 0);
  const auto begun = begin(*pool, 0, 9);
  EXPECT_EQ(begun.view().lost()[0], 0);
  EXPECT_EQ(begun.view().episode()[0], 9);
}

std::string way_name(const ::testing::TestParamInfo<float>& way) {
  if (std::isnan(way.param)) return "NanAction";
  return way.param == act::fail         ? "Throws"
         : way.param == act::refuse     ? "Refuses"
         : way.param == act::bad_reward ? "NanReward"
                                        : "NanObservation";
}
INSTANTIATE_TEST_SUITE_P(Ways, EnvFaultTest,
                         ::testing::Values(act::fail, act::refuse, act::bad_reward, act::bad_observation, kNan),
                         way_name);

TEST(EnvLossTest, ADiscreteActionOutOfRangeLosesItsRow) {
  auto pool = begun_pool(factory_of("CartPole-v1"), {.num_envs = 5});
  const auto block = pool->step(0, std::vector<float>{0, 1, 2, -1, 0.5f}).value();
  for (std::size_t row = 0; row < 5; ++row) EXPECT_EQ(block.view().lost()[row], row >= 2) << row;
}

TEST(EnvLossTest, AResetThatFailsIsTriedOnANewEnvironment) {
  auto script = std::make_shared<EnvScript>();
  auto pool = make_pool(scripted(script), {.num_envs = 1});
  script->failing_resets = 1;
  const auto block = begin(*pool, 0, 4);
  EXPECT_EQ(block.view().lost()[0], 1);
  EXPECT_EQ(block.view().episode()[0], 5);
  EXPECT_EQ(pool->step(0, std::vector<float>{act::go}).value().view().valid()[0], 1);
}

TEST(EnvLossTest, AnEnvironmentThatCannotBeMadeAnewIsTriedAgainInTheNextStep) {
  auto script = std::make_shared<EnvScript>();
  auto pool = begun_pool(scripted(script), {.num_envs = 1});
  script->failing_makes = 2;
  for (int failure = 0; failure < 3; ++failure) {
    EXPECT_EQ(pool->step(0, std::vector<float>{act::fail}).value().view().lost()[0], 1) << failure;
  }
  EXPECT_EQ(pool->step(0, std::vector<float>{act::go}).value().view().valid()[0], 1);
}

TEST(EnvLossTest, AFactoryThatMakesNothingIsAnError) {
  auto script = std::make_shared<EnvScript>();
  script->failing_makes = 1;
  EXPECT_EQ(EnvPool::make(std::make_shared<ScriptedEnvFactory>(script), {.num_envs = 2}).error().code(),
            Errc::unavailable);
}

TEST(EnvLossTest, ALostRowCannotBeDrawn) {
  auto pool = begun_pool(scripted(), {.num_envs = 1, .reset_mode = ResetMode::episode});
  pool->step(0, std::vector<float>{act::fail}).value();
  EXPECT_EQ(pool->render(0, "front", {}).error().code(), Errc::failed_precondition);
}

/// What it allows at an observation is said by the number of the step: nothing after `barren` of them.
class MaskedEnv final : public Env {
 public:
  static inline int barren = 1;
  static inline bool ends_there = false;
  static EnvSpec make_spec() {
    EnvSpec spec;
    spec.id = "masked-test-v1";
    spec.observation = {{.name = "state", .shape = {1}},
                        {.name = "allowed", .shape = {2}, .dtype = EnvDType::u8, .reader = EnvReader::action_mask}};
    spec.action.choices = 2;
    return spec;
  }
  explicit MaskedEnv(EnvSpec spec) : spec_(std::move(spec)) {}
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<void> reset(std::uint64_t, StepSlot out) override {
    step_ = 0;
    show(out);
    return {};
  }
  Result<void> step(std::span<const float>, StepSlot out) override {
    ++step_;
    *out.reward = 1;
    *out.terminated = ends_there && step_ == barren;
    show(out);
    return {};
  }

 private:
  void show(const StepSlot& out) const {
    out.field<float>(0, 1)[0] = static_cast<float>(step_);
    const auto allowed = out.field<std::uint8_t>(1, 2);
    allowed[0] = 0;
    allowed[1] = step_ == barren ? 0 : 1;
  }
  EnvSpec spec_;
  int step_ = 0;
};

TEST(ActionMaskTest, AnObservationThatAllowsNothingLosesItsRow) {
  MaskedEnv::ends_there = false;
  auto pool = begun_pool(make_simple_env_factory<MaskedEnv>("masked-test-v1", {}).value(), {.num_envs = 1});
  const auto lost = pool->step(0, std::vector<float>{1}).value();
  EXPECT_EQ(lost.view().lost()[0], 1);
  EXPECT_EQ(lost.view().valid()[0], 0);
  EXPECT_EQ(pool->counters().lost, 1);
}

TEST(ActionMaskTest, TheLastObservationOfAnEpisodeNeedAllowNothing) {
  MaskedEnv::ends_there = true;
  auto pool = begun_pool(make_simple_env_factory<MaskedEnv>("masked-test-v1", {}).value(), {.num_envs = 1});
  const auto over = pool->step(0, std::vector<float>{1}).value();
  EXPECT_EQ(over.view().lost()[0], 0);
  EXPECT_EQ(over.view().terminated()[0], 1);
}

TEST(ActionMaskTest, ATaskThatEndedAllowsNothingWhereItsEndIsIgnored) {
  MaskedEnv::ends_there = true;
  auto pool = begun_pool(make_simple_env_factory<MaskedEnv>("masked-test-v1", {.max_steps = 9}).value(),
                         {.num_envs = 1, .reset_mode = ResetMode::fixed});
  const auto solved = pool->step(0, std::vector<float>{1}).value();
  EXPECT_EQ(solved.view().lost()[0], 0);
  EXPECT_EQ(solved.view().valid()[0], 1);
}

}  // namespace
}  // namespace troupe::testing
