#include "placement/memory_model.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {

namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::int64_t padded_numel(const std::vector<std::int64_t>& numels, std::int64_t world) {
  TROUPE_CHECK(world >= 1, "a unit is shared by at least one rank");
  std::int64_t end = 0;
  for (const std::int64_t numel : numels) end = round_up(end, kEntryAlignment) + numel;
  return round_up(end, world * kShardAlignment);
}

std::int64_t feed_slots(const JobConfig& job, const BatchPlan& batch) {
  const std::int64_t training = batch.micro * (batch.accumulation + job.data.prefetch_batches);
  if (job.eval.every == 0) return training;
  return training + (job.eval.max_samples + batch.data_ranks - 1) / batch.data_ranks;
}

std::int64_t shard_numel(const ModelCost& cost, std::int64_t world) {
  std::int64_t elements = 0;
  for (const UnitCost& unit : cost.units) elements += padded_numel(unit.numels, world) / world;
  return elements;
}

std::int64_t state_bytes_per_param(const JobConfig& job) { return job.precision.param == "bf16" ? 18 : 16; }

MemoryTable learner_memory(const JobConfig& job, const ModelCost& cost, std::int64_t world,
                           std::int64_t slots_in_feed) {
  std::int64_t largest = 0;
  for (const UnitCost& unit : cost.units) largest = std::max(largest, padded_numel(unit.numels, world));
  const std::int64_t shard = shard_numel(cost, world);
  const std::int64_t param_bytes = job.precision.param == "bf16" ? 2 : 4;
  const std::int64_t micro = job.training.micro_batch_size;
  const auto units = static_cast<std::int64_t>(cost.units.size());
  MemoryTable table;
  table.shard_bytes = shard * state_bytes_per_param(job);
  table.param_slot_bytes = std::min(job.parallelism.param_slots, units) * largest * param_bytes;
  table.grad_slot_bytes = job.parallelism.grad_slots * largest * 4;
  table.activation_bytes = micro * (cost.activation_bytes_per_sample + cost.workspace_bytes_per_sample);
  table.encoder_bytes = cost.encoder_bytes;
  table.snapshot_bytes = shard * 12;
  table.feed_bytes = slots_in_feed * cost.sample_bytes;
  return table;
}

}  // namespace troupe
