#include "env/classic/pendulum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/env/solo_env.h"

namespace troupe::testing {
namespace {

TEST(PendulumTest, HangingStillItStaysAndCostsPiSquared) {
  Pendulum pendulum;
  pendulum.set_state(std::vector<double>{std::numbers::pi, 0});
  EXPECT_NEAR(pendulum.advance(0), -std::numbers::pi * std::numbers::pi, 1e-12);
  EXPECT_NEAR(pendulum.state()[1], 0, 1e-12);
}

TEST(PendulumTest, TurnsUnderGravityAndTorque) {
  Pendulum pendulum;
  pendulum.set_state(std::vector<double>{0.5, 1});
  EXPECT_NEAR(pendulum.advance(1.5), -(0.25 + 0.1 + 0.001 * 2.25), 1e-12);
  const double speed = 1 + (15 * std::sin(0.5) + 4.5) * 0.05;
  EXPECT_NEAR(pendulum.state()[1], speed, 1e-12);
  EXPECT_NEAR(pendulum.state()[0], 0.5 + speed * 0.05, 1e-12);
}

TEST(PendulumTest, TorqueAndSpeedAreBounded) {
  Pendulum strong, bounded;
  strong.set_state(std::vector<double>{0.1, 7.99});
  bounded.set_state(std::vector<double>{0.1, 7.99});
  EXPECT_EQ(strong.advance(50), bounded.advance(2));
  EXPECT_EQ(strong.state(), bounded.state());
  EXPECT_EQ(strong.state()[1], 8);
}

TEST(PendulumTest, TheAngleIsNotWrappedInTheStateButInTheCost) {
  Pendulum pendulum;
  pendulum.set_state(std::vector<double>{6 * std::numbers::pi + 0.25, 0});
  EXPECT_NEAR(pendulum.advance(0), -0.0625, 1e-12);
  EXPECT_GT(pendulum.state()[0], 18);
}

TEST(PendulumTest, ObservesTheAngleAsAPointOfTheCircle) {
  auto made = std::make_unique<Pendulum>();
  Pendulum& pendulum = *made;
  SoloEnv env(std::move(made));
  pendulum.set_state(std::vector<double>{2, -3});
  env.step(std::vector<float>{0}).value();
  EXPECT_FLOAT_EQ(static_cast<float>(env.element(0, 0)), static_cast<float>(std::cos(pendulum.state()[0])));
  EXPECT_FLOAT_EQ(static_cast<float>(env.element(0, 1)), static_cast<float>(std::sin(pendulum.state()[0])));
  EXPECT_FLOAT_EQ(static_cast<float>(env.element(0, 2)), static_cast<float>(pendulum.state()[1]));
  EXPECT_FALSE(env.terminated());
}

}  // namespace
}  // namespace troupe::testing
