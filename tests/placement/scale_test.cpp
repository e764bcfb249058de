#include "placement/scale.h"

#include <gmock/gmock.h>

#include "placement/pretend.h"
#include "placement/render.h"
#include "tests/placement/model_costs.h"

namespace troupe::placement {
namespace {

using ::testing::HasSubstr;

class ScaleTest : public ::testing::Test {
 protected:
  Plan start(const std::string& cluster, const std::string& decoders) {
    cluster_ = *pretend_cluster(cluster);
    job_ = testing::small_job();
    job_.cluster.num_nodes = static_cast<std::int64_t>(cluster_.nodes.size());
    job_.cluster.component_placement["decoder"] = {.node_group = "node", .placement = decoders};
    job_.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0"};
    job_.cluster.elastic["decoder"] = {.min = 1, .max = 8, .policy = "manual"};
    return std::get<Plan>(make_plan(cluster_, job_, testing::tiny_cost()));
  }
  Plan scaled(const Plan& plan, std::int64_t target) {
    return std::get<Plan>(scale_pool(plan, cluster_, job_, "decoder", target));
  }
  std::string refused(const Plan& plan, const std::string& pool, std::int64_t target) {
    return std::get<Infeasible>(scale_pool(plan, cluster_, job_, pool, target)).reasons.front();
  }
  static std::vector<std::int64_t> decoder_nodes(const Plan& plan) {
    std::vector<std::int64_t> nodes;
    for (const auto& a : plan.actors) {
      if (a.role == "decoder") nodes.push_back(a.node);
    }
    return nodes;
  }
  ClusterSnapshot cluster_;
  JobConfig job_;
};

TEST_F(ScaleTest, GrowingKeepsActorsAndFillsTheEmptiestNode) {
  const Plan before = start("2xcpu16-64G", "0");
  const Plan after = scaled(before, 3);
  EXPECT_THAT(decoder_nodes(after), ::testing::ElementsAre(0, 1, 1))
      << "node 0 also carries the learner and the checkpointer";
  EXPECT_EQ(after.revision, before.revision + 1);
  EXPECT_EQ(diff(before, after),
            "+ decoder/1 on node 1 (node1), 1 cpu, 96.0 MiB\n+ decoder/2 on node 1 (node1), 1 cpu, 96.0 MiB\n");
  EXPECT_EQ(after.streams.size(), before.streams.size() + 2);
}
TEST_F(ScaleTest, ShrinkingRemovesTheNewestOfTheMostLoadedNode) {
  const Plan before = start("2xcpu16-64G", "0:0-1,1:2-3");
  EXPECT_EQ(diff(before, scaled(before, 3)), "- decoder/1 on node 0 (node0)\n");
}
TEST_F(ScaleTest, FreedRanksAreUsedAgain) {
  const Plan before = start("2xcpu16-64G", "0:0-1,1:2-3");
  const Plan after = scaled(scaled(before, 3), 4);
  EXPECT_EQ(diff(before, after), "~ decoder/1: node 0->1\n~ decoder/1 -> learner/0: transport shm->zmq\n");
}
TEST_F(ScaleTest, AnEncoderPoolScalesAndTheDecodersItReplacesDoNot) {
  cluster_ = *pretend_cluster("2xcpu16-64G");
  job_ = testing::small_job();
  job_.data.features.encode = "encoder";
  job_.cluster.num_nodes = 2;
  job_.cluster.component_placement["learner"] = {.node_group = "cluster", .placement = "0"};
  job_.cluster.component_placement["encoder"] = {.node_group = "node", .placement = "0"};
  job_.cluster.elastic["encoder"] = {.min = 1, .max = 4, .policy = "manual"};
  const ModelCost cost = testing::encoders_apart(testing::tiny_cost());
  const Plan before = std::get<Plan>(make_plan(cluster_, job_, cost));
  const auto after = scale_pool(before, cluster_, job_, "encoder", 2);
  EXPECT_EQ(diff(before, std::get<Plan>(after)), "+ encoder/1 on node 1 (node1), 1 cpu, 98.9 MiB\n");
  EXPECT_EQ(std::get<Plan>(after).streams.size(), before.streams.size() + 1);
  EXPECT_EQ(refused(before, "encoder", 5), "encoder=5 is above cluster.elastic.encoder.max 4; nearest: encoder=4");
  EXPECT_THAT(refused(before, "decoder", 2), HasSubstr("there is no pool 'decoder'; elastic pools: encoder."));
}
TEST_F(ScaleTest, SameSizeChangesNothing) {
  const Plan before = start("2xcpu16-64G", "0");
  EXPECT_EQ(to_json(before), to_json(scaled(before, 1)));
}
TEST_F(ScaleTest, EmptyPoolGrowsAgain) {
  const Plan before = start("2xcpu16-64G", "0");
  job_.cluster.elastic["decoder"].min = 0;
  const Plan empty = scaled(before, 0);
  EXPECT_THAT(decoder_nodes(empty), ::testing::IsEmpty());
  const Plan after = scaled(empty, 1);
  ASSERT_EQ(decoder_nodes(after).size(), 1u);
  EXPECT_EQ(after.actors[1].memory_bytes, before.actors[1].memory_bytes);
}
TEST_F(ScaleTest, NodesThatJoinedLaterAreUsed) {
  const Plan before = start("cpu16-64G", "0");
  cluster_ = *pretend_cluster("2xcpu16-64G");
  const Plan after = scaled(before, 2);
  EXPECT_THAT(decoder_nodes(after), ::testing::ElementsAre(0, 1));
  EXPECT_THAT(diff(before, after), HasSubstr("+ node 1 (node1)"));
}
TEST_F(ScaleTest, SmallMachinesAreOversubscribedWithAWarning) {
  const Plan after = scaled(start("cpu2-8G", "0"), 4);
  EXPECT_THAT(after.warnings, ::testing::ElementsAre(HasSubstr("actors would use 6")));
}
TEST_F(ScaleTest, BelowMinIsRefused) {
  EXPECT_THAT(refused(start("cpu16-64G", "0"), "decoder", 0), HasSubstr("below cluster.elastic.decoder.min 1"));
}
TEST_F(ScaleTest, AboveMaxIsRefused) {
  EXPECT_THAT(refused(start("cpu16-64G", "0"), "decoder", 9), HasSubstr("nearest: decoder=8"));
}
TEST_F(ScaleTest, UnknownPoolIsRefusedWithTheNearestName) {
  EXPECT_THAT(refused(start("cpu16-64G", "0"), "decodr", 2), HasSubstr("Did you mean 'decoder'?"));
}
TEST_F(ScaleTest, PoolThatIsNotElasticIsRefused) {
  EXPECT_THAT(refused(start("cpu16-64G", "0"), "learner", 2), HasSubstr("learner is not an elastic pool"));
}
TEST_F(ScaleTest, MemoryIsNeverOversubscribed) {
  const Plan plan = start("cpu16-1G", "0");
  job_.cluster.elastic["decoder"].max = 64;
  EXPECT_THAT(refused(plan, "decoder", 20), HasSubstr("nearest: decoder="));
}
TEST_F(ScaleTest, DeviceNodesAreNotOversubscribed) {
  const Plan plan = start("H200", "0");
  job_.cluster.elastic["decoder"].max = 64;
  // 24 cores: 2 learner, 2 checkpointer, 20 decoders.
  EXPECT_THAT(refused(plan, "decoder", 21), HasSubstr("nearest: decoder=20"));
}
TEST_F(ScaleTest, LostNodesAreNamed) {
  const Plan plan = start("2xcpu16-64G", "0");
  cluster_.nodes.pop_back();
  EXPECT_THAT(refused(plan, "decoder", 2), HasSubstr("node 1 (node1) of the plan is not in the cluster"));
}

}  // namespace
}  // namespace troupe::placement
