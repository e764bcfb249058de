#include "model/optim/moving_average.h"

#include <gmock/gmock.h>

#include <vector>

#include "base/random.h"
#include "kernels/threads.h"

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

TEST(MovingAverageTest, ThreadsChangeNoBit) {
  std::vector<float> x(100'003), start(x.size());
  CounterRng rng(1, rng_stream::toy_scene, 0);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = rng.normal(), start[i] = rng.normal();
  std::vector<std::vector<float>> averages;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    move_average(averages.emplace_back(start), x, 0.001);
    EXPECT_EQ(averages.back(), averages.front()) << threads;
  }
  set_num_threads(0);
  EXPECT_NE(averages.front(), start);
}

}  // namespace
}  // namespace troupe::model
