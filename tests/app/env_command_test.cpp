// `troupe env`: what environments there are, and what one is.
#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

using EnvCommandTest = RlRunTest;

TEST_F(EnvCommandTest, TheListHasEveryEnvironment) {
  const ProgramEnd end = troupe({"env", "list"});
  expect_end(end, 0, {"CartPole-v1 ", "balance a pole", "arm7/lift-v1"});
  const auto list = nlohmann::json::parse(troupe({"env", "list", "--json"}).out);
  EXPECT_EQ(list.at(0).at("id"), "CartPole-v1");
  EXPECT_THAT(list.at(0).at("what").get<std::string>(), HasSubstr("balance a pole"));
}

TEST_F(EnvCommandTest, ADescriptionSaysWhatIsObservedAndTaken) {
  expect_end(troupe({"env", "describe", "CartPole-v1"}), 0,
             {"state  f32 [4], any", "one of 2 choices", "500 at most, 50 a second", "mean return 475", "digest    "});
  const ProgramEnd pixel = troupe({"env", "describe", "arm7/lift-v1", "profile=pixel", "env.options.image_size=48"});
  expect_end(pixel, 0,
             {"rgb.front    u8 [48, 48, 3], 0 to 255", "8 numbers, -1 to 1 (0.10 rad, gripper)", "success   is told"});
  const ProgramEnd json =
      troupe({"env", "describe", "CartPole-v1", "max_episode_steps=9", "--json", "--out", "c.json"});
  EXPECT_EQ(nlohmann::json::parse(json.out).at("max_steps"), 9);
  EXPECT_EQ(text_of(dir_ / "c.json"), json.out);
}

TEST_F(EnvCommandTest, MistakesNameTheNearest) {
  expect_end(troupe({"env", "describe", "CartPol-v1"}), 2, {}, {"did you mean 'CartPole-v1'?"});
  expect_end(troupe({"env", "describe", "arm7/lift-v1", "profile=pixels"}), 2, {}, {"pixel"});
  expect_end(troupe({"env", "describe", "CartPole-v1", "fast"}), 2, {}, {"'fast'; wanted an option"});
  EXPECT_EQ(troupe({"env"}).exit_code, 2);
}

}  // namespace
}  // namespace troupe::app
