// Planning and scaling jobs of reinforcement learning.
#include <gmock/gmock.h>

#include "placement/planner.h"
#include "placement/pretend.h"
#include "placement/render.h"
#include "placement/rl_shape.h"
#include "placement/roles.h"
#include "placement/scale.h"
#include "tests/placement/model_costs.h"

namespace troupe::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobConfig rl_job() {
  JobConfig job = testing::small_job();
  job.job.kind = "rl";
  job.env.id = "CartPole-v1";
  job.env.num_envs = 16;
  job.env.blocks = 8;
  job.rollout.steps = 128;
  job.training.global_batch_size = 256;
  job.training.micro_batch_size = 128;
  job.eval.every = 0;
  return job;
}

Plan plan_of(const JobConfig& job, const std::string& cluster = "cpu4-16G") {
  auto outcome = make_plan(*pretend_cluster(cluster), job, testing::tiny_cost());
  if (const auto* reasons = std::get_if<Infeasible>(&outcome)) ADD_FAILURE() << reasons->reasons.front();
  return std::holds_alternative<Plan>(outcome) ? std::get<Plan>(outcome) : Plan{};
}

std::vector<std::string> names_of(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlannedActor& actor : plan.actors) names.push_back(actor.name);
  return names;
}

std::string refusal(const JobConfig& job) {
  auto outcome = make_plan(*pretend_cluster("cpu4-16G"), job, testing::tiny_cost());
  return std::holds_alternative<Infeasible>(outcome) ? std::get<Infeasible>(outcome).reasons.front() : "";
}

TEST(RlShapeTest, BlocksRoundsAndPositionsFollowFromTheJob) {
  const RlShape shape = rl_shape(rl_job());
  EXPECT_EQ(shape.rows, 2);
  EXPECT_EQ(shape.calls, 128);
  EXPECT_EQ(shape.items_per_step(), 8);
  EXPECT_EQ(shape.env_steps_per_step(), 2048);
}

TEST(RlShapeTest, RolloutEpochsAreRoundsOfOneStep) {
  JobConfig job = rl_job();
  job.rollout.epochs = 3;
  EXPECT_EQ(rl_shape(job).items_per_step(), 24);
}

TEST(RlShapeTest, OffPolicyTransactionsCountEnvironmentSteps) {
  JobConfig job = rl_job();
  job.algorithm.name = "sac";
  job.rollout.steps = 8;
  job.rollout.commit_every = 1024;
  EXPECT_EQ(rl_shape(job).rounds_per_step, 8);
  EXPECT_EQ(rl_shape(job).env_steps_per_step(), 1024);
}

TEST(RlShapeTest, ExecutedActionsOfAChunkDecideTheNumberOfCalls) {
  JobConfig job = rl_job();
  job.env.chunk = 8;
  job.env.exec_steps = 4;
  EXPECT_EQ(rl_shape(job).calls, 32);
}

TEST(RlShapeTest, UnsaidBlocksDivideTheGroups) {
  JobConfig job = rl_job();
  job.env.blocks = 0;
  EXPECT_EQ(rl_shape(job).blocks, 4);
  job.env.num_envs = 6;
  job.env.group_size = 2;
  EXPECT_EQ(rl_shape(job).blocks, 3) << "three groups of two";
  job.env.num_envs = 1;
  job.env.group_size = 1;
  EXPECT_EQ(rl_shape(job).blocks, 1);
}

TEST(RlPlanTest, HasSimulatorsAndRolloutWorkersInPlaceOfDecoders) {
  EXPECT_THAT(names_of(plan_of(rl_job())), ElementsAre("learner/0", "env/0", "rollout/0", "checkpointer/0"));
}

TEST(RlPlanTest, ASimulatorBesideNoDeviceUsesTheNodesCores) {
  const Plan plan = plan_of(rl_job());
  EXPECT_EQ(plan.actors.at(1).cpus, 4) << "it steps while the learner waits";
}

TEST(RlPlanTest, PrintsEveryFlow) {
  const JobConfig job = rl_job();
  const std::string table = to_table(plan_of(job), job);
  EXPECT_THAT(table, HasSubstr("env -> rollout"));
  EXPECT_THAT(table, HasSubstr("rollout -> learner"));
  EXPECT_THAT(table, HasSubstr("learner -> rollout"));
  EXPECT_THAT(table, HasSubstr("8 blocks x 2 environments x 128 control steps x 1 = 2,048 environment steps"));
}

TEST(RlPlanTest, SurvivesItsJson) {
  const Plan plan = plan_of(rl_job());
  const auto read = plan_from_json(to_json(plan));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->block_slots, plan.block_slots);
  EXPECT_EQ(to_json(*read), to_json(plan));
}

TEST(RlPlanTest, BlocksAreSplitOverLearnerRanks) {
  JobConfig job = rl_job();
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0:0-2"};
  EXPECT_THAT(refusal(job), HasSubstr("env.blocks 8 cannot be split over 3 learner ranks"));
}

TEST(RlPlanTest, MinibatchesAreSplitOverLearnerRanks) {
  JobConfig job = rl_job();
  job.training.micro_batch_size = 200;
  EXPECT_THAT(
      refusal(job),
      HasSubstr("training.global_batch_size 256 is not a multiple of micro_batch_size 200 x 1 data ranks = 200"));
}

TEST(RlPlanTest, BothPoolsScale) {
  const JobConfig job = rl_job();
  const ClusterSnapshot cluster = *pretend_cluster("cpu4-16G");
  const Plan plan = plan_of(job);
  const auto more = scale_pool(plan, cluster, job, "env", 3);
  ASSERT_TRUE(std::holds_alternative<Plan>(more));
  EXPECT_THAT(names_of(std::get<Plan>(more)),
              ElementsAre("learner/0", "env/0", "env/1", "env/2", "rollout/0", "checkpointer/0"));
  const auto workers = scale_pool(plan, cluster, job, "rollout", 2);
  ASSERT_TRUE(std::holds_alternative<Plan>(workers));
  EXPECT_THAT(names_of(std::get<Plan>(workers)),
              ElementsAre("learner/0", "env/0", "rollout/0", "rollout/1", "checkpointer/0"));
}

TEST(RlPlanTest, OtherPoolsDoNot) {
  const JobConfig job = rl_job();
  const auto outcome = scale_pool(plan_of(job), *pretend_cluster("cpu4-16G"), job, "decoder", 2);
  ASSERT_TRUE(std::holds_alternative<Infeasible>(outcome));
  EXPECT_THAT(std::get<Infeasible>(outcome).reasons.front(),
              HasSubstr("there is no pool 'decoder'; elastic pools: env and rollout"));
}

}  // namespace
}  // namespace troupe::placement
