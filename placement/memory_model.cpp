#include "placement/memory_model.h"

#include <algorithm>

#include "base/check.h"
#include "placement/recompute_plan.h"
#include "placement/rl_shape.h"
#include "placement/sharding.h"

namespace troupe::placement {

namespace {

constexpr std::int64_t kGradientBytes = 4;  // of every gradient slot, and of accumulators, f32

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// What the units amount to on one of `world` ranks.
struct Elements {
  std::int64_t trained = 0, frozen = 0;             // of this rank's shards
  std::int64_t largest = 0, largest_trained = 0;    // padded units of the chain
  std::int64_t largest_trained_shard = 0;           // of one unit
  std::int64_t all = 0, all_trained = 0;            // padded units of the chain, together
  std::int64_t replicated = 0;                      // padded, whole
  std::int64_t chain_units = 0, trained_units = 0;  // of the chain
};

Elements count_elements(const ModelCost& cost, std::int64_t world) {
  Elements elements;
  for (const UnitCost& unit : cost.units) {
    const std::int64_t padded = padded_numel(unit.numels, world);
    (unit.trainable ? elements.trained : elements.frozen) += padded / world;
    if (unit.trainable) elements.largest_trained_shard = std::max(elements.largest_trained_shard, padded / world);
    if (unit.replicated) {
      elements.replicated += padded;
      continue;
    }
    ++elements.chain_units;
    elements.all += padded;
    elements.largest = std::max(elements.largest, padded);
    if (!unit.trainable) continue;
    ++elements.trained_units;
    elements.all_trained += padded;
    elements.largest_trained = std::max(elements.largest_trained, padded);
  }
  return elements;
}

}  // namespace

std::int64_t padded_numel(const std::vector<std::int64_t>& numels, std::int64_t world) {
  TROUPE_CHECK(world >= 1, "a unit is shared by at least one rank");
  std::int64_t end = 0;
  for (const std::int64_t numel : numels) end = round_up(end, kEntryAlignment) + numel;
  return round_up(end, world * kShardAlignment);
}

std::int64_t feed_slots(const JobConfig& job, const BatchPlan& batch) {
  if (job.job.kind == JobKind::rl) return rl_shape(job).blocks / batch.data_ranks * (2 + job.rollout.staleness);
  const std::int64_t training = batch.micro * (batch.accumulation + job.data.prefetch_batches);
  if (job.eval.every == 0) return training;
  return training + (job.eval.max_samples + batch.data_ranks - 1) / batch.data_ranks;
}

std::int64_t gathered_bytes_per_param(const JobConfig& job) { return job.precision.param == "bf16" ? 2 : 4; }

std::int64_t saved_bytes_per_param(const JobConfig& job) {
  const std::int64_t moment = job.optimizer.moments == "bf16" ? 2 : 4, average = job.ema.decay > 0 ? 4 : 0;
  constexpr std::int64_t kMaster = 4;
  return kMaster + 2 * moment + average;
}

std::int64_t state_bytes_per_param(const JobConfig& job) {
  const std::int64_t copy = job.precision.param == "bf16" ? 2 : 0;
  return saved_bytes_per_param(job) + kGradientBytes + copy;
}

std::int64_t offloaded_bytes_per_param(const JobConfig& job) {
  return saved_bytes_per_param(job) - (job.precision.param == "bf16" ? 0 : kGradientBytes);
}

namespace {

struct UnitBytes {
  std::int64_t memory = 0, offloaded = 0;
};

/// What the units keep, and what one of them works in. The last block is of the lowest level.
UnitBytes unit_bytes(const JobConfig& job, const ModelCost& cost) {
  if (cost.blocks == 0) return {.memory = job.training.micro_batch_size * cost.activation_bytes_per_sample};
  const BlockCounts counts = block_counts(job.activation_checkpoint, cost.blocks);
  std::int64_t kept = 0, largest = 0, workspace = 0;
  bool has_last = false;
  for (std::size_t level = 0; level < counts.size(); ++level) {
    if (counts[level] == 0) continue;
    const LevelCost& block = cost.levels[level];
    kept += counts[level] * block.kept_bytes + (has_last ? 0 : block.last_kept_bytes - block.kept_bytes);
    largest = std::max(largest, block.kept_bytes);
    workspace = std::max(workspace, block.workspace_bytes);
    has_last = true;
  }
  const std::int64_t always = workspace + (counts[0] == cost.blocks ? cost.ends.kept_bytes : cost.ends.rerun_bytes);
  const auto scaled = [&](std::int64_t all) { return all * job.training.micro_batch_size / cost.level_samples; };
  if (!job.offload.activations) return {.memory = scaled(kept + always), .offloaded = 0};
  return {.memory = scaled(std::min<std::int64_t>(cost.blocks, kStashSlots) * largest + always),
          .offloaded = scaled(kept)};
}

}  // namespace

std::int64_t gradient_slots(const JobConfig& job, const ModelCost& cost, std::int64_t world) {
  if (world > 1 && job.parallelism.mode == "zero1") return 1;
  const std::int64_t wanted = job.parallelism.grad_slots;
  return world > 1 || wanted >= count_elements(cost, world).trained_units ? wanted : 1;
}

MemoryTable learner_memory(const JobConfig& job, const ModelCost& cost, std::int64_t ranks,
                           std::int64_t slots_in_feed) {
  const std::int64_t world = sharing_ranks(job.parallelism, ranks);
  const Elements elements = count_elements(cost, world);
  const std::int64_t param_bytes = gathered_bytes_per_param(job);
  const bool is_alone = world == 1, adds_up_whole = !is_alone && job.parallelism.mode == "zero1";
  MemoryTable table;
  table.shard_bytes = elements.trained * state_bytes_per_param(job) + elements.frozen * param_bytes;
  const bool keeps_all = keeps_parameters(job.parallelism) || job.parallelism.param_slots >= elements.chain_units;
  const std::int64_t slots = keeps_all ? elements.all : job.parallelism.param_slots * elements.largest;
  // a rank that is alone reads its shards in place
  table.param_slot_bytes = is_alone ? 0 : (slots + elements.replicated) * param_bytes;
  std::int64_t staging = is_alone ? 0 : std::max(elements.largest_trained, elements.replicated);
  if (job.parallelism.reduce == "nccl") staging /= world;
  if (ranks > world) staging = std::max(staging, ranks / world * elements.largest_trained_shard);
  table.grad_slot_bytes =
      (gradient_slots(job, cost, world) * elements.largest_trained + elements.replicated + staging) * kGradientBytes;
  if (adds_up_whole) {
    // the chain's accumulators lie in its whole gradients
    table.grad_slot_bytes += elements.all_trained * kGradientBytes;
    table.shard_bytes -= elements.all_trained / world * kGradientBytes;
  }
  const UnitBytes units = unit_bytes(job, cost);
  table.activation_bytes = units.memory;
  table.offload_bytes = units.offloaded;
  if (job.offload.states) {
    const std::int64_t offloaded = offloaded_bytes_per_param(job);
    table.offload_bytes += elements.trained * offloaded;
    table.shard_bytes += (2 * elements.largest_trained_shard - elements.trained) * offloaded;
  }
  table.encoder_bytes = cost.encoder_bytes;
  table.reference_bytes = cost.reference_bytes;
  table.snapshot_bytes = elements.trained * saved_bytes_per_param(job);
  table.feed_bytes = slots_in_feed * cost.sample_bytes;
  return table;
}

}  // namespace troupe::placement
