#include "model/policy/policy_net.h"

#include <gtest/gtest.h>

namespace troupe::model {
namespace {

struct Job {
  Job() {
    shape.state_dim = 3;
    shape.action_dim = 2;
    shape.action_low = {-1, -1};
    shape.action_high = {1, 1};
  }
  PolicyConfig policy;
  AlgorithmConfig algorithm;
  PolicyShape shape;
};

Result<std::shared_ptr<const PolicyNet>> make(const Job& job) {
  return make_policy_net(job.policy, job.algorithm, job.shape);
}

void expect_refused(const Job& job, const std::string& words) {
  const auto net = make(job);
  ASSERT_FALSE(net) << words;
  EXPECT_EQ(net.error().code(), Errc::invalid_argument);
  EXPECT_NE(net.error().message().find(words), std::string::npos) << net.error().message();
}

TEST(PolicyNetTest, EveryOnPolicyAlgorithmTrainsAnMlp) {
  for (const auto name : {Algorithm::ppo, Algorithm::grpo, Algorithm::decoupled_ppo, Algorithm::vtrace}) {
    Job job;
    job.algorithm.name = name;
    const auto net = make(job);
    EXPECT_EQ((*net)->logp_width(), 2) << enum_name(name);
    EXPECT_NE((*net)->objective("policy")->manual_backward(), nullptr) << enum_name(name);
  }
}

TEST(PolicyNetTest, SacHasNeitherLogProbabilitiesNorValuesForRollouts) {
  Job job;
  job.algorithm.name = Algorithm::sac;
  const auto net = make(job);
  EXPECT_EQ((*net)->logp_width(), 0);
  EXPECT_EQ((*net)->value_width(), 0);
  EXPECT_THROW((*net)->logp({}, {}), c10::Error);
}

TEST(PolicyNetTest, FlowIsAnOnPolicyPolicy) {
  Job job;
  job.policy.kind = PolicyKind::flow;
  job.algorithm.name = Algorithm::grpo;
  EXPECT_TRUE(make(job));
  job.algorithm.name = Algorithm::sac;
  expect_refused(job, "policy.kind is flow");
}

TEST(PolicyNetTest, WhatHasNoMemoryRefusesOne) {
  Job job;
  job.policy.memory = PolicyMemory::gru;
  EXPECT_TRUE(make(job));
  job.policy.hidden = {};
  expect_refused(job, "policy.hidden is empty");
  job.policy.hidden = {8};
  job.algorithm.name = Algorithm::sac;
  expect_refused(job, "policy.memory is gru");
  job.algorithm.name = Algorithm::grpo;
  job.policy.kind = PolicyKind::flow;
  expect_refused(job, "policy.memory is gru");
}

TEST(PolicyNetTest, AnEmptyLayerIsRefused) {
  Job job;
  job.policy.hidden = {64, 0};
  expect_refused(job, "policy.hidden contains 0");
}

TEST(PolicyNetTest, LogProbabilitiesOfChunksDoNotFitRewardsOfActions) {
  Job job;
  job.shape.chunk = 4;
  job.algorithm.policy_gradient.logprob_level = Granularity::chunk;
  expect_refused(job, "logprob_level is chunk");
  job.algorithm.policy_gradient.reward_level = "chunk";
  EXPECT_TRUE(make(job));
}

TEST(PolicyNetTest, TrajectoryWeightsNeedALongestEpisode) {
  Job job;
  job.algorithm.policy_gradient.aggregation = "trajectory";
  expect_refused(job, "aggregation is trajectory");
  job.shape.max_episode_steps = 200;
  EXPECT_TRUE(make(job));
}

TEST(PolicyNetTest, AnotherPhaseThanThePolicysIsRefused) {
  const auto net = make(Job{});
  EXPECT_THROW((*net)->objective("critic"), c10::Error);
}

}  // namespace
}  // namespace troupe::model
