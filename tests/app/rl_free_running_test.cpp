// Learning whose outcome depends on timing: most seeds reach what the recipe's first lines say.
#include "tests/app/rl_learning.h"

namespace troupe::app {
namespace {

class RlFreeRunningTest : public RlLearningTest {
 protected:
  /// Of three seeds, those that balance the pole.
  int solved(const std::string& recipe) const {
    int count = 0;
    for (const char* seed : {"1", "2", "3"}) {
      if (learnt(std::string("seed") + seed, {recipe, std::string("job.seed=") + seed}, "eval/return") > 475) ++count;
    }
    return count;
  }
};

TEST_F(RlFreeRunningTest, AsynchronousPpoSolvesCartPoleInTwoOfThreeSeeds) { EXPECT_GE(solved("rl_cartpole_async"), 2); }

TEST_F(RlFreeRunningTest, VtraceSolvesCartPoleInTwoOfThreeSeeds) { EXPECT_GE(solved("rl_cartpole_vtrace"), 2); }

}  // namespace
}  // namespace troupe::app
