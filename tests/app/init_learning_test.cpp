// What `troupe init` writes learns within its time: slow, since it is what a user sees and not a shortened form.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using namespace std::chrono_literals;

class InitLearningTest : public RunTest {
 protected:
  ProgramEnd troupe_for(std::chrono::seconds deadline, const std::vector<std::string>& words) const {
    ProgramOptions with = options();
    with.deadline = deadline;
    return run_program(words, with);
  }

  void expect_dataset_is_learned(const std::string& dataset) const {
    const char* named = std::getenv("TROUPE_SHARED_DATA");
    const std::string path =
        std::string(named != nullptr && *named != 0 ? named : TROUPE_SOURCE_DIR "/../shared/data") + "/" + dataset;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "TROUPE_SHARED_DATA does not hold " << dataset;
    ASSERT_TRUE(succeeded(troupe({"init", path, "--out", "first"})));
    ASSERT_TRUE(succeeded(troupe_for(600s, {"run", "first/job.yaml"})));
    const auto loss = curve_of(dir_ / ("runs/latest"), "eval/loss");
    ASSERT_GE(loss.size(), 2u);
    EXPECT_LE(loss.rbegin()->second, loss.begin()->second * 2 / 3);
  }

  void expect_env_is_learned(const std::string& id, double wanted) const {
    ASSERT_TRUE(succeeded(troupe({"init", "--env", id, "--out", "first"})));
    ASSERT_TRUE(succeeded(troupe_for(300s, {"run", "first/job.yaml"})));
    const auto returns = curve_of(dir_ / ("runs/latest"), "eval/return");
    ASSERT_FALSE(returns.empty());
    EXPECT_GE(returns.rbegin()->second, wanted);
  }
};

TEST_F(InitLearningTest, HeldOutLossOfAHumanoidThatPicksAndPlacesFallsByAThird) {
  expect_dataset_is_learned("gr1-pick-place");
}

TEST_F(InitLearningTest, HeldOutLossOfAHumanoidWithABottleFallsByAThird) { expect_dataset_is_learned("g1-bottle"); }

TEST_F(InitLearningTest, APoleIsBalanced) { expect_env_is_learned("CartPole-v1", 475); }

TEST_F(InitLearningTest, APendulumIsHeldUp) { expect_env_is_learned("Pendulum-v1", -200); }

TEST_F(InitLearningTest, AnArmReaches) { expect_env_is_learned("arm7/reach-v1", 60); }

}  // namespace
}  // namespace troupe::app
