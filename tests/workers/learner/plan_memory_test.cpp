// What the planner prints of a learner's memory is what the engine allocates.
#include <gtest/gtest.h>

#include "comm/collective.h"
#include "configs/loader.h"
#include "model/shard/engine.h"
#include "model/wan/dit.h"
#include "model/wan/model_cost.h"
#include "placement/memory_model.h"

namespace troupe {
namespace {

ModelCost cost_of(const JobConfig& job) {
  ModelCost cost;
  for (const DitUnitCost& unit : dit_cost(job.model, job.data.window, 4).units) {
    cost.units.push_back({.name = unit.name, .layout_class = unit.layout_class, .params = unit.params, .numels = unit.numels,
                          .forward_flops_per_sample = 0});
  }
  return cost;
}

class PlanMemoryTest : public ::testing::TestWithParam<int> {};

TEST_P(PlanMemoryTest, PlannedBytesAreTheBytesThatTheEngineAllocates) {
  const int world = GetParam();
  const LoadOutcome loaded = load_job("presets/dreamzero_tiny.yaml", {});
  ASSERT_TRUE(loaded.config) << (loaded.errors.empty() ? "" : loaded.errors.front());
  const JobConfig& job = loaded.config->job;
  const MemoryTable planned = learner_memory(job, cost_of(job), world, 0);

  const auto network = std::make_shared<DitNetwork>(job.model, job.data.window.chunks);
  const auto group = make_thread_group(world, std::chrono::seconds(10));
  const auto collective = join_thread_group(group, 0);
  Engine engine(network, {.param_slots = static_cast<int>(job.parallelism.param_slots),
                          .grad_slots = static_cast<int>(job.parallelism.grad_slots), .adamw = {}});
  engine.attach(*collective);
  const auto allocated = engine.bytes();
  EXPECT_EQ(allocated.at("shards"), planned.shard_bytes);
  EXPECT_EQ(allocated.at("slots"), planned.param_slot_bytes);
  EXPECT_EQ(allocated.at("gradients"), planned.grad_slot_bytes);
  EXPECT_EQ(static_cast<std::int64_t>(engine.snapshot_bytes()), planned.snapshot_bytes);
}

TEST_P(PlanMemoryTest, PlannerAndEnginePadUnitsAlike) {
  const int world = GetParam();
  const LoadOutcome loaded = load_job("presets/dreamzero_tiny.yaml", {});
  ASSERT_TRUE(loaded.config);
  const DitNetwork network(loaded.config->job.model, loaded.config->job.data.window.chunks);
  for (const UnitSpec& unit : network.units()) {
    std::vector<std::int64_t> numels;
    const FlatLayout layout = make_flat_layout(unit.params);
    for (const LayoutEntry& entry : layout.entries) numels.push_back(entry.numel);
    EXPECT_EQ(layout.padded(world), padded_numel(numels, world)) << unit.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, PlanMemoryTest, ::testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace troupe
