#include "env/classic/cart_pole.h"

#include <gtest/gtest.h>

#include "tests/env/solo_env.h"

namespace troupe::testing {
namespace {

class CartPoleTest : public ::testing::Test {
 protected:
  std::unique_ptr<CartPole> made_ = std::make_unique<CartPole>();
  CartPole& pole_ = *made_;
  SoloEnv env_{std::move(made_)};
};

TEST_F(CartPoleTest, StartsNearTheMiddle) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    env_.reset(seed).value();
    for (std::size_t i = 0; i < 4; ++i) EXPECT_LE(std::abs(env_.element(0, i)), 0.05);
  }
}

TEST_F(CartPoleTest, PositionsMoveWithTheOldSpeeds) {
  pole_.set_state(std::vector<double>{0.5, 1.0, 0.02, -0.5});
  env_.step(std::vector<float>{1}).value();
  EXPECT_DOUBLE_EQ(pole_.state()[0], 0.5 + 0.02);
  EXPECT_DOUBLE_EQ(pole_.state()[2], 0.02 - 0.01);
}

TEST_F(CartPoleTest, AnUprightPoleIsPushedAsNewtonSays) {
  pole_.set_state(std::vector<double>(4));
  env_.step(std::vector<float>{1}).value();
  // theta'' = -(F / M) / (l (4/3 - m / M)), x'' = F / M - m l theta'' / M
  const double turning = -(10 / 1.1) / (0.5 * (4.0 / 3 - 0.1 / 1.1));
  EXPECT_NEAR(pole_.state()[3], 0.02 * turning, 1e-12);
  EXPECT_NEAR(pole_.state()[1], 0.02 * (10 / 1.1 - 0.05 * turning / 1.1), 1e-12);
}

TEST_F(CartPoleTest, EndsBeyondTheAngleAndBeyondTheTrack) {
  const auto ends = [&](std::vector<double> state) {
    pole_.set_state(state);
    env_.step(std::vector<float>{1}).value();
    EXPECT_EQ(env_.reward(), 1);
    return env_.terminated();
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
