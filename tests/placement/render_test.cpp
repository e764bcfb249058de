#include "placement/render.h"

#include <gmock/gmock.h>

#include <functional>

#include "placement/planner.h"
#include "placement/pretend.h"
#include "tests/placement/model_costs.h"

namespace troupe::placement {
namespace {

using ::testing::HasSubstr;

Plan sample_plan(const char* cluster = "8xH200", const ModelCost& cost = testing::cost_5b(), std::int64_t micro = 32) {
  JobConfig job = testing::small_job();
  job.precision.param = "bf16";
  job.training.global_batch_size = 256;
  job.training.micro_batch_size = micro;
  return std::get<Plan>(make_plan(*pretend_cluster(cluster), job, cost));
}

TEST(RenderTest, TableShowsRolesBatchAndMemoryFormula) {
  JobConfig job = testing::small_job();
  job.precision.param = "bf16";
  job.training.steps = 2000;
  Plan plan = sample_plan();
  plan.warnings = {"nodes: one is not used"};
  const std::string table = to_table(plan, job);
  EXPECT_THAT(table, HasSubstr("learner       8      gpu 0-7          2 each"));
  EXPECT_THAT(table, HasSubstr("decoder       24     node 0:0-23      1 each"));
  EXPECT_THAT(table, HasSubstr("params x 18 B"));
  EXPECT_THAT(table, HasSubstr("32 x 8 x accum 1 = 256 samples/step; 2,000 steps = 512,000 samples"));
  EXPECT_THAT(table, HasSubstr("decoder -> learner: 192 x shm"));
  EXPECT_THAT(table, HasSubstr(", 8 x H200 139.8 GiB (989.4 TFLOP/s bf16)\n"));
  EXPECT_THAT(table, HasSubstr("nodes: one is not used"));
}
TEST(RenderTest, TableTellsFrozenFromTrainedParameters) {
  JobConfig job = testing::small_job();
  job.precision.param = "bf16";
  const Plan plan = sample_plan("8xH200", testing::cost_14b_lora(), 2);
  const std::string table = to_table(plan, job);
  EXPECT_THAT(table, HasSubstr("e9 frozen params x 2 B + 101.62e6 params x 18 B"));
  EXPECT_THAT(table, HasSubstr("12 B/trained param"));
}
TEST(RenderTest, FrozenParametersSurviveTheRoundTrip) {
  const std::string text = to_json(sample_plan("8xH200", testing::cost_14b_lora(), 2));
  const auto back = plan_from_json(text);
  EXPECT_GT(back->frozen_parameters, 15'000'000'000);
  EXPECT_EQ(to_json(*back), text);
  EXPECT_EQ(to_json(sample_plan()).find("frozen_parameters"), std::string::npos) << "absent where nothing is frozen";
}
TEST(RenderTest, TableHasNoTrailingBlanks) {
  const std::string table = to_table(sample_plan("cpu64-256G", testing::tiny_cost()), testing::small_job());
  EXPECT_EQ(table.find(" \n"), std::string::npos);
  EXPECT_EQ(table.back(), '\n');
}
TEST(RenderTest, JsonRoundTripKeepsEveryByte) {
  const std::string text = to_json(sample_plan());
  const auto back = plan_from_json(text);
  EXPECT_EQ(to_json(*back), text);
}
TEST(RenderTest, JsonHasOnlyIntegers) {
  EXPECT_EQ(to_json(sample_plan("cpu2-8G", testing::tiny_cost())).find(".0"), std::string::npos);
}
TEST(RenderTest, PlanIdIgnoresTheRevision) {
  Plan plan = sample_plan();
  const std::string id = plan_id(plan);
  EXPECT_EQ(id.size(), 16u);
  plan.revision = 9;
  EXPECT_EQ(plan_id(plan), id);
  plan.actors[0].node = 1;
  EXPECT_NE(plan_id(plan), id);
}
TEST(RenderTest, ChangedFileIsRefused) {
  std::string text = to_json(sample_plan());
  const std::size_t at = text.find("\"nccl\"");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 6, "\"gloo\"");
  EXPECT_THAT(plan_from_json(text).error().message(), HasSubstr("changed after it was written"));
}
TEST(RenderTest, OtherFormatsAreRefused) {
  EXPECT_THAT(plan_from_json(R"({"format": 2})").error().message(), HasSubstr("format 2"));
  EXPECT_FALSE(plan_from_json("[]"));
  EXPECT_FALSE(plan_from_json("{"));
  EXPECT_FALSE(plan_from_json(R"({"format": 1})"));
}
TEST(RenderTest, APlanThatIsNestedDeepIsRefusedAndNoEndOfTheStack) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THAT(plan_from_json("{\"format\": " + deep + "}").error().message(), HasSubstr("nested too deep"));
}
TEST(RenderTest, APlanThatDoesNotHoldTogetherIsRefused) {
  const auto refusal = [](const std::function<void(Plan&)>& change) {
    Plan plan = sample_plan();
    change(plan);
    const auto back = plan_from_json(to_json(plan));  // its plan_id is right
    return back ? std::string("none") : back.error().message();
  };
  const auto without = [](const char* role) {
    return [=](Plan& plan) { std::erase_if(plan.actors, [&](const PlannedActor& a) { return a.role == role; }); };
  };
  EXPECT_EQ(refusal([](Plan&) {}), "none");
  EXPECT_THAT(refusal(without("learner")), HasSubstr("no learner"));
  EXPECT_THAT(refusal(without("checkpointer")), HasSubstr("no checkpointer"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.actors[0].node = 1; }), HasSubstr("on node 1 of 1"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.actors[0].devices = {8}; }), HasSubstr("device 8"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.actors[0].devices = {-1}; }), HasSubstr("devices is -1"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.actors[0].memory_bytes = INT64_MAX; }), HasSubstr("memory_bytes"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.learner_memory.shard_bytes = INT64_MAX; }), HasSubstr("shard_bytes"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.batch.global = -1; }), HasSubstr("global is -1"));
}
TEST(RenderTest, DiffOfEqualPlansIsEmpty) {
  Plan other = sample_plan();
  other.revision = 4;
  EXPECT_EQ(diff(sample_plan(), other), "");
}
TEST(RenderTest, DiffNamesMovesAdditionsAndRemovals) {
  const Plan before = sample_plan("cpu64-256G", testing::tiny_cost());
  Plan after = before;
  after.nodes.push_back(after.nodes[0]);
  after.nodes[1].name = "other";
  after.actors[1].node = 1;
  after.actors[1].cpus = 2;
  after.batch.global = 512;
  after.collective = "thread";
  const std::string text = diff(before, after);
  EXPECT_THAT(text, HasSubstr("+ node 1 (other)\n"));
  EXPECT_THAT(text, HasSubstr("~ decoder/0: node 0->1, cpus 1->2\n"));
  EXPECT_THAT(text, HasSubstr("~ job: collective gloo->thread\n"));
  EXPECT_THAT(text, HasSubstr("~ batch: global 256->512\n"));
  EXPECT_THAT(diff(after, before), HasSubstr("- node 1 (other)\n"));
}

}  // namespace
}  // namespace troupe::placement
