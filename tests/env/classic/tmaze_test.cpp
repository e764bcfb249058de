#include "env/classic/tmaze.h"

#include <gmock/gmock.h>

#include "tests/env/solo_env.h"

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;

/// A maze, and the numbers that an agent sees in it.
struct Maze {
  explicit Maze(const std::string& length = "3")
      : env(factory_of("tmaze-v1", {.options = {{"length", length}}})->make().value()) {}
  void go(float direction) { env.step(std::span(&direction, 1)).value(); }
  std::vector<int> seen() const {
    std::vector<int> numbers;
    for (std::size_t i = 0; i < 3; ++i) numbers.push_back(static_cast<int>(env.element(0, i)));
    return numbers;
  }
  SoloEnv env;
};

constexpr float kNorth = 0, kEast = 1, kSouth = 2, kWest = 3;
const std::vector<int> kNorthSign{0, 1, 1}, kSouthSign{1, 1, 0}, kCorridor{1, 0, 1}, kJunction{0, 1, 0};

TEST(TMazeTest, TheSignSaysWhichWayToTurnAndBothWaysAreTold) {
  Maze maze;
  int norths = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    maze.env.reset(seed).value();
    const bool is_north = maze.seen() == kNorthSign;
    EXPECT_EQ(maze.seen(), is_north ? kNorthSign : kSouthSign);
    norths += is_north ? 1 : 0;
    for (int i = 0; i < 3; ++i) {
      maze.go(kEast);
      EXPECT_EQ(maze.seen(), i < 2 ? kCorridor : kJunction) << "the sign is seen at the start alone";
      EXPECT_EQ(maze.env.reward(), 0);
    }
    const bool turns_right = seed % 2 == 0;
    maze.go(is_north == turns_right ? kNorth : kSouth);
    EXPECT_TRUE(maze.env.terminated());
    EXPECT_EQ(maze.env.success(), turns_right);
    EXPECT_DOUBLE_EQ(maze.env.reward(), turns_right ? 4 : -0.1);
  }
  EXPECT_GT(norths, 70);
  EXPECT_LT(norths, 130);
}

TEST(TMazeTest, WallsCostAndLeaveTheAgentWhereItIs) {
  Maze maze("2");
  maze.env.reset(1).value();
  const auto sign = maze.seen();
  for (const float wall : {kNorth, kSouth, kWest}) {
    maze.go(wall);
    EXPECT_EQ(maze.seen(), sign);
    EXPECT_DOUBLE_EQ(maze.env.reward(), -0.1);
  }
  maze.go(kEast);
  EXPECT_EQ(maze.seen(), kCorridor);
  maze.go(kEast);
  maze.go(kEast);
  EXPECT_EQ(maze.seen(), kJunction);
  EXPECT_DOUBLE_EQ(maze.env.reward(), -0.1);
  maze.go(kWest);
  EXPECT_EQ(maze.seen(), kCorridor);
  maze.go(kWest);
  EXPECT_EQ(maze.seen(), sign) << "the sign still stands there";
  EXPECT_FALSE(maze.env.terminated());
}

TEST(TMazeTest, TheTimeLimitGrowsWithTheCorridor) {
  EXPECT_EQ(factory_of("tmaze-v1")->spec().max_steps, 60);
  EXPECT_EQ(factory_of("tmaze-v1", {.options = {{"length", "50"}}})->spec().max_steps, 300);
  EXPECT_EQ(factory_of("tmaze-v1", {.options = {{"length", "50"}}, .max_steps = 7})->spec().max_steps, 7);
}

TEST(TMazeTest, ALengthThatIsNoneIsRefused) {
  for (const char* length : {"0", "10001", "long"}) {
    const auto factory = make_env_factory("tmaze-v1", {.options = {{"length", length}}});
    ASSERT_FALSE(factory) << length;
    EXPECT_THAT(factory.error().message(), HasSubstr("option length is '"));
  }
}

}  // namespace
}  // namespace troupe::testing
