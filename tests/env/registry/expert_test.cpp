#include "env/registry/expert.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "env/arm7/arm7_env.h"
#include "env/episode_seed.h"
#include "tests/env/solo_env.h"

namespace troupe::env {
namespace {

using ::testing::HasSubstr;

/// The observation of the state profile.
std::vector<float> state_of(const SoloEnv& env) {
  const auto& bytes = env.fields().front();
  std::vector<float> state(bytes.size() / sizeof(float));
  std::memcpy(state.data(), bytes.data(), bytes.size());
  return state;
}

/// The number called `name` in an observation.
double named(const Expert& expert, const std::vector<float>& state, const std::string& name) {
  const auto names = expert.state_names();
  const auto at = std::find(names.begin(), names.end(), name);
  EXPECT_NE(at, names.end()) << name;
  return at == names.end() ? 0 : static_cast<double>(state[static_cast<std::size_t>(at - names.begin())]);
}

class ExpertTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  std::string id_{GetParam()};
  std::unique_ptr<Expert> expert_ = make_expert(GetParam()).value();
};

TEST_P(ExpertTest, ReadsTheFirstProfileAndGivesItsActions) {
  const auto spec = testing::factory_of(id_)->spec();
  ASSERT_EQ(spec.observation.size(), 1u);
  EXPECT_EQ(spec.observation.front().numel(), static_cast<std::int64_t>(expert_->state_names().size()));
  EXPECT_EQ(spec.action.size, static_cast<std::int64_t>(expert_->action_names().size()));
}

TEST_P(ExpertTest, NamesEveryNumberOnce) {
  for (const auto& names : {expert_->state_names(), expert_->action_names()}) {
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  }
}

TEST_P(ExpertTest, NamesWhatTheNumbersAre) {
  SoloEnv env(id_);
  ASSERT_TRUE(env.reset(7));
  const auto state = state_of(env);
  const auto names = expert_->state_names();
  EXPECT_FLOAT_EQ(named(*expert_, state, "time_left"), 1);
  EXPECT_EQ(named(*expert_, state, "gripper_told"), -1);
  const bool has_cube = std::find(names.begin(), names.end(), "cube_x") != names.end();
  const std::string thing = has_cube ? "cube" : "goal";
  for (const std::string axis : {"x", "y", "z"}) {
    EXPECT_NEAR(named(*expert_, state, thing + "_" + axis) - named(*expert_, state, "tcp_" + axis),
                named(*expert_, state, "tcp_to_" + thing + "_" + axis), 1e-6);
  }
  if (has_cube) {
    EXPECT_NEAR(named(*expert_, state, "cube_z"), kCubeHalf, 1e-3);
  }
}

TEST_P(ExpertTest, SaysTheInstructionOfTheEpisode) {
  const auto env = testing::factory_of(id_)->make().value();
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    ASSERT_TRUE(env->reset(seed, {}));
    EXPECT_EQ(expert_->instruction(seed), static_cast<const Arm7Env&>(*env).instruction());
  }
}

TEST_P(ExpertTest, DoesTheSameAgainAfterAReset) {
  const auto play = [&] {
    SoloEnv env(id_);
    EXPECT_TRUE(env.reset(5));
    expert_->reset();
    std::vector<float> actions;
    for (int step = 0; step < 30; ++step) {
      const auto action = expert_->act(state_of(env));
      actions.insert(actions.end(), action.begin(), action.end());
      EXPECT_TRUE(env.step(action));
    }
    return actions;
  };
  const auto first = play();
  EXPECT_EQ(play(), first);
}

INSTANTIATE_TEST_SUITE_P(Table, ExpertTest, ::testing::ValuesIn(expert_ids()), [](const auto& row) {
  std::string name(row.param);
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name;
});

TEST(ExpertTableTest, AnEnvironmentWithoutOneIsAnErrorThatNamesThoseThatHaveOne) {
  const auto made = make_expert("arm7/push-v1");
  EXPECT_EQ(made.error().code(), Errc::not_found);
  EXPECT_THAT(made.error().message(), HasSubstr("arm7/push-v1 has no scripted controller"));
  for (const std::string_view id : expert_ids()) EXPECT_THAT(made.error().message(), HasSubstr(std::string(id)));
}

}  // namespace
}  // namespace troupe::env
