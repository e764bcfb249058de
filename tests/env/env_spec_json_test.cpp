#include "env/env_spec_json.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "env/registry/registry.h"
#include "tests/support/scratch_folder.h"

namespace troupe::env {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

EnvSpec full_spec() {
  EnvSpec spec;
  spec.id = "bridge/kitchen-v1";
  spec.observation = {
      {.name = "state", .shape = {3}, .low = -0.1, .high = kInfinity, .unit = "m", .dtype = EnvDType::f64},
      {.name = "rgb.front", .shape = {4, 6, 3}, .low = 0, .high = 255, .dtype = EnvDType::u8},
      {.name = "clock", .shape = {}, .reader = EnvReader::critic, .normalise = false},
      {.name = "task", .shape = {32}, .dtype = EnvDType::u8, .reader = EnvReader::text}};
  spec.action = {
      .choices = 0, .size = 2, .low = {-0.1F, -std::numeric_limits<float>::infinity()}, .high = {0.1F, 3e38F}};
  spec.info = {"x_position"};
  spec.has_success = spec.observes_on_demand = true;
  spec.max_steps = 1LL << 40;
  spec.control_hz = 1.0 / 3;
  spec.frame_skip = 5;
  spec.reward_threshold = -200;
  spec.cameras = {"front", "wrist"};
  return spec;
}

/// The text of full_spec() with one piece of it replaced.
std::string changed(const std::string& piece, const std::string& by) {
  std::string text = env_spec_json(full_spec());
  const std::size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return text.replace(at, piece.size(), by);
}

std::string error_of(const std::string& text) {
  const auto spec = parse_env_spec(text, "kitchen.json");
  EXPECT_FALSE(spec) << text;
  if (spec) return {};
  EXPECT_EQ(spec.error().code(), Errc::invalid_argument);
  EXPECT_THAT(spec.error().message(), StartsWith("kitchen.json: "));
  return spec.error().message();
}

TEST(EnvSpecJsonTest, EveryFieldComesBack) {
  const EnvSpec spec = full_spec();
  const EnvSpec back = parse_env_spec(env_spec_json(spec), "text").value();
  EXPECT_EQ(back.id, spec.id);
  ASSERT_EQ(back.observation.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(back.observation[i].reader, spec.observation[i].reader);
    EXPECT_EQ(back.observation[i].normalise, spec.observation[i].normalise);
    EXPECT_EQ(back.observation[i].name, spec.observation[i].name);
    EXPECT_EQ(back.observation[i].shape, spec.observation[i].shape);
    EXPECT_EQ(back.observation[i].low, spec.observation[i].low);
    EXPECT_EQ(back.observation[i].high, spec.observation[i].high);
    EXPECT_EQ(back.observation[i].unit, spec.observation[i].unit);
    EXPECT_EQ(back.observation[i].dtype, spec.observation[i].dtype);
  }
  EXPECT_EQ(back.action.size, 2);
  EXPECT_EQ(back.action.low, spec.action.low);
  EXPECT_EQ(back.action.high, spec.action.high);
  EXPECT_EQ(back.info, spec.info);
  EXPECT_TRUE(back.has_success);
  EXPECT_TRUE(back.observes_on_demand);
  EXPECT_EQ(back.max_steps, spec.max_steps);
  EXPECT_EQ(back.control_hz, spec.control_hz);
  EXPECT_EQ(back.frame_skip, 5);
  EXPECT_EQ(back.reward_threshold, -200);
  EXPECT_EQ(back.cameras, spec.cameras);
}

TEST(EnvSpecJsonTest, SeveralAgentsAreSaidAndOneIsNot) {
  EnvSpec spec = full_spec();
  const std::string one = env_spec_json(spec);
  EXPECT_THAT(one, ::testing::Not(HasSubstr("agents")));
  spec.agents = 3;
  EXPECT_EQ(parse_env_spec(env_spec_json(spec), "text")->agents, 3);
  EXPECT_EQ(parse_env_spec(one, "text")->agents, 1);
  EXPECT_THAT(check_same_spec(spec, full_spec(), "the file").error().message(),
              EndsWith("agents is 3, the file has 1"));
  spec.agents = 0;
  EXPECT_THAT(error_of(env_spec_json(spec)), HasSubstr("agents is 0; wanted 1 or more"));
}

TEST(EnvSpecJsonTest, TheBytesAreFixed) {
  EnvSpec spec;
  spec.id = "coin-v1";
  spec.observation = {{.name = "state", .shape = {2}, .low = -kInfinity, .high = 0.5}};
  spec.action.choices = 2;
  const std::string text =
      "{\n"
      "  \"version\": 1,\n"
      "  \"id\": \"coin-v1\",\n"
      "  \"observation\": [\n"
      "    {\n"
      "      \"name\": \"state\",\n"
      "      \"dtype\": \"f32\",\n"
      "      \"shape\": [\n"
      "        2\n"
      "      ],\n"
      "      \"low\": \"-inf\",\n"
      "      \"high\": 0.5,\n"
      "      \"unit\": \"\",\n"
      "      \"reader\": \"policy\",\n"
      "      \"normalise\": true\n"
      "    }\n"
      "  ],\n"
      "  \"action\": {\n"
      "    \"choices\": 2,\n"
      "    \"size\": 1,\n"
      "    \"low\": [],\n"
      "    \"high\": [],\n"
      "    \"unit\": \"\"\n"
      "  },\n"
      "  \"info\": [],\n"
      "  \"has_success\": false,\n"
      "  \"observes_on_demand\": false,\n"
      "  \"max_steps\": 0,\n"
      "  \"control_hz\": 0.0,\n"
      "  \"frame_skip\": 1,\n"
      "  \"reward_threshold\": \"nan\",\n"
      "  \"cameras\": []\n"
      "}\n";
  EXPECT_EQ(env_spec_json(spec), text);
}

TEST(EnvSpecJsonTest, EveryEnvironmentDescribesItselfAndComesBack) {
  for (const std::string& id : env_ids(env_registry())) {
    const EnvSpec spec = make_env_factory(id).value()->spec();
    EXPECT_TRUE(check_env_spec(spec)) << id;
    const EnvSpec back = parse_env_spec(env_spec_json(spec), id).value();
    EXPECT_EQ(env_spec_json(back), env_spec_json(spec));
    EXPECT_TRUE(check_same_spec(back, spec, "it")) << id;
  }
}

TEST(EnvSpecJsonTest, TheDigestTellsOneBitOfABoundApart) {
  EnvSpec a = full_spec(), b = full_spec();
  EXPECT_EQ(env_spec_digest(a), env_spec_digest(b));
  EXPECT_EQ(env_spec_digest(a).size(), 32U);
  b.action.high[0] = std::nextafter(b.action.high[0], 1.0F);
  EXPECT_NE(env_spec_digest(a), env_spec_digest(b));
}

TEST(EnvSpecJsonTest, WhatMayBeLeftOutHasTheDefaultsOfEnvSpec) {
  const EnvSpec spec = parse_env_spec(R"({"version": 1, "id": "a", "action": {"choices": 3},
      "observation": [{"name": "state", "dtype": "f32", "shape": [4]}]})",
                                      "text")
                           .value();
  EXPECT_EQ(spec.observation[0].low, -kInfinity);
  EXPECT_EQ(spec.frame_skip, 1);
  EXPECT_TRUE(std::isnan(spec.reward_threshold));
}

TEST(EnvSpecJsonTest, AValueOfAnotherTypeIsRefusedAtItsKey) {
  EXPECT_THAT(error_of(changed("\"size\": 2", "\"size\": 2.5")),
              HasSubstr("action.size: a number in the place of a whole number"));
  EXPECT_THAT(error_of(changed("\"size\": 2", "\"size\": 1e300")), HasSubstr("action.size"));
  EXPECT_THAT(error_of(changed("1099511627776", "18446744073709551615")), HasSubstr("max_steps"));
  EXPECT_THAT(error_of(changed("\"f64\"", "\"f16\"")), HasSubstr("observation[0].dtype: 'f16'; wanted u8, f32, f64"));
  EXPECT_THAT(error_of(changed("\"has_success\": true", "\"has_success\": 1")), HasSubstr("has_success: a number"));
  EXPECT_THAT(error_of(changed("\"low\": 0.0", "\"low\": \"none\"")), HasSubstr("observation[1].low: \"none\""));
  EXPECT_THAT(error_of(changed("\"x_position\"", "7")), HasSubstr("info[0]: a number in the place of a text"));
  EXPECT_THAT(error_of(changed("-0.10000000149011612", "1e39")), HasSubstr("action.low[0]: 1e+39, which is no f32"));
  EXPECT_THAT(error_of("[]"), HasSubstr("an object"));
}

TEST(EnvSpecJsonTest, AKeyThatIsUnknownMissingOrTwiceThereIsRefused) {
  EXPECT_THAT(error_of(changed("\"has_success\"", "\"has_sucess\"")), HasSubstr("has_sucess: no such key"));
  EXPECT_THAT(error_of(changed("\"name\": \"clock\",", "")), HasSubstr("observation[2].name: is missing"));
  EXPECT_THAT(error_of(changed("\"version\": 1,", "")), HasSubstr("version: is missing"));
  EXPECT_THAT(error_of(changed("\"version\": 1", "\"version\": 2")), HasSubstr("version: is 2; wanted 1"));
  EXPECT_THAT(error_of(changed("\"frame_skip\": 5", "\"frame_skip\": 5, \"id\": \"b\"")),
              HasSubstr("'id' appears twice"));
  EXPECT_THAT(error_of("{\"version\": 1"), HasSubstr("not valid JSON"));
}

TEST(EnvSpecJsonTest, WhatContradictsItselfIsRefused) {
  EXPECT_THAT(error_of(changed("\"clock\"", "\"state\"")), HasSubstr("observation[2] is 'state' for the second time"));
  EXPECT_THAT(error_of(changed("\"id\": \"bridge/kitchen-v1\"", "\"id\": \"\"")), HasSubstr("id is empty"));
  EXPECT_THAT(error_of(changed("        4,", "        0,")), HasSubstr("observation[1].shape[0] is 0"));
  EXPECT_THAT(error_of(changed("        4,", "        9223372036854775807,")), HasSubstr("observation[1].shape[0]"));
  EXPECT_THAT(error_of(changed("\"low\": -0.1", "\"low\": \"nan\"")), HasSubstr("observation[0].low"));
  EXPECT_THAT(error_of(changed("\"size\": 2", "\"size\": 3")), HasSubstr("action.low has 2 numbers"));
  EXPECT_THAT(error_of(changed("\"choices\": 0", "\"choices\": 4")), HasSubstr("action.size is 2"));
  EXPECT_THAT(error_of(changed("\"frame_skip\": 5", "\"frame_skip\": 0")), HasSubstr("frame_skip is 0"));
  EXPECT_THAT(error_of(changed("\"wrist\"", "\"front\"")), HasSubstr("cameras[1]"));
}

TEST(EnvSpecJsonTest, WhatAFieldsReaderCannotReadIsRefused) {
  EXPECT_THAT(error_of(changed("\"reader\": \"critic\"", "\"reader\": \"actor\"")),
              HasSubstr("observation[2].reader: 'actor'; wanted policy, critic, action_mask, text"));
  EXPECT_THAT(error_of(changed("\"reader\": \"critic\"", "\"reader\": \"text\"")),
              HasSubstr("observation[2].reader is text, which wants u8 [longest text]; the field is f32 []"));
  EXPECT_THAT(error_of(changed("\"reader\": \"critic\"", "\"reader\": \"action_mask\"")),
              HasSubstr("actions of numbers have no choices"));
  EnvSpec spec;
  spec.id = "a";
  spec.action.choices = 3;
  const EnvField state{.name = "state", .shape = {4}},
      mask{.name = "mask", .shape = {3}, .dtype = EnvDType::u8, .reader = EnvReader::action_mask};
  spec.observation = {state, mask};
  EXPECT_TRUE(check_env_spec(spec));
  spec.observation[1].shape = {4};
  EXPECT_THAT(check_env_spec(spec).error().message(), HasSubstr("wants u8 or f32 [3], one for each choice"));
  spec.observation = {state, mask, mask};
  spec.observation[2].name = "other";
  EXPECT_THAT(check_env_spec(spec).error().message(), HasSubstr("more than one action_mask"));
  spec.observation = {mask};
  EXPECT_THAT(check_env_spec(spec).error().message(), HasSubstr("no field that the policy reads"));
}

TEST(EnvSpecJsonTest, TheFirstDifferenceIsNamedWithBothValues) {
  const EnvSpec spec = full_spec();
  EXPECT_TRUE(check_same_spec(spec, full_spec(), "the run"));
  EnvSpec other = spec;
  other.observation[1].shape[0] = 8;
  other.cameras.pop_back();
  const auto differs = check_same_spec(other, spec, "the run");
  EXPECT_EQ(differs.error().code(), Errc::failed_precondition);
  EXPECT_EQ(differs.error().message(), "bridge/kitchen-v1: observation[1].shape[0] is 8, the run has 4");
  EnvSpec fewer = spec;
  fewer.cameras.pop_back();
  EXPECT_THAT(check_same_spec(fewer, spec, "the run").error().message(),
              EndsWith("cameras[1] is nothing, the run has \"wrist\""));
}

TEST(EnvSpecOfTest, AFileStandsForTheFactory) {
  const testing::ScratchFolder dir;
  std::ofstream(dir / "kitchen.json") << env_spec_json(full_spec());
  EnvConfig env;
  env.id = "bridge/kitchen-v1";  // which no factory makes
  env.spec = dir / "kitchen.json";
  EXPECT_EQ(env_spec_of(env)->max_steps, 1LL << 40);
  env.max_episode_steps = 7;
  EXPECT_EQ(env_spec_of(env)->max_steps, 7);
  env.id = "CartPole-v1";
  EXPECT_THAT(env_spec_of(env).error().message(),
              AllOf(StartsWith("env.spec: "), HasSubstr("describes 'bridge/kitchen-v1', and env.id is 'CartPole-v1'")));
  env.spec = dir / "none.json";
  EXPECT_EQ(env_spec_of(env).error().code(), Errc::not_found);
  env.spec = "";
  EXPECT_EQ(env_spec_of(env)->observation[0].shape, std::vector<std::int64_t>{4});
  EXPECT_EQ(env_spec_of({})->id, "");
}

TEST(EnvSpecOfTest, AFolderWithoutOneIsOfAnEarlierVersion) {
  const testing::ScratchFolder dir;
  EnvConfig env;
  env.id = "CartPole-v1";
  EXPECT_EQ(kept_env_spec(dir.path(), env)->max_steps, 500);
  EnvSpec kept = *env_spec_of(env);
  kept.max_steps = 9;
  std::ofstream(dir / "env_spec.json") << env_spec_json(kept);
  EXPECT_EQ(kept_env_spec(dir.path(), env)->max_steps, 9);
  std::ofstream(dir / "env_spec.json") << "{";
  EXPECT_EQ(kept_env_spec(dir.path(), env).error().code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace troupe::env
