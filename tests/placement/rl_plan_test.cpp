// Planning and scaling jobs of reinforcement learning.
#include <gmock/gmock.h>

#include "placement/planner.h"
#include "placement/pretend.h"
#include "placement/render.h"
#include "placement/replay_log_size.h"
#include "placement/rl_shape.h"
#include "placement/roles.h"
#include "placement/scale.h"
#include "tests/placement/model_costs.h"

namespace troupe::placement {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobConfig rl_job() {
  JobConfig job = testing::small_job();
  job.job.kind = JobKind::rl;
  job.env.id = "CartPole-v1";
  job.env.num_envs = 16;
  job.env.blocks = 8;
  job.rollout.steps = 128;
  job.training.global_batch_size = 256;
  job.training.micro_batch_size = 128;
  job.eval.every = 0;
  return job;
}

/// Simulators, a rollout worker and the evaluator hold different things.
ModelCost rl_cost() {
  ModelCost cost = testing::tiny_cost();
  cost.rollout_bytes = std::int64_t{200} << 20;
  cost.evaluator_bytes = std::int64_t{150} << 20;
  return cost;
}

Plan plan_of(const JobConfig& job, const std::string& cluster = "cpu4-16G") {
  return std::get<Plan>(make_plan(*pretend_cluster(cluster), job, rl_cost()));
}

std::vector<std::string> names_of(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlannedActor& actor : plan.actors) names.push_back(actor.name);
  return names;
}

std::string refusal(const JobConfig& job) {
  return std::get<Infeasible>(make_plan(*pretend_cluster("cpu4-16G"), job, testing::tiny_cost())).reasons.front();
}

/// A test changes its job.
struct RlPlanTest : ::testing::Test {
  JobConfig job = rl_job();
};
using RlShapeTest = RlPlanTest;

TEST_F(RlShapeTest, BlocksRoundsAndPositionsFollowFromTheJob) {
  const RlShape shape = rl_shape(job);
  EXPECT_EQ(shape.envs, 2);
  EXPECT_EQ(shape.calls, 128);
  EXPECT_EQ(shape.items_per_step(), 8);
  EXPECT_EQ(shape.env_steps_per_step(), 2048);
}

TEST_F(RlShapeTest, RolloutEpochsAreRoundsOfOneStep) {
  job.rollout.epochs = 3;
  EXPECT_EQ(rl_shape(job).items_per_step(), 24);
}

TEST_F(RlShapeTest, OffPolicyTransactionsCountEnvironmentSteps) {
  job.algorithm.name = Algorithm::sac;
  job.rollout.steps = 8;
  job.rollout.commit_every = 1024;
  EXPECT_EQ(rl_shape(job).rounds_per_step, 8);
  EXPECT_EQ(rl_shape(job).env_steps_per_step(), 1024);
}

TEST_F(RlShapeTest, ExecutedActionsOfAChunkDecideTheNumberOfCalls) {
  job.env.chunk = 8;
  job.env.exec_steps = 4;
  EXPECT_EQ(rl_shape(job).calls, 32);
}

TEST_F(RlShapeTest, UnsaidBlocksDivideTheGroups) {
  job.env.blocks = 0;
  EXPECT_EQ(rl_shape(job).blocks, 4);
  job.env.num_envs = 6;
  job.env.group_size = 2;
  EXPECT_EQ(rl_shape(job).blocks, 3) << "three groups of two";
  job.env.num_envs = 1;
  job.env.group_size = 1;
  EXPECT_EQ(rl_shape(job).blocks, 1);
}

TEST_F(RlPlanTest, HasSimulatorsAndRolloutWorkersInPlaceOfDecoders) {
  EXPECT_THAT(names_of(plan_of(job)), ElementsAre("learner/0", "env/0", "rollout/0", "evaluator/0", "checkpointer/0"));
}

TEST_F(RlPlanTest, ASimulatorBesideNoDeviceUsesTheNodesCores) {
  const Plan plan = plan_of(job);
  EXPECT_EQ(plan.actors.at(1).cpus, 4) << "it steps while the learner waits";
}

TEST_F(RlPlanTest, HasOneEvaluatorBesideTheLearners) {
  job.eval.every = 20;
  job.eval.episodes = 30;
  const Plan plan = plan_of(job);
  EXPECT_EQ(plan.actors.at(3).role, "evaluator");
  EXPECT_EQ(plan.actors.at(3).cpus, 1);
  EXPECT_THAT(to_table(plan, job), HasSubstr("process; 30 episodes every 20 steps and after the last step"));
  job.cluster.component_placement["evaluator"] = {.node_group = "node", .placement = "0:0-1"};
  EXPECT_THAT(refusal(job), HasSubstr("cluster.component_placement.evaluator starts 2 evaluators; exactly one"));
}

TEST_F(RlPlanTest, EveryRoleIsChargedForWhatItHolds) {
  const ModelCost cost = rl_cost();
  const Plan plan = plan_of(job);
  const auto memory = [&](const char* name) { return find_actor(plan, name)->memory_bytes; };
  EXPECT_EQ(memory("env/0"), cost.decoder_bytes);
  EXPECT_EQ(memory("rollout/0"), cost.rollout_bytes);
  EXPECT_EQ(memory("evaluator/0"), cost.evaluator_bytes);
}

TEST_F(RlPlanTest, WorkersThatDoNotFitAreNamed) {
  ModelCost cost = rl_cost();
  cost.rollout_bytes = std::int64_t{20} << 30;
  const auto outcome = make_plan(*pretend_cluster("cpu4-16G"), job, cost);
  EXPECT_THAT(std::get<Infeasible>(outcome).reasons.front(), HasSubstr("1 rollout x 20.0 GiB"));
}

TEST_F(RlPlanTest, TheReferencePolicyIsOnEveryLearner) {
  ModelCost cost = rl_cost();
  const auto planned = [&] { return std::get<Plan>(make_plan(*pretend_cluster("cpu4-16G"), job, cost)); };
  const Plan without = planned();
  cost.reference_bytes = std::int64_t{3} << 30;
  const Plan plan = planned();
  EXPECT_EQ(plan.learner_memory.total() - without.learner_memory.total(), cost.reference_bytes);
  EXPECT_EQ(plan.actors.front().memory_bytes, plan.learner_memory.total());
  EXPECT_EQ(plan.learner_memory.engine_bytes(), without.learner_memory.engine_bytes()) << "it is in no device's memory";
  EXPECT_THAT(to_table(plan, job), HasSubstr("+ reference policy 3.0 GiB (kl_beta)"));
  EXPECT_THAT(to_table(without, job), ::testing::Not(HasSubstr("reference policy")));
  EXPECT_EQ(plan_from_json(to_json(plan))->learner_memory.reference_bytes, cost.reference_bytes);
}

TEST_F(RlPlanTest, TheEvaluatorsNumberIsFixed) {
  const auto outcome = scale_pool(plan_of(job), *pretend_cluster("cpu4-16G"), job, "evaluator", 2);
  EXPECT_THAT(std::get<Infeasible>(outcome).reasons.front(),
              HasSubstr("evaluator is not an elastic pool; elastic pools: env and rollout"));
}

TEST_F(RlPlanTest, PrintsEveryFlow) {
  const std::string table = to_table(plan_of(job), job);
  EXPECT_THAT(table, HasSubstr("env -> rollout"));
  EXPECT_THAT(table, HasSubstr("rollout -> learner"));
  EXPECT_THAT(table, HasSubstr("learner -> rollout"));
  EXPECT_THAT(table, HasSubstr("learner -> evaluator"));
  EXPECT_THAT(table, HasSubstr("8 blocks x 2 environments x 128 control steps x 1 = 2,048 environment steps"));
  EXPECT_THAT(table, HasSubstr("policy calls  each answers one block; a rollout worker has 8: some are simulated while "
                               "others are answered (double buffering)\n"));
}

TEST_F(RlPlanTest, SaysWhatSimulatesWhileThePolicyAnswers) {
  const auto table = [&] { return to_table(plan_of(job), job); };
  job.env.blocks = 1;
  EXPECT_THAT(table(), HasSubstr("each answers one block; a rollout worker has 1, and waits while they are simulated; "
                                 "with env.blocks=2 it would answer others meanwhile\n"));
  job.env.blocks = 8;
  job.rollout.batch_blocks = 0;
  EXPECT_THAT(table(), HasSubstr("each answers all blocks that wait; a rollout worker has 8: some are simulated"));
  job.cluster.isolation["env"] = "inline";
  EXPECT_THAT(table(), HasSubstr("a rollout worker steps and answers its blocks in turn\n"));
}

/// SAC over items of 15 calls of 2 environments, 4 items a step.
struct ReplayLogSizeTest : RlPlanTest {
  ReplayLogSizeTest() {
    job.algorithm.name = Algorithm::sac;
    job.env.blocks = 4;
    job.env.num_envs = 8;
    job.rollout.steps = 15;
    job.rollout.commit_every = 120;
    job.checkpoint.interval = 3;
    job.training.steps = 1000;
    job.algorithm.sac.replay_capacity = 250;
  }
};

TEST_F(ReplayLogSizeTest, TheBufferAndTwoCheckpointIntervalsAreKept) {
  // three steps of 120 transitions are resident, six more may be gone back to, and one is written meanwhile
  EXPECT_EQ(replay_log_bytes(job, 968), 10 * 4 * 1000);
  job.training.steps = 5;
  EXPECT_EQ(replay_log_bytes(job, 968), 5 * 4 * 1000);
  EXPECT_EQ(replay_log_bytes_per_million(job, 968), 33'333'333);
}

TEST_F(ReplayLogSizeTest, TheLargestCapacityStaysWithinItsType) {
  job.algorithm.sac.replay_capacity = job.training.steps = std::int64_t{1} << 40;
  EXPECT_GT(replay_log_bytes(job, std::int64_t{1} << 34), std::int64_t{1} << 60);
}

TEST_F(ReplayLogSizeTest, OffPolicyPlansPrintIt) {
  EXPECT_THAT(to_table(plan_of(job), job), HasSubstr("replay log    at most 26.7 MiB on disk; at most 21.7 GiB per "
                                                     "million transitions"));
  job.algorithm.name = Algorithm::ppo;
  EXPECT_EQ(replay_log_bytes(job, 968), 0);
  EXPECT_THAT(to_table(plan_of(job), job), ::testing::Not(HasSubstr("replay log")));
}

TEST_F(ReplayLogSizeTest, ALimitIsPrintedWithWhatTheBufferNeeds) {
  job.algorithm.sac.replay_log_bytes = std::int64_t{20} << 20;
  EXPECT_THAT(to_table(plan_of(job), job), HasSubstr("at most 20.0 MiB on disk, algorithm.sac.replay_log_bytes, where "
                                                     "the buffer needs 26.7 MiB; at most 21.7 GiB per million"));
  job.algorithm.sac.replay_log_bytes = std::int64_t{30} << 20;
  EXPECT_THAT(to_table(plan_of(job), job), HasSubstr("at most 26.7 MiB on disk; "));
}

TEST_F(ReplayLogSizeTest, ALimitHoldsTwoCheckpointIntervals) {
  // 6 steps of 4 items of 700,032 bytes
  job.algorithm.sac.replay_log_bytes = 16'800'767;
  EXPECT_THAT(refusal(job), AllOf(HasSubstr("algorithm.sac.replay_log_bytes 16800767 is less than two checkpoint "
                                            "intervals write, 16.0 MiB (checkpoint.interval 3, 4 trajectories a step)"),
                                  HasSubstr("raise it to 16800768, or lower checkpoint.interval")));
  job.algorithm.sac.replay_log_bytes = 16'800'768;
  plan_of(job);
  job.training.steps = 5;  // all of the job is less
  job.algorithm.sac.replay_log_bytes = 5 * 4 * 700'032;
  plan_of(job);
}

TEST_F(RlPlanTest, SurvivesItsJson) {
  const Plan plan = plan_of(job);
  const auto read = plan_from_json(to_json(plan));
  EXPECT_EQ(read->block_slots, plan.block_slots);
  EXPECT_EQ(to_json(*read), to_json(plan));
}

TEST_F(RlPlanTest, BlocksAreSplitOverLearnerRanks) {
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0:0-2"};
  EXPECT_THAT(refusal(job), HasSubstr("env.blocks 8 cannot be split over 3 learner ranks"));
}

TEST_F(RlPlanTest, MinibatchesAreSplitOverLearnerRanks) {
  job.training.micro_batch_size = 200;
  EXPECT_THAT(
      refusal(job),
      HasSubstr("training.global_batch_size 256 is not a multiple of micro_batch_size 200 x 1 data ranks = 200"));
}

TEST_F(RlPlanTest, BothPoolsScale) {
  const ClusterSnapshot cluster = *pretend_cluster("cpu4-16G");
  const Plan plan = plan_of(job);
  const auto more = scale_pool(plan, cluster, job, "env", 3);
  EXPECT_THAT(names_of(std::get<Plan>(more)),
              ElementsAre("learner/0", "env/0", "env/1", "env/2", "rollout/0", "evaluator/0", "checkpointer/0"));
  const auto workers = scale_pool(plan, cluster, job, "rollout", 2);
  EXPECT_THAT(names_of(std::get<Plan>(workers)),
              ElementsAre("learner/0", "env/0", "rollout/0", "rollout/1", "evaluator/0", "checkpointer/0"));
}

TEST_F(RlPlanTest, APoolThatGrowsFromNothingIsChargedAsThePlannerWould) {
  job.cluster.elastic["rollout"] = {.min = 0, .max = 4};
  const ClusterSnapshot cluster = *pretend_cluster("cpu4-16G");
  const auto none = std::get<Plan>(scale_pool(plan_of(job), cluster, job, "rollout", 0));
  ASSERT_EQ(find_actor(none, "rollout/0"), nullptr);
  const auto read = plan_from_json(to_json(none));
  const auto again = std::get<Plan>(scale_pool(*read, cluster, job, "rollout", 1));
  EXPECT_EQ(find_actor(again, "rollout/0")->memory_bytes, rl_cost().rollout_bytes);
}

TEST_F(RlPlanTest, WorkersThatStepInlineHaveNoSimulators) {
  job.cluster.isolation = {{"env", "inline"}, {"rollout", "thread"}};
  job.cluster.elastic["env"] = {.min = 1, .max = 4};
  job.cluster.component_placement["env"] = {.node_group = "node", .placement = "0"};
  const ClusterSnapshot cluster = *pretend_cluster("cpu4-16G");
  const Plan plan = plan_of(job);
  EXPECT_THAT(names_of(plan), ElementsAre("learner/0", "rollout/0", "rollout/1", "rollout/2", "rollout/3",
                                          "evaluator/0", "checkpointer/0"))
      << "they step while the learner waits";
  job.env.blocks = 2;
  EXPECT_THAT(names_of(plan_of(job)),
              ElementsAre("learner/0", "rollout/0", "rollout/1", "evaluator/0", "checkpointer/0"))
      << "none is without a block";
  EXPECT_THAT(to_table(plan, job),
              AllOf(HasSubstr("thread, steps its environments itself; elastic"), ::testing::Not(HasSubstr("env ->"))));
  const auto refused = scale_pool(plan, cluster, job, "env", 2);
  EXPECT_THAT(std::get<Infeasible>(refused).reasons.front(),
              AllOf(HasSubstr("there is no pool 'env': rollout workers step the environments themselves"),
                    HasSubstr("elastic pools: rollout. For simulators"), HasSubstr("cluster.isolation.env=process")));
  const auto fewer = std::get<Plan>(scale_pool(plan, cluster, job, "rollout", 2));
  EXPECT_EQ(pool_size(fewer, "rollout"), 2);
}

TEST_F(RlPlanTest, WorkersThatStepInlineBesideDevicesTakeFreeCores) {
  job.cluster.isolation["env"] = "inline";
  job.cluster.component_placement["learner"] = {.node_group = "node", .placement = "0"};
  EXPECT_EQ(pool_size(plan_of(job, "1xH100"), "rollout"), 8) << "one for each block";
  job.env.num_envs = job.env.blocks = 64;
  const Plan plan = plan_of(job, "1xH100");
  EXPECT_GT(pool_size(plan, "rollout"), 12) << "of 24 cores";
  EXPECT_LT(pool_size(plan, "rollout"), 24);
}

TEST_F(RlPlanTest, APlanKnowsNoChoice) {
  job.cluster.isolation["env"] = "auto";
  EXPECT_THAT(refusal(job), HasSubstr("cluster.isolation.env is 'auto'; wanted process or thread"));
}

TEST_F(RlPlanTest, OtherPoolsDoNot) {
  const auto outcome = scale_pool(plan_of(job), *pretend_cluster("cpu4-16G"), job, "decoder", 2);
  EXPECT_THAT(std::get<Infeasible>(outcome).reasons.front(),
              HasSubstr("there is no pool 'decoder'; elastic pools: env and rollout"));
}

}  // namespace
}  // namespace troupe::placement
