#include "placement/planner.h"

#include <gmock/gmock.h>

#include "placement/pretend.h"
#include "tests/placement/model_costs.h"

namespace troupe::placement {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ClusterSnapshot cluster_of(std::string_view text) { return *pretend_cluster(text); }

Plan plan_or_fail(const ClusterSnapshot& cluster, const JobConfig& job, const ModelCost& cost = testing::tiny_cost()) {
  return std::get<Plan>(make_plan(cluster, job, cost));
}

std::string reason(const ClusterSnapshot& cluster, const JobConfig& job, const ModelCost& cost = testing::tiny_cost()) {
  auto made = make_plan(cluster, job, cost);
  EXPECT_EQ(std::get<Infeasible>(made).reasons.size(), 1u);
  return std::get<Infeasible>(made).reasons.front();
}

std::int64_t count(const Plan& plan, const std::string& role) {
  return std::count_if(plan.actors.begin(), plan.actors.end(), [&](const auto& a) { return a.role == role; });
}

const PlacementConfig kOneANode{.node_group = "node", .placement = "all"};

/// A test changes its job.
struct PlannerTest : ::testing::Test {
  JobConfig job = testing::small_job();
};
using PlannerInfeasibleTest = PlannerTest;

TEST_F(PlannerTest, CpuNodeGetsOneLearnerAndADecoderByDefault) {
  const Plan plan = plan_or_fail(cluster_of("cpu2-4G"), job);
  EXPECT_EQ(count(plan, "learner"), 1);
  EXPECT_EQ(count(plan, "decoder"), 1);
  EXPECT_EQ(count(plan, "checkpointer"), 1);
  EXPECT_EQ(plan.collective, "gloo");
  EXPECT_EQ(plan.batch.accumulation, 8);
}
TEST_F(PlannerTest, FurtherNodesOnCoresMakeSamplesForTheLearnerOfTheFirst) {
  job.cluster.num_nodes = 2;
  const Plan plan = plan_or_fail(cluster_of("2xcpu16-64G"), job);
  std::map<std::string, std::vector<std::int64_t>> nodes;
  for (const PlannedActor& actor : plan.actors) nodes[actor.role].push_back(actor.node);
  EXPECT_THAT(nodes["learner"], ::testing::ElementsAre(0));
  EXPECT_THAT(nodes["checkpointer"], ::testing::ElementsAre(0));
  EXPECT_THAT(nodes["decoder"], ::testing::ElementsAre(0, 0, 1, 1));
}

TEST_F(PlannerTest, TheFirstReplicaAloneSavesItsState) {
  job.parallelism.mode = "hybrid";
  job.parallelism.data_parallel_shard_degree = 2;
  const Plan plan = plan_or_fail(cluster_of("8xH200"), job);
  std::vector<std::string> savers;
  for (const PlannedStream& stream : plan.streams) {
    if (stream.to == "checkpointer/0") savers.push_back(stream.from);
  }
  EXPECT_THAT(savers, ::testing::ElementsAre("learner/0", "learner/1"));
  EXPECT_EQ(plan.disk_bytes_per_checkpoint, 2 * plan.learner_memory.snapshot_bytes);
}
TEST_F(PlannerTest, EveryDeviceGetsALearnerByDefault) {
  const Plan plan = plan_or_fail(cluster_of("8xH200"), job, testing::cost_5b());
  EXPECT_EQ(count(plan, "learner"), 8);
  EXPECT_EQ(count(plan, "decoder"), 24);
  EXPECT_EQ(plan.collective, "nccl");
  for (std::int64_t r = 0; r < 8; ++r)
    EXPECT_EQ(plan.actors[static_cast<std::size_t>(r)].devices, std::vector<std::int64_t>{r});
}
TEST_F(PlannerTest, EncodersTakeThePlaceOfDecodersAndHoldTheFrozenNetworks) {
  job.data.features.encode = "encoder";
  const ModelCost cost = testing::encoders_apart(testing::cost_5b());
  const Plan plan = plan_or_fail(cluster_of("8xH200"), job, cost);
  EXPECT_EQ(count(plan, "decoder"), 0);
  EXPECT_EQ(count(plan, "encoder"), 8) << "one for each learner rank";
  EXPECT_EQ(plan.learner_memory.encoder_bytes, 0);
  for (const PlannedActor& actor : plan.actors) {
    if (actor.role == "encoder") {
      EXPECT_EQ(actor.memory_bytes, cost.decoder_bytes);
      EXPECT_THAT(actor.devices, IsEmpty());
    }
  }
  EXPECT_EQ(std::count_if(plan.streams.begin(), plan.streams.end(),
                          [](const PlannedStream& s) { return s.from == "encoder/3" && s.slot_bytes > 0; }),
            8);
  EXPECT_THAT(plan.warnings, ::testing::Not(::testing::Contains(HasSubstr("feeder: "))));
}
TEST_F(PlannerTest, WhatIsSaidOfTheOtherFeederIsAWarning) {
  job.data.features.encode = "encoder";
  job.cluster.component_placement["decoder"] = {.node_group = "node", .placement = "0:0-3"};
  job.cluster.elastic["decoder"] = {.min = 4, .max = 4, .policy = "manual"};
  const Plan plan = plan_or_fail(cluster_of("cpu16-64G"), job);
  EXPECT_EQ(count(plan, "decoder"), 0);
  EXPECT_THAT(plan.warnings, ::testing::Contains(HasSubstr("what cluster says of 'decoder' is not used")));
  job.data.features.encode = "learner";
  EXPECT_EQ(count(plan_or_fail(cluster_of("cpu16-64G"), job), "decoder"), 4);
}
TEST_F(PlannerInfeasibleTest, EncoderOnADevice) {
  job.data.features.encode = "encoder";
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0-1"};
  job.cluster.component_placement["encoder"] = {.node_group = "cluster", .placement = "2"};
  EXPECT_THAT(reason(cluster_of("4xA100-40G"), job),
              HasSubstr("encoder/0 is given device 2 of node 0; encoders of this job compute on cores"));
}
TEST_F(PlannerTest, CpuRanksShareANodeAndOversubscriptionIsAWarning) {
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0:0-1"};
  job.cluster.component_placement["decoder"] = {.node_group = "cluster", .placement = "0:0-1"};
  const Plan plan = plan_or_fail(cluster_of("cpu2-8G"), job);
  EXPECT_EQ(count(plan, "learner"), 2);
  EXPECT_EQ(plan.batch.data_ranks, 2);
  EXPECT_THAT(plan.warnings, ::testing::ElementsAre(HasSubstr("has 2 cpus and its actors would use 5")));
  for (const auto& stream : plan.streams) EXPECT_EQ(stream.transport, "shm");
}
TEST_F(PlannerTest, ScalingDecodersNeverChangesALearnersCores) {
  job.cluster.component_placement["decoder"] = {.node_group = "node", .placement = "0"};
  const double with_one = plan_or_fail(cluster_of("cpu16-64G"), job).actors[0].cpus;
  job.cluster.component_placement["decoder"] = {.node_group = "node", .placement = "0:0-5"};
  EXPECT_EQ(plan_or_fail(cluster_of("cpu16-64G"), job).actors[0].cpus, with_one);
  EXPECT_EQ(with_one, 11);  // of 16: one for the node agent, two for the checkpointer, two for decoders
}
TEST_F(PlannerTest, ALearnerOnCoresHasAllThatItsFeedersLeave) {
  const auto learner_on = [&](const char* cluster) { return plan_or_fail(cluster_of(cluster), job).actors[0]; };
  EXPECT_EQ(learner_on("cpu2-8G").threads, 2) << "decoders share the cores of a small node";
  EXPECT_EQ(learner_on("cpu2-8G").cpus, 1);
  EXPECT_EQ(learner_on("cpu4-16G").threads, 4);
  EXPECT_EQ(learner_on("cpu64-256G").threads, 59);
  EXPECT_EQ(learner_on("cpu64-256G").cpus, 59);
  EXPECT_EQ(learner_on("1xH200").threads, 2) << "beside a device it only launches work";
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0:0-1"};
  EXPECT_EQ(learner_on("cpu2-8G").threads, 1);
  EXPECT_EQ(learner_on("cpu64-256G").threads, 28);
}
TEST_F(PlannerTest, RecomputesOnlyWhereKeepingEverythingDoesNotFit) {
  EXPECT_EQ(plan_or_fail(cluster_of("cpu16-64G"), job).activation_checkpoint, "none");
  const Plan kept = plan_or_fail(cluster_of("cpu16-64G"), job);
  job.activation_checkpoint.mode = "full";
  const Plan recomputed = plan_or_fail(cluster_of("cpu16-64G"), job);
  EXPECT_EQ(recomputed.activation_checkpoint, "full");
  EXPECT_LT(recomputed.learner_memory.activation_bytes, kept.learner_memory.activation_bytes);
  job.activation_checkpoint.mode = "auto";
  ModelCost cost = testing::tiny_cost();
  for (std::size_t level = 0; level < 3; ++level) cost.levels[level].kept_bytes = std::int64_t{1} << 40;
  cost.levels[0].last_kept_bytes = cost.levels[1].last_kept_bytes = cost.levels[2].last_kept_bytes = std::int64_t{1}
                                                                                                     << 40;
  const Plan forced = plan_or_fail(cluster_of("cpu16-64G"), job, cost);
  EXPECT_EQ(forced.activation_checkpoint, "full");
  EXPECT_EQ(forced.learner_memory.activation_bytes, recomputed.learner_memory.activation_bytes);
}
TEST_F(PlannerTest, TheJobMaySetALearnersThreads) {
  job.cluster.threads.learner = 5;
  EXPECT_EQ(plan_or_fail(cluster_of("cpu16-64G"), job).actors[0].threads, 5);
  EXPECT_EQ(plan_or_fail(cluster_of("cpu2-8G"), job).actors[0].cpus, 5);
  EXPECT_EQ(plan_or_fail(cluster_of("1xH200"), job).actors[0].threads, 5);
}
TEST_F(PlannerTest, TheJobMaySetAnEncodersThreads) {
  job.data.features.encode = "encoder";
  const Plan before = plan_or_fail(cluster_of("cpu16-64G"), job);
  job.cluster.threads.encoder = 4;
  const Plan plan = plan_or_fail(cluster_of("cpu16-64G"), job);
  EXPECT_EQ(plan.actors[1].role, "encoder");
  EXPECT_EQ(plan.actors[1].cpus, 4);
  EXPECT_EQ(plan.actors[0].threads, before.actors[0].threads - 3) << "they are the learner's no longer";
  job.data.features.encode = "learner";
  EXPECT_THAT(plan_or_fail(cluster_of("cpu16-64G"), job).warnings,
              ::testing::Contains(HasSubstr("what cluster says of 'encoder' is not used")));
}
TEST_F(PlannerTest, ThreadRolesOfOneNodeHandOverInProcess) {
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0:0-1"};
  for (const char* role : {"learner", "decoder", "checkpointer"}) job.cluster.isolation[role] = "thread";
  const Plan plan = plan_or_fail(cluster_of("cpu16-64G"), job);
  EXPECT_EQ(plan.collective, "thread");
  for (const auto& stream : plan.streams) EXPECT_EQ(stream.transport, "inproc");
}
TEST_F(PlannerTest, ThreadDecoderBesideProcessLearnerUsesSharedMemory) {
  job.cluster.isolation["decoder"] = "thread";
  for (const auto& stream : plan_or_fail(cluster_of("cpu16-64G"), job).streams) EXPECT_EQ(stream.transport, "shm");
}
TEST_F(PlannerTest, PairsOnTwoNodesUseTheNetwork) {
  job.cluster.num_nodes = 2;
  job.cluster.component_placement["learner"] = kOneANode;
  job.cluster.component_placement["decoder"] = {.node_group = "node", .placement = "1"};
  const Plan plan = plan_or_fail(cluster_of("2xcpu16-64G"), job);
  ASSERT_EQ(count(plan, "learner"), 2);
  for (const auto& s : plan.streams) {
    if (s.from == "decoder/0") {
      EXPECT_EQ(s.transport, s.to == "learner/1" ? "shm" : "zmq");
    } else if (s.from == "learner/1") {
      EXPECT_EQ(s.transport, "zmq");
    }
  }
}
TEST_F(PlannerTest, RemoteShardsAreStagedByTheCheckpointer) {
  const Plan one = plan_or_fail(cluster_of("cpu16-64G"), job);
  job.cluster.num_nodes = 2;
  job.cluster.component_placement["learner"] = kOneANode;
  const Plan two = plan_or_fail(cluster_of("2xcpu16-64G"), job);
  EXPECT_EQ(two.actors.back().memory_bytes, one.actors.back().memory_bytes + two.learner_memory.snapshot_bytes);
}
TEST_F(PlannerTest, SurplusNodesAreLeftOutWithAWarning) {
  const Plan plan = plan_or_fail(cluster_of("3xcpu16-64G"), job);
  EXPECT_EQ(plan.nodes.size(), 1u);
  EXPECT_THAT(plan.warnings, ::testing::ElementsAre(HasSubstr("cluster.num_nodes=3 would use all")));
}
TEST_F(PlannerTest, JoinedKeysShareOneRule) {
  job.cluster.component_placement["learner,decoder"] = {.node_group = "cluster", .placement = "0:0-3"};
  const Plan plan = plan_or_fail(cluster_of("cpu16-64G"), job);
  EXPECT_EQ(count(plan, "learner"), 4);
  EXPECT_EQ(count(plan, "decoder"), 4);
}
TEST_F(PlannerTest, NodeGroupsNumberTheirOwnNodes) {
  job.cluster.num_nodes = 3;
  job.cluster.node_groups.push_back({.label = "cpu", .node_ranks = "1-2", .env = {}});
  job.cluster.component_placement["decoder"] = {.node_group = "cpu", .placement = "all"};
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0"};
  const Plan plan = plan_or_fail(cluster_of("3xcpu16-64G"), job);
  EXPECT_EQ(plan.actors[1].node, 1);
  EXPECT_EQ(plan.actors[2].node, 2);
}
TEST_F(PlannerTest, DevicesAreNotCountedInAGroupThatIgnoresHardware) {
  job.cluster.node_groups.push_back({.label = "cores", .ignore_hardware = true, .env = {}});
  job.cluster.component_placement["decoder"] = {.node_group = "cores", .placement = "0:0-7"};
  EXPECT_EQ(count(plan_or_fail(cluster_of("8xH200"), job, testing::cost_5b()), "decoder"), 8);
}
TEST_F(PlannerTest, BothPresetsFitOnEightH200) {
  job.precision.param = "bf16";
  const Plan small = plan_or_fail(cluster_of("8xH200"), job, testing::cost_5b());
  const Plan large = plan_or_fail(cluster_of("8xH200"), job, testing::cost_14b());
  EXPECT_GT(large.learner_memory.engine_bytes(), small.learner_memory.engine_bytes());
  EXPECT_EQ(small.disk_bytes_per_checkpoint, small.learner_memory.snapshot_bytes * 8);
}

TEST_F(PlannerTest, EqualInputsGiveEqualPlans) {
  const Plan a = plan_or_fail(cluster_of("8xH200"), job), b = plan_or_fail(cluster_of("8xH200"), job);
  ASSERT_EQ(a.actors.size(), b.actors.size());
  for (std::size_t i = 0; i < a.actors.size(); ++i) EXPECT_EQ(a.actors[i].name, b.actors[i].name);
}

// One test per reason.
TEST_F(PlannerInfeasibleTest, CoresHaveNoNccl) {
  job.parallelism.reduce = "nccl";
  EXPECT_EQ(plan_or_fail(cluster_of("8xH200"), job).collective, "nccl");
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0:0-1"};
  EXPECT_THAT(reason(cluster_of("cpu16-64G"), job), HasSubstr("2 learners are on cores"));
}
TEST_F(PlannerInfeasibleTest, TooFewNodes) {
  job.cluster.num_nodes = 3;
  EXPECT_THAT(reason(cluster_of("2xcpu16-64G"), job), HasSubstr("start 1 more, or cluster.num_nodes=2"));
}
TEST_F(PlannerInfeasibleTest, NoNodesAtAll) { EXPECT_THAT(reason({}, job), HasSubstr("start a node")); }
TEST_F(PlannerInfeasibleTest, UnknownRole) {
  job.cluster.component_placement["lerner"] = {};
  EXPECT_THAT(reason(cluster_of("cpu16-64G"), job), HasSubstr("Did you mean 'learner'?"));
}
TEST_F(PlannerInfeasibleTest, RolePlacedTwice) {
  job.cluster.component_placement["learner"] = {};
  job.cluster.component_placement["learner,decoder"] = {};
  EXPECT_THAT(reason(cluster_of("cpu16-64G"), job), HasSubstr("places 'learner' twice"));
}
TEST_F(PlannerInfeasibleTest, UnknownNodeGroup) {
  job.cluster.component_placement["learner"] = {.node_group = "nodes", .placement = "0"};
  EXPECT_THAT(reason(cluster_of("cpu16-64G"), job), HasSubstr("Did you mean 'node'?"));
}
TEST_F(PlannerInfeasibleTest, NodeGroupBeyondTheCluster) {
  job.cluster.node_groups.push_back({.label = "far", .node_ranks = "7", .env = {}});
  job.cluster.component_placement["learner"] = {.node_group = "far", .placement = "0"};
  EXPECT_THAT(reason(cluster_of("cpu16-64G"), job), HasSubstr("names node 7; the cluster has 1 (0-0)"));
}
TEST_F(PlannerInfeasibleTest, PlacementString) {
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0-8"};
  EXPECT_THAT(reason(cluster_of("8xH200"), job), HasSubstr("resource 8; the node group has 8"));
}
TEST_F(PlannerInfeasibleTest, DevicesOnAMachineWithoutAnyNameTheFlagThatPlansThem) {
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0-7"};
  EXPECT_THAT(reason(cluster_of("cpu16-64G"), job),
              HasSubstr("resource 7; the node group has 1 (0-0). This machine has no GPU, so that a node is one "
                        "resource; `troupe plan JOB --pretend 8xH200` plans for GPUs"));
  job.cluster.component_placement["learner"].node_group = "node";
  EXPECT_THAT(reason(cluster_of("cpu16-64G"), job), Not(HasSubstr("GPU")));
}
TEST_F(PlannerInfeasibleTest, OneProcessOnTwoNodes) {
  job.cluster.num_nodes = 2;
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0-1:0"};
  EXPECT_THAT(reason(cluster_of("2xcpu16-64G"), job), HasSubstr("learner/0 gets resources of node 0 and node 1"));
}
TEST_F(PlannerInfeasibleTest, DeviceOfTwoRoles) {
  job.cluster.component_placement["decoder"] = {.node_group = "cluster", .placement = "0"};
  EXPECT_THAT(reason(cluster_of("8xH200"), job),
              HasSubstr("device 0 of node 0 is given to learner/0 and to decoder/0"));
}
TEST_F(PlannerInfeasibleTest, DeviceOfTwoLearners) {
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0:0-1"};
  EXPECT_THAT(reason(cluster_of("8xH200"), job), HasSubstr("learner/0 and to learner/1"));
}
TEST_F(PlannerInfeasibleTest, LearnerWithTwoDevices) {
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0-3:0-1"};
  EXPECT_THAT(reason(cluster_of("8xH200"), job), HasSubstr("learner/0 gets 2 devices"));
}
TEST_F(PlannerInfeasibleTest, LearnersOnTwoDeviceModels) {
  ClusterSnapshot mixed = cluster_of("2x1xH200");
  mixed.nodes[1].devices[0].model = "H100";
  job.cluster.num_nodes = 2;
  EXPECT_THAT(reason(mixed, job), HasSubstr("two models, H200 and H100"));
}
TEST_F(PlannerInfeasibleTest, LearnersOnDevicesAndCores) {
  ClusterSnapshot mixed = cluster_of("2x1xH200");
  mixed.nodes[1].devices.clear();
  job.cluster.num_nodes = 2;
  job.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "all"};
  EXPECT_THAT(reason(mixed, job), HasSubstr("1 of 2 learner ranks have a device"));
}
TEST_F(PlannerInfeasibleTest, TwoCheckpointers) {
  job.cluster.component_placement["checkpointer"] = {.node_group = "node", .placement = "0:0-1"};
  EXPECT_THAT(reason(cluster_of("cpu16-64G"), job), HasSubstr("starts 2 checkpointers"));
}
TEST_F(PlannerInfeasibleTest, PoolOutsideItsBounds) {
  job.cluster.component_placement["decoder"] = {.node_group = "node", .placement = "0:0-3"};
  job.cluster.elastic["decoder"] = {.min = 1, .max = 2, .policy = "manual"};
  EXPECT_THAT(reason(cluster_of("cpu16-64G"), job), HasSubstr("allows 1 to 2. Nearest: 2 decoders"));
}
TEST_F(PlannerInfeasibleTest, BoundsUpsideDown) {
  job.cluster.elastic["decoder"] = {.min = 3, .max = 2, .policy = "manual"};
  EXPECT_THAT(reason(cluster_of("cpu16-64G"), job), HasSubstr("min 3 is above max 2"));
}
TEST_F(PlannerInfeasibleTest, ElasticLearner) {
  job.cluster.elastic["learner"] = {};
  EXPECT_THAT(reason(cluster_of("cpu16-64G"), job), HasSubstr("learner is not an elastic pool"));
}
TEST_F(PlannerInfeasibleTest, IsolationOfAnUnknownRole) {
  job.cluster.isolation["decodr"] = "thread";
  EXPECT_THAT(reason(cluster_of("cpu16-64G"), job), HasSubstr("Did you mean 'decoder'?"));
}
TEST_F(PlannerInfeasibleTest, ThreadLearnersOnTwoNodes) {
  job.cluster.num_nodes = 2;
  job.cluster.component_placement["learner"] = kOneANode;
  job.cluster.isolation["learner"] = "thread";
  EXPECT_THAT(reason(cluster_of("2xcpu16-64G"), job), HasSubstr("node 0 and node 1"));
}
TEST_F(PlannerInfeasibleTest, ThreadLearnersOnDevices) {
  job.cluster.isolation["learner"] = "thread";
  EXPECT_THAT(reason(cluster_of("8xH200"), job), HasSubstr("cluster.isolation.learner=process"));
}
TEST_F(PlannerInfeasibleTest, BatchThatNoMicroBatchCanSplit) {
  job.training.global_batch_size = 250;
  job.training.micro_batch_size = 32;
  EXPECT_EQ(
      reason(cluster_of("8xH200"), job),
      "training.global_batch_size 250 is not a multiple of micro_batch_size 32 x 8 data ranks = 256\n"
      "      fix: training.global_batch_size=256 (250 cannot be split over 8 data ranks at any micro-batch size)");
}
TEST_F(PlannerInfeasibleTest, BatchThatAnotherMicroBatchSplits) {
  job.training.global_batch_size = 24;
  job.training.micro_batch_size = 2;
  EXPECT_THAT(reason(cluster_of("8xH200"), job),
              HasSubstr("fix: training.global_batch_size=32 or training.micro_batch_size=1"));
}
TEST_F(PlannerInfeasibleTest, ShardDegree) {
  job.parallelism.data_parallel_shard_degree = 4;
  EXPECT_THAT(reason(cluster_of("8xH200"), job), HasSubstr("fix: parallelism.data_parallel_shard_degree=-1"));
}
TEST_F(PlannerInfeasibleTest, ShardDegreeOfReplicas) {
  job.parallelism.mode = "hybrid";
  EXPECT_THAT(reason(cluster_of("8xH200"), job),
              HasSubstr("not -1\n      fix: parallelism.data_parallel_shard_degree=4"));
  job.parallelism.data_parallel_shard_degree = 3;
  EXPECT_THAT(reason(cluster_of("8xH200"), job),
              HasSubstr("not 3\n      fix: parallelism.data_parallel_shard_degree=2"));
}
TEST_F(PlannerInfeasibleTest, DeviceMemoryNamesTheLargestFittingMicroBatch) {
  job.precision.param = "bf16";
  job.training.global_batch_size = 512;
  job.training.micro_batch_size = 64;
  ModelCost cost = testing::cost_5b();
  cost.ends.rerun_bytes = 3'000'000'000;
  const std::string text = reason(cluster_of("8xH200"), job, cost);
  EXPECT_THAT(text, HasSubstr("per GPU, 139.8 GiB available. Largest fitting micro_batch_size: 32 ("));
}
TEST_F(PlannerInfeasibleTest, DeviceMemoryNamesMoreDevicesWhenStatesAreTooLarge) {
  job.precision.param = "bf16";
  const std::string text = reason(cluster_of("H100"), job, testing::cost_14b());
  EXPECT_THAT(text, HasSubstr("No smaller micro_batch_size fits."));
  EXPECT_THAT(text, HasSubstr("also possible: 8 GPUs"));
}
TEST_F(PlannerInfeasibleTest, NodeMemoryShowsWhatFillsIt) {
  job.cluster.component_placement["decoder"] = {.node_group = "node", .placement = "0:0-29"};
  const std::string text = reason(cluster_of("cpu32-2G"), job);
  EXPECT_THAT(text, HasSubstr("30 decoders x 96.0 MiB"));
  EXPECT_THAT(text, HasSubstr("1.9 GiB available (2.0 GiB less 5 %)"));
}
TEST_F(PlannerInfeasibleTest, CoresOfADeviceNode) {
  ClusterSnapshot cluster = cluster_of("8xH200");
  cluster.nodes[0].cpus = 32;
  job.cluster.component_placement["decoder"] = {.node_group = "node", .placement = "0:0-29"};
  EXPECT_THAT(reason(cluster, job),
              HasSubstr("has 32 cpus; its actors need 48. Nearest: 14 decoders on this node instead of 30"));
}
TEST_F(PlannerInfeasibleTest, FewCoresOfADeviceNodeAreShared) {
  ClusterSnapshot cluster = cluster_of("8xH200");
  cluster.nodes[0].cpus = 7;
  const auto plan = std::get<Plan>(make_plan(cluster, job, testing::tiny_cost()));
  EXPECT_THAT(plan.warnings, Contains(HasSubstr("has 7 cpus and its actors would use")));
}
TEST_F(PlannerInfeasibleTest, AllReasonsAreListed) {
  job.training.global_batch_size = 7;
  job.parallelism.data_parallel_shard_degree = 3;
  const auto made = make_plan(cluster_of("8xH200"), job, testing::tiny_cost());
  EXPECT_EQ(std::get<Infeasible>(made).reasons.size(), 2u);
}

}  // namespace
}  // namespace troupe::placement
