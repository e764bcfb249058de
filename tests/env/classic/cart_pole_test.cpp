#include "env/classic/cart_pole.h"

#include <gtest/gtest.h>

#include "tests/env/solo_env.h"

namespace troupe::testing {
namespace {

TEST(CartPoleTest, StartsNearTheMiddle) {
  SoloEnv env(std::make_unique<CartPole>());
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    env.reset(seed).value();
    for (std::size_t i = 0; i < 4; ++i) EXPECT_LE(std::abs(env.element(0, i)), 0.05);
  }
}

TEST(CartPoleTest, PositionsMoveWithTheOldSpeeds) {
  auto made = std::make_unique<CartPole>();
  CartPole& pole = *made;
  SoloEnv env(std::move(made));
  pole.set_state(std::vector<double>{0.5, 1.0, 0.02, -0.5});
  env.step(std::vector<float>{1}).value();
  EXPECT_DOUBLE_EQ(pole.state()[0], 0.5 + 0.02);
  EXPECT_DOUBLE_EQ(pole.state()[2], 0.02 - 0.01);
}

TEST(CartPoleTest, AnUprightPoleIsPushedAsNewtonSays) {
  auto made = std::make_unique<CartPole>();
  CartPole& pole = *made;
  SoloEnv env(std::move(made));
  pole.set_state(std::vector<double>(4));
  env.step(std::vector<float>{1}).value();
  // theta'' = -(F / M) / (l (4/3 - m / M)), x'' = F / M - m l theta'' / M
  const double turning = -(10 / 1.1) / (0.5 * (4.0 / 3 - 0.1 / 1.1));
  EXPECT_NEAR(pole.state()[3], 0.02 * turning, 1e-12);
  EXPECT_NEAR(pole.state()[1], 0.02 * (10 / 1.1 - 0.05 * turning / 1.1), 1e-12);
}

TEST(CartPoleTest, EndsBeyondTheAngleAndBeyondTheTrack) {
  auto made = std::make_unique<CartPole>();
  CartPole& pole = *made;
  SoloEnv env(std::move(made));
  const auto ends = [&](std::vector<double> state) {
    pole.set_state(state);
    env.step(std::vector<float>{1}).value();
    EXPECT_EQ(env.reward(), 1);
    return env.terminated();
  };
  EXPECT_FALSE(ends({2.39, 0, 0, 0}));
  EXPECT_TRUE(ends({2.41, 0, 0, 0}));
  EXPECT_TRUE(ends({-2.41, 0, 0, 0}));
  EXPECT_FALSE(ends({0, 0, 0.209, 0}));
  EXPECT_TRUE(ends({0, 0, 0.21, 0}));
  EXPECT_TRUE(ends({0, 0, -0.21, 0}));
}

}  // namespace
}  // namespace troupe::testing
