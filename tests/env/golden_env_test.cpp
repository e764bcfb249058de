// Golden environment data, golden/env/README.md: every *.json of the folder is a case, replayed by its kind. CartPole
// and Pendulum are here, the tables in golden_table.cpp and the MuJoCo traces in golden_mujoco_trace.cpp of
// tests/env/mujoco.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "env/classic/cart_pole.h"
#include "env/classic/pendulum.h"
#include "tests/env/trace.h"

namespace troupe::env {
namespace {

TEST(GoldenEnvTest, EveryCaseIsOfAKnownKind) {
  testing::expect_known_kinds("env", {"env_table", "cartpole_trace", "pendulum_trace", "mujoco_trace"}, {});
}

/// A step's results of an environment whose observation is at most four f32 numbers.
struct SmallSlot {
  std::array<float, 4> observation{};
  std::array<std::byte*, 1> fields{reinterpret_cast<std::byte*>(observation.data())};
  double reward = 0;
  bool terminated = false;
  StepSlot slot() {
    return {.observation = fields, .reward = &reward, .terminated = &terminated, .success = nullptr, .info = {}};
  }
};

void expect_observation(const SmallSlot& found, std::span<const double> wanted, double tolerance) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double rounding = std::abs(wanted[i]) * 1.2e-7;  // one unit in the last place of an f32
    ASSERT_NEAR(static_cast<double>(found.observation[i]), wanted[i], tolerance + rounding)
        << "observation[" << i << "]";
  }
}

Result<void> step_lane(BatchEnv& env, const std::vector<float>& action, const StepSlot& out) {
  const std::int64_t lane = 0;
  return env.step({&lane, 1}, action, {&out, 1});
}

class GoldenCartPoleTest : public ::testing::TestWithParam<GoldenCase> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenCartPoleTest);

// Pure arithmetic: one step keeps twelve digits.
TEST_P(GoldenCartPoleTest, EachStepIsReplayedFromTheStateBefore) {
  const Trace trace(GetParam());
  ASSERT_NO_FATAL_FAILURE(trace.require({"action", "state_before", "state_after"}));
  CartPole env;
  SmallSlot out;
  for (std::int64_t i = 0; i < trace.steps(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    env.set_state(trace.at("state_before").row(i));
    ASSERT_TRUE(step_lane(env, trace.action(i), out.slot()));
    const auto wanted = trace.at("state_after").row(i);
    for (std::size_t k = 0; k < wanted.size(); ++k)
      ASSERT_NEAR(env.state()[k], wanted[k], 1e-12 * (1 + std::abs(wanted[k]))) << "state[" << k << "]";
  }
}

// The pole is unstable, so a rounding in one step is a different episode 400 steps later: operations are in the
// reference's order.
TEST_P(GoldenCartPoleTest, TraceIsReplayedFromItsResets) {
  const Trace trace(GetParam());
  ASSERT_NO_FATAL_FAILURE(trace.require({"action", "state_before"}));
  CartPole env;
  SmallSlot out;
  std::int64_t elapsed = 0;
  for (std::int64_t i = 0; i < trace.steps(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    if (trace.starts_episode(i)) {
      env.set_state(trace.at("state_before").row(i));
      elapsed = 0;
    }
    ASSERT_TRUE(step_lane(env, trace.action(i), out.slot()));
    ++elapsed;
    if (trace.has("state_after")) {
      ASSERT_NO_FATAL_FAILURE(testing::expect_near(env.state(), trace.at("state_after").row(i),
                                                   1e-12 * static_cast<double>(elapsed), "state"));
    }
    if (trace.has("obs")) {
      ASSERT_NO_FATAL_FAILURE(expect_observation(out, trace.at("obs").row(i), 1e-12 * static_cast<double>(elapsed)));
    }
    ASSERT_NO_FATAL_FAILURE(trace.expect_value("reward", i, out.reward, 0));
    ASSERT_NO_FATAL_FAILURE(trace.expect_value("terminated", i, out.terminated ? 1 : 0, 0));
    ASSERT_NO_FATAL_FAILURE(trace.expect_value("truncated", i, elapsed >= env.spec().max_steps ? 1 : 0, 0));
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenCartPoleTest, ::testing::ValuesIn(golden_cases("env", "cartpole_trace")),
                         golden_case_name);

class GoldenPendulumTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  /// One step as the trace's actions are: f32 through the interface, f64 in full precision.
  void step(Pendulum& env, const Trace& trace, std::int64_t i, SmallSlot& out) {
    if (trace.at("action").is_double) {
      out.reward = env.advance(trace.at("action")[i]);
      out.terminated = false;
      const auto state = env.state();
      out.observation = {static_cast<float>(std::cos(state[0])), static_cast<float>(std::sin(state[0])),
                         static_cast<float>(state[1])};
    } else {
      ASSERT_TRUE(step_lane(env, trace.action(i), out.slot()));
    }
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenPendulumTest);

// The reference computes the torque's share in the action's dtype.
TEST_P(GoldenPendulumTest, EachStepIsReplayedFromTheStateBefore) {
  const Trace trace(GetParam());
  ASSERT_NO_FATAL_FAILURE(trace.require({"action", "state_before", "state_after"}));
  const double tolerance = trace.at("action").is_double ? 1e-12 : 5e-8;
  Pendulum env;
  SmallSlot out;
  for (std::int64_t i = 0; i < trace.steps(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    env.set_state(trace.at("state_before").row(i));
    ASSERT_NO_FATAL_FAILURE(step(env, trace, i, out));
    ASSERT_NO_FATAL_FAILURE(testing::expect_near(env.state(), trace.at("state_after").row(i), tolerance, "state"));
    ASSERT_NO_FATAL_FAILURE(trace.expect_value("reward", i, out.reward, 1e-7));
    if (trace.has("obs")) {
      ASSERT_NO_FATAL_FAILURE(expect_observation(out, trace.at("obs").row(i), tolerance));
    }
  }
}

TEST_P(GoldenPendulumTest, TraceIsReplayedFromItsResets) {
  const Trace trace(GetParam());
  ASSERT_NO_FATAL_FAILURE(trace.require({"action", "state_before", "state_after"}));
  const double tolerance = trace.at("action").is_double ? 1e-12 : 1e-5;
  Pendulum env;
  SmallSlot out;
  std::int64_t elapsed = 0;
  for (std::int64_t i = 0; i < trace.steps(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    if (trace.starts_episode(i)) {
      env.set_state(trace.at("state_before").row(i));
      elapsed = 0;
    }
    ASSERT_NO_FATAL_FAILURE(step(env, trace, i, out));
    ++elapsed;
    ASSERT_NO_FATAL_FAILURE(testing::expect_near(env.state(), trace.at("state_after").row(i), tolerance, "state"));
    if (trace.has("obs")) {
      ASSERT_NO_FATAL_FAILURE(expect_observation(out, trace.at("obs").row(i), tolerance));
    }
    ASSERT_NO_FATAL_FAILURE(trace.expect_value("terminated", i, out.terminated ? 1 : 0, 0));
    ASSERT_NO_FATAL_FAILURE(trace.expect_value("truncated", i, elapsed >= env.spec().max_steps ? 1 : 0, 0));
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenPendulumTest, ::testing::ValuesIn(golden_cases("env", "pendulum_trace")),
                         golden_case_name);

}  // namespace
}  // namespace troupe::env
