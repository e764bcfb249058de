// Learning from pictures with the task's state hidden: each recipe reaches what its first lines say.
#include <nlohmann/json.hpp>

#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

class RlPixelsLearningTest : public RlRunTest {
 protected:
  void SetUp() override {
    run({"record", "arm7/reach-v1", "--out", "data/arm7-reach-views", "--episodes", "400", "--seed", "1", "--cameras",
         "front,side"});
  }
  /// A whole recipe takes at most 40 minutes on two cores.
  std::string run(const Words& words) const {
    const ProgramEnd end = run_program(words, {.cwd = dir_.path(), .env = {}, .deadline = 2400s});
    EXPECT_EQ(end.exit_code, 0) << end.text();
    return end.out;
  }
  void train(const std::string& recipe, const std::string& root, const Words& overrides = {}) const {
    run(Words{"run", recipe, "job.run_root=" + (dir_ / root)} + overrides);
  }
  /// Share of 200 evaluation episodes that a run's policy solves.
  double success(const std::string& root) const {
    const auto json = nlohmann::json::parse(run({"eval", root + "/latest", "--episodes", "200", "--json"}));
    return json["results"]["successes"].get<double>() / json["results"]["episodes"].get<double>();
  }
};

TEST_F(RlPixelsLearningTest, APolicyIsClonedFromVideosAndGroupRelativeRewardsImproveIt) {
  train("rl_arm7_reach_pixels_sft", "sft");
  const double cloned = success("sft");
  EXPECT_GE(cloned, 0.4);
  train("rl_arm7_reach_pixels_grpo", "grpo", {"model.init.path=sft/latest/checkpoints/latest"});
  EXPECT_GE(success("grpo"), cloned + 0.2);
}

TEST_F(RlPixelsLearningTest, ACriticThatKnowsTheGoalImprovesAnActorThatSeesIt) {
  train("rl_arm7_reach_pixels_sft", "sft", {"algorithm.name=ppo"});
  const double cloned = success("sft");
  train("rl_arm7_reach_pixels_ppo", "ppo", {"model.init.path=sft/latest/checkpoints/latest"});
  EXPECT_GE(success("ppo"), cloned + 0.3);
}

}  // namespace
}  // namespace troupe::app
