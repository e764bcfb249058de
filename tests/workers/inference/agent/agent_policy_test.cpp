#include "workers/inference/agent/agent_policy.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "model/loss/rl_keys.h"
#include "tests/support/scratch_folder.h"
#include "workers/inference/agent/agent_export.h"
#include "workers/learner/rl/initial_policy.h"

namespace troupe::workers {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobConfig job_of(const std::string& env, Algorithm algorithm = Algorithm::ppo) {
  JobConfig job;
  job.job.kind = JobKind::rl;
  job.job.name = "test";
  job.env.id = env;
  job.algorithm.name = algorithm;
  job.policy.hidden = {8};
  return job;
}

/// A policy as the job begins with, and statistics as if it had seen something.
LoadedAgent agent_of(const JobConfig& job) {
  auto agent = make_agent(job);
  if (!agent) throw std::runtime_error(agent.error().message());
  LoadedAgent loaded{.job = job, .agent = std::move(*agent), .weights = {}};
  const PolicyNet& policy = *loaded.agent.policy;
  auto views = initial_policy(job, policy);
  if (!views) throw std::runtime_error(views.error().message());
  loaded.weights.version = 7;
  loaded.weights.views = std::move(*views);
  const auto width = static_cast<std::size_t>(loaded.agent.shape.state_dim);
  loaded.weights.normaliser = {Moments(job.rollout.normalize_obs ? width : 0), Moments(0)};
  if (job.rollout.normalize_obs) {
    std::vector<float> rows(2 * width);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i < width ? i : 4 * i);
    loaded.weights.normaliser.observed.add(rows);
  }
  return loaded;
}

NdArray vector_of(const std::vector<float>& values) {
  NdArray array{"<f4", {static_cast<std::int64_t>(values.size())}, std::vector<std::byte>(4 * values.size())};
  std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

struct AgentPolicyTest : ::testing::Test {
  static std::unique_ptr<AgentPolicy> policy(const JobConfig& job) {
    auto made = AgentPolicy::make(agent_of(job), "run/step");
    if (!made) throw std::runtime_error(made.error().message());
    return std::move(*made);
  }
  /// Of an environment whose observation is one vector.
  static Observation seen(const AgentPolicy& policy, const std::vector<float>& values,
                          const std::string& episode = "e") {
    return {
        .episode = episode, .prompt = {}, .images = {}, .state = {{policy.info().state.at(0).name, vector_of(values)}}};
  }
  static Result<ActionChunk> answer(AgentPolicy& policy, const Observation& observation) {
    return policy.act(std::span(&observation, 1)).at(0);
  }
};

TEST_F(AgentPolicyTest, SaysWhatTheEnvironmentShowsAndTakes) {
  JobConfig job = job_of("Pendulum-v1");
  job.env.chunk = 3;
  job.rollout.steps = 3;
  const auto pendulum = policy(job);
  const PolicyInfo& info = pendulum->info();
  EXPECT_EQ(info.name, "run/step");
  EXPECT_EQ(info.embodiment, "Pendulum-v1");
  EXPECT_TRUE(info.views.empty());
  ASSERT_EQ(info.state.size(), 1u);
  EXPECT_EQ(info.state[0].width, 3);
  ASSERT_EQ(info.action.size(), 1u);
  EXPECT_EQ(info.action[0].name, "action");
  EXPECT_EQ(info.action[0].width, 1);
  EXPECT_EQ(info.horizon, 3);
  EXPECT_FALSE(info.takes_prompt);
}

TEST_F(AgentPolicyTest, AnswersWithTheDeterministicPolicyOfTheFrozenStatistics) {
  JobConfig job = job_of("Pendulum-v1");
  job.rollout.normalize_obs = true;
  const LoadedAgent loaded = agent_of(job);
  const auto pendulum = policy(job);
  const auto chunk = answer(*pendulum, seen(*pendulum, {0.5f, 2, -40}));
  std::vector<float> state{0.5f, 2, -40};
  StateScale(loaded.weights.normaliser.observed, job.rollout.clip_obs, std::vector<std::uint8_t>(3, 1)).apply(state);
  const std::vector<std::uint64_t> keys{0};
  ActRequest request{.observation = {{rl_keys::kState, at::tensor(state).view({1, 3})}},
                     .seed = 0,
                     .keys = keys,
                     .deterministic = true};
  EXPECT_FLOAT_EQ(chunk->values.at(0),
                  loaded.agent.policy->act(loaded.weights.views, request).action[0][0].item<float>());
}

TEST_F(AgentPolicyTest, TheSameObservationGetsTheSameAnswerWhoeverAsks) {
  const auto pendulum = policy(job_of("Pendulum-v1"));
  const std::vector<Observation> both{seen(*pendulum, {0.5f, 0.25f, -1}, "a"), seen(*pendulum, {0.5f, 0.25f, -1}, "b")};
  const auto chunks = pendulum->act(both);
  ASSERT_TRUE(chunks.at(0) && chunks.at(1));
  EXPECT_EQ(chunks[0]->values, chunks[1]->values);
  const auto alone = answer(*pendulum, both[0]);
  EXPECT_FLOAT_EQ(alone->values.at(0), chunks[0]->values.at(0));
  pendulum->reset("a");
  EXPECT_EQ(answer(*pendulum, both[0])->values, alone->values);
}

TEST_F(AgentPolicyTest, AMemoryBelongsToItsEpisodeUntilThatIsReset) {
  JobConfig job = job_of("Pendulum-v1");
  job.policy.memory = PolicyMemory::gru;
  job.policy.init_log_std = -1;
  const auto shown = [](const AgentPolicy& policy, int step, const std::string& episode) {
    const float x = 0.1f * static_cast<float>(step) + (episode == "b" ? 0.5f : 0.0f);
    return seen(policy, {1 - x, x, 4 * x}, episode);
  };
  const auto alone = [&](const std::string& episode) {
    const auto pendulum = policy(job);
    std::vector<float> all;
    for (int step = 0; step < 4; ++step)
      all.push_back(answer(*pendulum, shown(*pendulum, step, episode))->values.at(0));
    return all;
  };
  const auto pendulum = policy(job);
  const auto a = alone("a"), b = alone("b");
  for (std::size_t step = 0; step < 4; ++step) {
    // a bad observation costs nobody's memory
    const std::vector<Observation> three{shown(*pendulum, static_cast<int>(step), "a"), seen(*pendulum, {1}, "c"),
                                         shown(*pendulum, static_cast<int>(step), "b")};
    const auto chunks = pendulum->act(three);
    EXPECT_NEAR(chunks.at(0)->values.at(0), a[step], 1e-6) << step;
    EXPECT_NEAR(chunks.at(2)->values.at(0), b[step], 1e-6) << step;
    EXPECT_FALSE(chunks.at(1));
  }
  EXPECT_GT(std::abs(answer(*pendulum, shown(*pendulum, 0, "a"))->values.at(0) - a[0]), 1e-5) << "it remembers";
  pendulum->reset("a");
  EXPECT_EQ(answer(*pendulum, shown(*pendulum, 0, "a"))->values.at(0), a[0]);
}

TEST_F(AgentPolicyTest, ActionsAreClippedToTheBounds) {
  LoadedAgent loaded = agent_of(job_of("Pendulum-v1"));
  for (auto& [unit, view] : loaded.weights.views) {
    for (const UnitSpec& spec : loaded.agent.policy->units()) {
      if (spec.name != unit) continue;
      for (const ParamSpec& param : spec.params) view[param.name].fill_(100);
    }
  }
  auto made = AgentPolicy::make(std::move(loaded), "large");
  EXPECT_EQ(answer(**made, seen(**made, {1, 1, 1}))->values.at(0), 2);
}

TEST_F(AgentPolicyTest, ADiscreteActionIsItsIndex) {
  const auto cart = policy(job_of("CartPole-v1"));
  for (const float tilt : {-1.0f, 0.0f, 1.0f}) {
    const auto chunk = answer(*cart, seen(*cart, {0, 0, tilt, tilt}));
    EXPECT_EQ(chunk->width, 1);
    EXPECT_THAT(chunk->values.at(0), ::testing::AnyOf(0.0f, 1.0f));
  }
}

TEST_F(AgentPolicyTest, DoubleStatesAreTaken) {
  const auto pendulum = policy(job_of("Pendulum-v1"));
  Observation observation = seen(*pendulum, {0.5f, 0.25f, -1});
  const auto single = answer(*pendulum, observation);
  const std::vector<double> wide{0.5, 0.25, -1};
  NdArray array{"<f8", {3}, std::vector<std::byte>(24)};
  std::memcpy(array.data.data(), wide.data(), 24);
  observation.state.begin()->second = array;
  EXPECT_EQ(answer(*pendulum, observation)->values, single->values);
}

TEST_F(AgentPolicyTest, ABadObservationCostsOnlyItself) {
  const auto pendulum = policy(job_of("Pendulum-v1"));
  std::vector<Observation> three(3, seen(*pendulum, {1, 0, 0}));
  for (std::size_t i = 0; i < 3; ++i) three[i].episode = std::to_string(i);
  three[1].state.begin()->second = vector_of({1, std::numeric_limits<float>::quiet_NaN(), 0});
  const auto chunks = pendulum->act(three);
  EXPECT_TRUE(chunks[0]);
  ASSERT_FALSE(chunks[1]);
  EXPECT_THAT(chunks[1].error().message(), HasSubstr("not finite"));
  EXPECT_TRUE(chunks[2]);
}

TEST_F(AgentPolicyTest, WhatIsMissingOrOfAnotherShapeIsNamed) {
  const auto pendulum = policy(job_of("Pendulum-v1"));
  const std::string name = pendulum->info().state[0].name;
  Observation observation = seen(*pendulum, {1, 0});
  const auto narrow = answer(*pendulum, observation);
  EXPECT_EQ(narrow.error().code(), Errc::invalid_argument);
  EXPECT_THAT(narrow.error().message(), HasSubstr("'" + name + "' is <f4 [2]"));
  observation.state.clear();
  EXPECT_THAT(answer(*pendulum, observation).error().message(), HasSubstr("'" + name + "' is missing"));
  const auto twice = pendulum->act(std::vector<Observation>(2, seen(*pendulum, {1, 0, 0})));
  EXPECT_THAT(twice.at(1).error().message(), HasSubstr("twice"));
}

TEST_F(AgentPolicyTest, ThePromptIsTheTextThatThePolicyIsTold) {
  JobConfig job = job_of("arm7/reach-v1");
  job.env.options = {{"instruction", "true"}};
  const auto deaf = policy(job);
  EXPECT_FALSE(deaf->info().takes_prompt);
  job.policy.text = TextReader::words;
  const auto arm = policy(job);
  EXPECT_TRUE(arm->info().takes_prompt);
  const auto told = [&](AgentPolicy& policy, const std::string& prompt) {
    Observation observation = seen(policy, std::vector<float>(31, 0.1f));
    observation.prompt = prompt;
    return answer(policy, observation);
  };
  EXPECT_EQ(told(*arm, "reach the target")->values, told(*arm, "Reach the target!")->values) << "the same words";
  EXPECT_NE(told(*arm, "reach the target")->values, told(*arm, "keep still")->values);
  EXPECT_EQ(told(*deaf, "reach the target")->values, told(*deaf, "keep still")->values);
  EXPECT_THAT(told(*arm, std::string(65, 'a')).error().message(),
              HasSubstr("the instruction has 65 bytes; the policy's 'instruction' has room for 64"));
  const json text = json::parse(describe_agent(agent_of(job))).at("policy").at("text");
  EXPECT_EQ(text, json({{"kind", "words"}, {"vocab", 1024}, {"width", 32}}));
}

TEST_F(AgentPolicyTest, APolicyThatIsToldSeveralTextsIsNotServed) {
  JobConfig job = job_of("arm7/reach-v1");
  job.env.options = {{"instruction", "true"}};
  job.policy.text = TextReader::words;
  LoadedAgent loaded = agent_of(job);
  loaded.agent.shape.texts.push_back({.name = "manner", .bytes = 8});
  EXPECT_THAT(AgentPolicy::make(std::move(loaded), "two").error().message(),
              HasSubstr("arm7/reach-v1 tells its policy 'instruction' and 1 more texts"));
}

struct AgentImagesTest : AgentPolicyTest {
  static JobConfig camera_job() {
    JobConfig job = job_of("arm7/reach-v1");
    job.env.profile = "libero";
    job.env.options = {{"image_size", "48"}};
    job.policy.kind = PolicyKind::cnn;
    return job;
  }
  static Observation seen_of(const PolicyInfo& info, std::int64_t height, std::int64_t width, std::uint8_t level) {
    Observation observation{.episode = "e", .prompt = {}, .images = {}, .state = {}};
    for (const std::string& view : info.views) {
      observation.images[view] = {
          "|u1",
          {1, height, width, 3},
          std::vector<std::byte>(static_cast<std::size_t>(height * width * 3), std::byte{level})};
    }
    for (const PolicyVector& vector : info.state)
      observation.state[vector.name] = vector_of(std::vector<float>(static_cast<std::size_t>(vector.width), 0.1f));
    return observation;
  }
};

TEST_F(AgentImagesTest, ViewsAreTheObservationsImages) {
  const auto arm = policy(camera_job());
  EXPECT_FALSE(arm->info().views.empty());
  EXPECT_GT(arm->info().image_height, 0);
  const auto chunk = answer(*arm, seen_of(arm->info(), arm->info().image_height, arm->info().image_width, 9));
  EXPECT_EQ(static_cast<std::int64_t>(chunk->values.size()), arm->info().action_width());
}

TEST_F(AgentImagesTest, ImagesOfOtherSizesAreResized) {
  const auto arm = policy(camera_job());
  const auto exact = answer(*arm, seen_of(arm->info(), arm->info().image_height, arm->info().image_width, 77));
  const auto larger =
      answer(*arm, seen_of(arm->info(), 2 * arm->info().image_height + 5, arm->info().image_width + 3, 77));
  ASSERT_TRUE(exact && larger);
  EXPECT_EQ(exact->values, larger->values);  // of one colour, so that nothing changes
}

TEST_F(AgentImagesTest, AnImageOfAnotherKindIsRefused) {
  const auto arm = policy(camera_job());
  Observation observation = seen_of(arm->info(), 8, 8, 0);
  observation.images.begin()->second.dtype = "<f4";
  EXPECT_THAT(answer(*arm, observation).error().message(), HasSubstr(arm->info().views.front()));
  observation.images.begin()->second = {"|u1", {1LL << 40, 1LL << 40, 3}, {}};
  EXPECT_EQ(answer(*arm, observation).error().code(), Errc::invalid_argument);
}

TEST_F(AgentImagesTest, DepthIsTakenInMetresAndInItsSizeOnly) {
  JobConfig job = camera_job();
  job.env.profile = "pixel";
  const auto arm = policy(job);
  Observation observation = seen_of(arm->info(), 48, 48, 9);
  const NdArray depth{"<f4", {48, 48}, vector_of(std::vector<float>(48 * 48, 0.7f)).data};
  observation.images.at("depth.front") = depth;
  EXPECT_EQ(static_cast<std::int64_t>(answer(*arm, observation)->values.size()), arm->info().action_width());
  for (const NdArray& wrong :
       {NdArray{"|u1", {48, 48, 3}, std::vector<std::byte>(48 * 48 * 3)}, NdArray{"<f4", {24, 96}, depth.data},
        NdArray{"<f4", {48, 48}, vector_of(std::vector<float>(48 * 48, -1.0f)).data}}) {
    observation.images.at("depth.front") = wrong;
    EXPECT_THAT(answer(*arm, observation).error().message(), HasSubstr("depth.front"));
  }
}

TEST(AgentExportTest, SaysWhatActingTakes) {
  JobConfig job = job_of("Pendulum-v1", Algorithm::sac);
  job.rollout.normalize_obs = true;
  const LoadedAgent loaded = agent_of(job);
  const json policy = json::parse(describe_agent(loaded));
  EXPECT_EQ(policy.at("format"), "troupe-policy-1");
  EXPECT_EQ(policy.at("environment").at("id"), "Pendulum-v1");
  EXPECT_EQ(policy.at("step"), 7);
  EXPECT_EQ(policy.at("observation").at(0).at("state_columns"), (std::vector<int>{0, 3}));
  EXPECT_EQ(policy.at("action").at("low"), std::vector<double>{-2});
  EXPECT_EQ(policy.at("policy").at("distribution"), "squashed_gaussian");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(policy.at("normaliser").at("mean").at(i).get<double>(), loaded.weights.normaliser.observed.mean(i));
    EXPECT_EQ(policy.at("normaliser").at("variance").at(i).get<double>(),
              loaded.weights.normaliser.observed.variance(i));
  }
  EXPECT_EQ(policy.at("normaliser").at("clip"), 10);
}

TEST(AgentExportTest, MarksTheTensorsThatAct) {
  const LoadedAgent loaded = agent_of(job_of("Pendulum-v1", Algorithm::sac));
  std::vector<std::string> acting;
  std::size_t units = 0;
  const json policy = json::parse(describe_agent(loaded));
  for (const json& unit : policy.at("units")) {
    ++units;
    EXPECT_FALSE(unit.at("tensors").empty());
    if (unit.at("acts").get<bool>()) acting.push_back(unit.at("unit"));
  }
  EXPECT_THAT(acting, ElementsAre("actor"));
  EXPECT_EQ(units, 4u) << "actor, target, critic, temperature";
}

TEST(AgentExportTest, WithoutStatisticsNothingIsNormalised) {
  const json policy = json::parse(describe_agent(agent_of(job_of("CartPole-v1"))));
  EXPECT_TRUE(policy.at("normaliser").is_null());
  EXPECT_EQ(policy.at("action").at("kind"), "discrete");
  EXPECT_EQ(policy.at("action").at("choices"), 2);
  EXPECT_EQ(policy.at("policy").at("distribution"), "categorical");
}

}  // namespace
}  // namespace troupe::workers
