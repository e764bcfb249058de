// Rollout workers and the evaluator of a DreamZero that learns in an environment, on devices.
#include <gmock/gmock.h>

#include "placement/capacity.h"
#include "placement/planner.h"
#include "placement/pretend.h"
#include "placement/render.h"
#include "placement/scale.h"
#include "tests/placement/model_costs.h"

namespace troupe::placement {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

ModelCost acting_cost() {
  ModelCost cost = testing::tiny_cost();
  cost.rollout_bytes = cost.evaluator_bytes = kGibibyte;
  cost.rollout_device_bytes = 20 * kGibibyte;
  cost.evaluator_device_bytes = 10 * kGibibyte;
  return cost;
}

const PlacementConfig kOnCores{.node_group = "node", .placement = "0"};

/// A test changes its job.
class ActingDevicesTest : public ::testing::Test {
 protected:
  ActingDevicesTest() {
    job_.job.kind = JobKind::rl;
    job_.policy.kind = PolicyKind::dreamzero;
    job_.env.id = "arm7/reach-v1";
    job_.env.num_envs = job_.env.blocks = 8;
    job_.training.global_batch_size = 64;
    job_.training.micro_batch_size = 8;
    job_.eval.every = 0;
  }
  void place(const std::string& role, const std::string& devices) {
    job_.cluster.component_placement[role] = {.node_group = "cluster", .placement = devices};
  }
  std::variant<Plan, Infeasible> made(const std::string& cluster) const {
    return make_plan(*pretend_cluster(cluster), job_, acting_cost());
  }
  Plan plan(const std::string& cluster) const { return std::get<Plan>(made(cluster)); }
  std::string reason(const std::string& cluster) const { return std::get<Infeasible>(made(cluster)).reasons.front(); }
  static std::vector<std::vector<std::int64_t>> devices_of(const Plan& plan, const std::string& role) {
    std::vector<std::vector<std::int64_t>> devices;
    for (const PlannedActor& actor : plan.actors) {
      if (actor.role == role) devices.push_back(actor.devices);
    }
    return devices;
  }

  JobConfig job_ = testing::small_job();
};

TEST_F(ActingDevicesTest, WhoActsSharesTheDevicesOfLearners) {
  const Plan shared = plan("4xH200");
  EXPECT_THAT(devices_of(shared, "learner"), devices_of(shared, "rollout"));
  EXPECT_EQ(devices_of(shared, "rollout").size(), 4U);
  EXPECT_THAT(devices_of(shared, "evaluator"), ElementsAre(ElementsAre(0)));
  for (const std::int64_t device : {0, 1}) {
    const std::int64_t acting = (device == 0 ? 30 : 20) * kGibibyte;
    EXPECT_NEAR(static_cast<double>(device_load(shared, 0, device)),
                static_cast<double>(shared.learner_memory.engine_bytes()) + 1.06 * static_cast<double>(acting), 4);
  }
  EXPECT_THAT(to_table(shared, job_),
              AllOf(HasSubstr("process, 21.2 GiB of its GPU; elastic"), HasSubstr("process, 10.6 GiB of its GPU;")));
  EXPECT_EQ(find_actor(*plan_from_json(to_json(shared)), "rollout/1")->device_bytes, 20 * kGibibyte * 106 / 100);
}

TEST_F(ActingDevicesTest, BesideLearnersOnCoresEveryDeviceActs) {
  job_.cluster.component_placement["learner"] = kOnCores;
  EXPECT_THAT(devices_of(plan("2xH200"), "rollout"), ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(devices_of(plan("cpu16-64G"), "rollout"), ElementsAre(IsEmpty()));
  job_.policy.kind = PolicyKind::mlp;
  EXPECT_THAT(devices_of(plan("2xH200"), "rollout"), ElementsAre(IsEmpty())) << "small networks act on cores";
}

TEST_F(ActingDevicesTest, DevicesOfTheirOwnAreTheirs) {
  place("learner", "0-1");
  place("rollout", "2-3");
  place("evaluator", "3");
  const Plan apart = plan("4xH200");
  EXPECT_EQ(device_load(apart, 0, 0), apart.learner_memory.engine_bytes());
  EXPECT_EQ(device_load(apart, 0, 2), 20 * kGibibyte * 106 / 100);
  EXPECT_EQ(device_load(apart, 0, 3), 20 * kGibibyte * 106 / 100 + 10 * kGibibyte * 106 / 100);
}

TEST_F(ActingDevicesTest, WhatDoesNotFitTogetherIsRefusedWithWhatWould) {
  place("evaluator", "0");
  EXPECT_THAT(reason("1xRTX4090"),
              AllOf(HasSubstr("device 0 of node 0 needs "), HasSubstr("rollout/0 21.2 GiB + evaluator/0 10.6 GiB"),
                    HasSubstr("also possible: cluster.component_placement.evaluator={node_group: node, placement: "
                              "\"0\"}")));
}

TEST_F(ActingDevicesTest, AnEvaluatorThatNoOnePlacedLeavesAFullDevice) {
  const Plan moved = plan("1xRTX4090");
  EXPECT_THAT(devices_of(moved, "evaluator"), ElementsAre(IsEmpty()));
  EXPECT_THAT(devices_of(moved, "rollout"), ElementsAre(ElementsAre(0)));
  EXPECT_THAT(moved.warnings, Contains(HasSubstr("it computes on cores, as device 0 has no room for its 10.6 GiB")));
}

TEST_F(ActingDevicesTest, ADeviceIsDrivenByOneProcessOfARole) {
  place("rollout", "0:0-1");
  EXPECT_THAT(reason("1xH200"), HasSubstr("device 0 of node 0 is given to rollout/0 and to rollout/1"));
  place("rollout", "0-1:0");
  EXPECT_THAT(reason("2xH200"), HasSubstr("rollout/0 gets 2 devices; it drives one"));
  place("rollout", "0");
  job_.cluster.isolation["rollout"] = "thread";
  EXPECT_THAT(reason("1xH200"),
              HasSubstr("cluster.isolation.rollout is thread; what computes on a device is a process"));
  job_.cluster.isolation.clear();
  job_.policy.kind = PolicyKind::mlp;
  EXPECT_THAT(reason("1xH200"),
              AllOf(HasSubstr("rollout/0 is given device 0 of node 0; rollouts of this job compute on "
                              "cores. Place rollouts on cores, as")));
}

TEST_F(ActingDevicesTest, APoolOnDevicesDoesNotGrow) {
  const auto cluster = *pretend_cluster("2xH200");
  const Plan two = plan("2xH200");
  job_.cluster.elastic["rollout"] = {.min = 1, .max = 4};
  const auto more = scale_pool(two, cluster, job_, "rollout", 3);
  EXPECT_THAT(std::get<Infeasible>(more).reasons.front(),
              HasSubstr("rollout=3: rollout workers that act on devices have one each"));
  EXPECT_EQ(pool_size(std::get<Plan>(scale_pool(two, cluster, job_, "rollout", 1)), "rollout"), 1);
}

}  // namespace
}  // namespace troupe::placement
