#include "model/optim/moving_average.h"

#include <gmock/gmock.h>

#include <vector>

namespace troupe::model {
namespace {

using ::testing::ElementsAre;

TEST(MovingAverageTest, AStepMixesInTheShareOfTheNewValue) {
  std::vector<float> average = {1, -2, 0};
  move_average(average, std::vector<float>{3, 2, 0}, 0.25);
  EXPECT_THAT(average, ElementsAre(1.5f, -1.0f, 0.0f));
}

TEST(MovingAverageTest, AShareOfOneCopiesAndOfZeroLeavesAsItIs) {
  const std::vector<float> x = {0.1f, 1e-30f, 7};
  std::vector<float> copied = {5, 5, 5}, kept = {0.3f, -1, 2};
  move_average(copied, x, 1.0);
  move_average(kept, x, 0.0);
  EXPECT_EQ(copied, x);
  EXPECT_THAT(kept, ElementsAre(0.3f, -1.0f, 2.0f));
}

}  // namespace
}  // namespace troupe::model
