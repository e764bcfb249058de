// DreamZero from recordings of an environment, playing in it: recorded, fine-tuned, played, compared, exported.
#include <cstdlib>

#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

class ClosedLoopRunTest : public RlRunTest {
 protected:
  /// Weights of a checkpoint and of its export lie at other addresses, by which MKL chooses the order of its sums.
  static void SetUpTestSuite() { ::setenv("MKL_CBWR", "AUTO,STRICT", 1); }
  void SetUp() override {
    ASSERT_TRUE(succeeded(troupe({"record", "arm7/reach-v1", "--out", "data/arm7-reach-front", "--episodes", "4",
                                  "--cameras", "front", "--seed", "3"})));
    ASSERT_TRUE(
        succeeded(troupe({"run", "sft_arm7_reach_tiny", "job.run_root=" + (dir_ / "runs"), "training.steps=3",
                          "checkpoint.interval=3", "checkpoint.keep_best=none", "eval.every=0",
                          "training.global_batch_size=4", "training.micro_batch_size=2", "data.eval_episodes=[3]"})));
  }
  /// Two episodes of at most 50 control steps, a policy call every 8.
  ProgramEnd eval(const std::string& checkpoint, const Words& words = {}) const {
    return troupe(
        Words{"eval", checkpoint, "--env", "arm7/reach-v1", "--episodes", "2", "--sampler", "euler", "--steps", "4"} +
        words);
  }
  nlohmann::json report(const std::string& file) const { return nlohmann::json::parse(text_of(dir_ / file)); }
};

TEST_F(ClosedLoopRunTest, AFineTunedModelPlaysTheEnvironmentOfItsRecordings) {
  const std::string folder = "runs/latest/eval/step_000003/episodes";
  expect_end(eval("runs/latest", {"--videos", "1"}), 0,
             {"2 episodes of arm7/reach-v1", "success   ", "episodes/eval.json"});
  const nlohmann::json first = report(folder + "/eval.json");
  EXPECT_EQ(first["options"], (nlohmann::json{{"sampler", "euler"},
                                              {"steps", 4},
                                              {"cfg_scale", 5.0},
                                              {"noise_seed", 1140},
                                              {"skip", "none"},
                                              {"dtype", "fp32"},
                                              {"state_self_only", false},
                                              {"sign_gripper", false},
                                              {"weights", "model"}}));
  EXPECT_EQ(first["checkpoint"]["step"], 3);
  EXPECT_EQ(first["exec_steps"], 8);
  EXPECT_EQ(first["results"]["episodes"], 2);
  EXPECT_EQ(first["results"]["eval/lost"], 0);
  EXPECT_TRUE(std::filesystem::exists(dir_ / (folder + "/videos/" + "seed_1000000.mp4")));

  ASSERT_TRUE(succeeded(troupe({"export", "runs/latest", "--format", "gear", "--out", "gear"})));
  expect_end(eval("gear", {"--out", "of_export"}), 0, {"2 episodes of arm7/reach-v1"});
  EXPECT_EQ(report("of_export/eval.json")["results"], first["results"]);

  expect_end(eval("runs/latest", {"--compare", "runs/latest", "--out", "pair"}), 0, {"McNemar"});
  EXPECT_EQ(report("pair/eval.json")["compare"]["difference"]["return"]["difference"], 0);

  expect_end(troupe({"eval", "runs/latest"}), 2, {}, {"--open-loop", "--env arm7/reach-v1"});
  expect_end(troupe({"eval", "runs/latest", "--env", "arm7/reech-v1"}), 2, {}, {"did you mean 'arm7/reach-v1'"});
  expect_end(troupe({"eval", "runs/latest", "--env", "arm7/lift-v1"}), 2, {}, {"observation.state[0:"});
  expect_end(troupe({"serve", "runs/latest", "--once-selftest", "--sampler", "euler", "--steps", "2"}), 0,
             {"self-test ok"});
}

}  // namespace
}  // namespace troupe::app
