// Recorded steps of Gymnasium's MuJoCo tasks: in trajectory mode (the state set where an episode starts, then only
// actions) and step by step.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/env/mujoco/gym_env_case.h"
#include "tests/env/trace.h"

namespace troupe::env {
namespace {

// golden/env/README.md: the same library and the same compiled model.
constexpr double kObservation = 1e-9, kReward = 1e-6;

class GoldenMujocoTraceTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  std::string env_id() const { return GetParam().json.value("env_id", ""); }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenMujocoTraceTest);

/// "info.tendon_length" of width 2 is "tendon_length.0" and "tendon_length.1" here.
void expect_info(const GymEnvCase& env, const Trace& trace, std::int64_t step) {
  for (const auto& [name, table] : trace.tables()) {
    if (name.rfind("info.", 0) != 0) continue;
    const std::string plain = name.substr(5);
    const auto row = table.row(step);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string own = row.size() == 1 ? plain : plain + "." + std::to_string(i);
      ASSERT_NEAR(env.info(own), row[i], kReward * (1 + std::abs(row[i]))) << name;
    }
  }
}

TEST_P(GoldenMujocoTraceTest, TrajectoryIsReplayed) {
  const Trace trace(GetParam());
  ASSERT_NO_FATAL_FAILURE(trace.require({"action", "qpos_before", "qvel_before", "obs"}));
  GymEnvCase env(env_id());
  ASSERT_TRUE(env);
  std::int64_t elapsed = 0;
  for (std::int64_t i = 0; i < trace.steps(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    if (trace.starts_episode(i)) {
      // a case that begins within an episode has the warm start of the steps before it
      const bool midway =
          trace.has("reset_before") && trace.at("reset_before")[i] == 0 && trace.has("qacc_warmstart_before");
      const auto warmstart = midway ? trace.at("qacc_warmstart_before").row(i) : std::span<const double>();
      ASSERT_TRUE(env->set_state(trace.at("qpos_before").row(i), trace.at("qvel_before").row(i), warmstart));
      if (trace.has("obs_before")) {
        ASSERT_NO_FATAL_FAILURE(
            testing::expect_near(env->observation(), trace.at("obs_before").row(i), kObservation, "first obs"));
      }
      elapsed = 0;
    }
    ASSERT_NO_FATAL_FAILURE(env.step(trace.action(i)));
    ++elapsed;
    ASSERT_NO_FATAL_FAILURE(testing::expect_near(env.observation(), trace.at("obs").row(i), kObservation, "obs"));
    ASSERT_NO_FATAL_FAILURE(trace.expect_value("reward", i, env.reward, kReward));
    ASSERT_NO_FATAL_FAILURE(trace.expect_value("terminated", i, env.terminated ? 1 : 0, 0));
    ASSERT_NO_FATAL_FAILURE(trace.expect_value("truncated", i, elapsed >= env->spec().max_steps ? 1 : 0, 0));
    ASSERT_NO_FATAL_FAILURE(trace.expect_value("ncon_after", i, env->data().ncon, 0));
    ASSERT_NO_FATAL_FAILURE(expect_info(env, trace, i));
  }
}

TEST_P(GoldenMujocoTraceTest, EachStepIsReplayedFromTheStateBefore) {
  const Trace trace(GetParam());
  ASSERT_NO_FATAL_FAILURE(trace.require({"action", "qpos_before", "qvel_before"}));
  if (!trace.has("qpos_after") || !trace.has("qvel_after")) return;  // a thinner case says nothing here
  GymEnvCase env(env_id());
  ASSERT_TRUE(env);
  const auto expect_state = [](const double* found, std::span<const double> wanted, const char* what) {
    for (std::size_t k = 0; k < wanted.size(); ++k)
      ASSERT_NEAR(found[k], wanted[k], 1e-9 * (1 + std::abs(wanted[k]))) << what << "[" << k << "]";
  };
  for (std::int64_t i = 0; i < trace.steps(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    const auto warmstart =
        trace.has("qacc_warmstart_before") ? trace.at("qacc_warmstart_before").row(i) : std::span<const double>();
    ASSERT_TRUE(env->set_state(trace.at("qpos_before").row(i), trace.at("qvel_before").row(i), warmstart));
    ASSERT_NO_FATAL_FAILURE(env.step(trace.action(i)));
    ASSERT_NO_FATAL_FAILURE(expect_state(env->data().qpos, trace.at("qpos_after").row(i), "qpos"));
    ASSERT_NO_FATAL_FAILURE(expect_state(env->data().qvel, trace.at("qvel_after").row(i), "qvel"));
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenMujocoTraceTest, ::testing::ValuesIn(golden_cases("env", "mujoco_trace")),
                         golden_case_name);

}  // namespace
}  // namespace troupe::env
