// A policy for robots in an environment: what it is shown and when, and what becomes of its answers. The policy is
// scripted and the environment arm7's.
#include "workers/inference/evaluate/closed_loop.h"

#include <gmock/gmock.h>

#include <cstring>
#include <numeric>

#include "env/registry/registry.h"
#include "env/single_env.h"
#include "workers/inference/agent/episode_runner.h"
#include "workers/record/record_demonstrations.h"

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kState = 31, kAction = 8, kLimit = 20, kSeed = 7;

std::vector<float> floats_of(const NdArray& array) {
  std::vector<float> values(array.data.size() / sizeof(float));
  std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

/// Plans 5 actions whose numbers say which call and row they are of, and keeps what it was shown.
class ScriptedPolicy final : public Policy {
 public:
  ScriptedPolicy() {
    info_.horizon = 5;
    info_.frames_per_call = {1, 2, 3};
  }
  const PolicyInfo& info() const override { return info_; }
  std::vector<Result<ActionChunk>> act(std::span<const Observation> observations) override {
    std::vector<Result<ActionChunk>> answers;
    for (const Observation& seen : observations) {
      ActionChunk chunk{.rows = info_.horizon, .width = kAction, .values = {}};
      // a function of what is seen, so that equal episodes have equal actions
      const std::vector<float> state = floats_of(seen.state.begin()->second);
      for (std::int64_t i = 0; i < info_.horizon * kAction; ++i)
        chunk.values.push_back(0.01F * static_cast<float>(i) - 0.2F + 0.1F * state[0]);
      if (fails_at == static_cast<int>(shown.size()))
        answers.emplace_back(Error{Errc::internal, "the policy call failed"});
      else
        answers.emplace_back(std::move(chunk));
      shown.push_back(seen);
    }
    return answers;
  }
  void reset(const std::string& episode) override { forgotten.push_back(episode); }

  std::vector<Observation> shown;
  std::vector<std::string> forgotten;
  int fails_at = -1;

 private:
  PolicyInfo info_;
};

/// Calls every 4 control steps, two calls a window, frames in the middle and at the end of a chunk.
PolicySpec spec() {
  PolicySpec spec;
  spec.window = {.chunks = 2, .macro_stride = 4, .action_horizon = 5, .video_offsets = {0, 2}};
  spec.embodiment.views = {"ahead"};
  spec.embodiment.cameras = {{"ahead", "observation.images.front"}};
  spec.state = {{.name = "state", .width = kState}};
  spec.action = {{.name = "action", .width = kAction}};
  return spec;
}

EnvConfig arm() {
  EnvConfig env;
  env.id = "arm7/reach-v1";
  env.max_episode_steps = kLimit;
  return env;
}

struct Played {
  std::vector<EvaluationEpisode> records;
  std::string error;
};

Played play(ScriptedPolicy& policy, const PolicySpec& robot, const EpisodeOptions& options,
            const EnvConfig& env = arm(), const std::string& instruction = {}) {
  const auto described = env_spec_of(env);
  EXPECT_TRUE(described);
  auto player = ClosedLoopPlayer::make(policy, robot, *described, instruction);
  if (!player) return {{}, player.error().message()};
  auto records = run_episodes(**player, *described, env, options);
  if (!records) return {{}, records.error().message()};
  return {std::move(*records), ""};
}

std::string refused(const PolicySpec& robot, const EnvConfig& env = arm()) {
  ScriptedPolicy policy;
  return play(policy, robot, {.episodes = 1}, env).error;
}

TEST(ClosedLoopTest, EachCallShowsTheFramesOfAWindowAsTrainingCutsThem) {
  ScriptedPolicy policy;
  const Played played = play(policy, spec(), {.episodes = 1, .first_seed = kSeed});
  ASSERT_EQ(played.error, "");
  EXPECT_EQ(played.records.at(0).length, kLimit);
  const auto frames = [](const Observation& seen) {
    const auto& shape = seen.images.at("ahead").shape;
    return shape.size() == 4 ? shape[0] : 1;
  };
  std::vector<std::int64_t> counts;
  for (const Observation& seen : policy.shown) counts.push_back(frames(seen));
  EXPECT_THAT(counts, ElementsAre(1, 3, 1, 3, 1)) << "calls at control steps 0, 4, 8, 12 and 16, two a window";

  // The frame of a call is the first of the next; those behind it are other ones.
  const auto& first = policy.shown[0].images.at("ahead").data;
  const auto& next = policy.shown[1].images.at("ahead").data;
  ASSERT_EQ(next.size(), 3 * first.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), next.begin()));
  EXPECT_FALSE(std::equal(first.begin(), first.end(), next.begin() + static_cast<std::ptrdiff_t>(first.size())));
}

TEST(ClosedLoopTest, TheFirstCallSeesWhatRecordingsHaveOfTheFirstStep) {
  ScriptedPolicy policy;
  ASSERT_EQ(play(policy, spec(), {.episodes = 1, .first_seed = kSeed}).error, "");
  auto env = SingleEnv::make(make_env_factory(arm()).value()).value();
  ASSERT_TRUE(env.begin(evaluation_seed(kSeed)));
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(kFrameSide * kFrameSide * 3));
  ASSERT_TRUE(env.render("front", {.width = kFrameSide, .height = kFrameSide, .rgb = pixels}));
  const Observation& seen = policy.shown.at(0);
  const auto& image = seen.images.at("ahead");
  EXPECT_THAT(image.shape, ElementsAre(kFrameSide, kFrameSide, 3));
  EXPECT_EQ(std::memcmp(image.data.data(), pixels.data(), pixels.size()), 0);
  const auto state = env.field(0);
  EXPECT_EQ(std::memcmp(seen.state.at("state").data.data(), state.data(), state.size()), 0);
  EXPECT_EQ(seen.prompt, make_expert("arm7/reach-v1").value()->instruction(evaluation_seed(kSeed)));
}

TEST(ClosedLoopTest, TheFirstActionsOfAChunkAreExecutedAndTheRestIsPlannedAnew) {
  ScriptedPolicy policy;
  const Played played = play(policy, spec(), {.episodes = 1, .first_seed = kSeed, .keep_actions = 1});
  ASSERT_EQ(played.error, "");
  const auto& actions = played.records.at(0).actions;
  ASSERT_EQ(actions.size(), static_cast<std::size_t>(kLimit * kAction));
  for (std::int64_t step = 0; step < kLimit; ++step) {
    const float shift = 0.1F * floats_of(policy.shown.at(static_cast<std::size_t>(step / 4)).state.at("state"))[0];
    for (std::int64_t a = 0; a < kAction; ++a) {
      EXPECT_FLOAT_EQ(actions[static_cast<std::size_t>(step * kAction + a)],
                      0.01F * static_cast<float>(step % 4 * kAction + a) - 0.2F + shift)
          << "step " << step;
    }
  }
}

TEST(ClosedLoopTest, EpisodesAreEqualHoweverManyArePlayedAtOnceAndEachIsThePolicysOwn) {
  ScriptedPolicy alone, together;
  const Played one = play(alone, spec(), {.episodes = 5, .first_seed = kSeed, .parallel = 1, .keep_actions = 5});
  const Played three = play(together, spec(), {.episodes = 5, .first_seed = kSeed, .parallel = 3, .keep_actions = 5});
  ASSERT_EQ(one.records.size(), 5u);
  ASSERT_EQ(three.records.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(one.records[i].actions, three.records[i].actions) << i;
    EXPECT_EQ(one.records[i].total_return, three.records[i].total_return) << i;
  }
  EXPECT_EQ(alone.forgotten.size(), 5u) << "each begins with nothing kept of the one before";
  EXPECT_THAT(together.forgotten, ::testing::UnorderedElementsAre("environment 0", "environment 1", "environment 2",
                                                                  ::testing::_, ::testing::_));
}

TEST(ClosedLoopTest, SlicesSayWhichColumnsAKeyHas) {
  PolicySpec robot = spec();
  robot.state = {{.name = "goal", .width = 3}, {.name = "joints", .width = 7}};
  robot.action = {{.name = "gripper", .width = 1}, {.name = "arm", .width = 7}};
  robot.embodiment.state_keys = {"goal", "joints"};
  robot.embodiment.action_keys = {"gripper", "arm"};
  robot.embodiment.slices = {{"state.goal", "observation.state[28:31]"},
                             {"state.joints", "observation.state[0:7]"},
                             {"action.gripper", "action[7:8]"},
                             {"action.arm", "action[:7]"}};
  ScriptedPolicy policy, whole;
  const Played played = play(policy, robot, {.episodes = 1, .first_seed = kSeed, .keep_actions = 1});
  ASSERT_EQ(played.error, "");
  ASSERT_EQ(play(whole, spec(), {.episodes = 1, .first_seed = kSeed}).error, "");
  const auto all = floats_of(whole.shown[0].state.at("state")), goal = floats_of(policy.shown[0].state.at("goal"));
  EXPECT_EQ(goal, std::vector<float>(all.begin() + 28, all.begin() + 31));
  EXPECT_EQ(floats_of(policy.shown[0].state.at("joints")), std::vector<float>(all.begin(), all.begin() + 7));
  // the policy's first number is the gripper, which the environment has last
  const float first = -0.2F + 0.1F * goal[0];
  EXPECT_FLOAT_EQ(played.records[0].actions[7], first);
  EXPECT_FLOAT_EQ(played.records[0].actions[0], first + 0.01F);
}

TEST(ClosedLoopTest, WhatDoesNotFitIsRefusedByName) {
  PolicySpec robot = spec();
  robot.embodiment.cameras = {{"ahead", "observation.images.back"}};
  EXPECT_THAT(refused(robot), HasSubstr("sees 'ahead', and arm7/reach-v1 has no camera 'back'; it has front"));
  robot = spec();
  robot.state[0].width = 14;
  EXPECT_THAT(refused(robot), HasSubstr("'state' is observation.state[0:31] with 14 numbers"));
  robot = spec();
  robot.embodiment.state_keys = {"state"};
  EXPECT_THAT(refused(robot), HasSubstr("slices, such as state.state: \"observation.state[0:31]\""));
  robot = spec();
  robot.action = {{.name = "arm", .width = 7}};
  robot.embodiment.action_keys = {"arm"};
  robot.embodiment.slices = {{"action.arm", "action[0:7]"}};
  EXPECT_THAT(refused(robot), HasSubstr("takes 8 numbers; the policy's action keys do not give each of them once"));
  robot = spec();
  robot.window.macro_stride = 6;
  EXPECT_THAT(refused(robot), HasSubstr("plans 5 actions and is asked every 6 control steps"));
  robot = spec();
  robot.window.video_offsets = {0, 4};
  EXPECT_THAT(refused(robot), HasSubstr("video_offsets [0, 4] do not lie below macro_stride 4"));
  robot = spec();
  robot.window.video_offsets = {0, 1, 2, 3};
  EXPECT_THAT(refused(robot), HasSubstr("takes neither 5 nor 4 frames"));
  EnvConfig env = arm();
  env.profile = "libero";
  EXPECT_THAT(refused(spec(), env), HasSubstr("its field rgb.front is no vector of f32"));
  env = arm();
  env.id = "arm7/push-v1";
  PolicySpec push = spec();
  push.state[0].width = env_spec_of(env)->observation.at(0).numel();
  EXPECT_THAT(refused(push, env), HasSubstr("what the policy is told"));
  env.id = "CartPole-v1";
  EXPECT_THAT(refused(spec(), env), HasSubstr("CartPole-v1 takes one of 2 actions"));
  EnvSpec team = env_spec_of(arm()).value();
  team.agents = 2;
  ScriptedPolicy policy;
  const auto made = ClosedLoopPlayer::make(policy, spec(), team);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), HasSubstr("arm7/reach-v1 has 2 agents"));
}

TEST(ClosedLoopTest, AnInstructionIsToldInEveryEpisode) {
  ScriptedPolicy policy;
  EXPECT_EQ(play(policy, spec(), {.episodes = 2, .first_seed = kSeed}, arm(), "reach for it").error, "");
  for (const Observation& seen : policy.shown) EXPECT_EQ(seen.prompt, "reach for it");
}

TEST(ClosedLoopTest, AFailedCallEndsTheEvaluationAndNamesTheSeed) {
  ScriptedPolicy policy;
  policy.fails_at = 2;
  EXPECT_THAT(play(policy, spec(), {.episodes = 1, .first_seed = kSeed}).error,
              AllOf(HasSubstr("evaluation seed 7"), HasSubstr("the policy call failed")));
}

}  // namespace
}  // namespace troupe::workers
