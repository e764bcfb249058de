#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/namespaces.h"

namespace troupe::placement {

/// One device of a node.
struct DeviceSnapshot {
  std::string model;  ///< "H200"
  std::int64_t memory_bytes = 0;
};

/// What a node offers. Nodes are listed by rank.
struct NodeSnapshot {
  std::string name;
  std::int64_t cpus = 0;
  std::int64_t memory_bytes = 0;
  std::vector<DeviceSnapshot> devices = {};
};

/// How fast the cores of the planning machine multiply bf16 in either form of precision.products.
struct ProductRates {
  bool has_tiles = false;          ///< the processor has instructions for tiles of bf16 (AMX)
  double native = 0, widened = 0;  ///< FLOP/s; 0: not measured
};

/// The cluster at planning time. A value: no clock, no network.
struct ClusterSnapshot {
  std::vector<NodeSnapshot> nodes;
  ProductRates products = {};  ///< of the machine that plans; a pretended cluster has none
};

/// Size and work of one unit, from the very unit list that the engine lays out.
struct UnitCost {
  std::string name;
  std::string layout_class;
  std::int64_t params = 0;                ///< elements
  std::vector<std::int64_t> numels = {};  ///< elements of each parameter in order, with those that follow it at once
  double forward_flops_per_sample = 0;
  bool trainable = true;    ///< false: gathered like any other, and nothing but its values is kept
  bool replicated = false;  ///< behind the chain: kept whole on every rank, takes no slot (low-rank adapters)
};

/// A transformer block at a level of activation_checkpoint, for ModelCost::level_samples samples.
struct LevelCost {
  std::int64_t kept_bytes = 0;       ///< from its forward to its backward
  std::int64_t last_kept_bytes = 0;  ///< of the last block, whose rows are trimmed
  std::int64_t workspace_bytes = 0;  ///< while one unit runs where blocks have this level
  double replay_work = 0;            ///< FLOPs that its backward repeats, a byte that is moved counting as 10
};

/// What the other units of a network whose blocks have levels keep from their forward to their backward, for
/// ModelCost::level_samples samples.
struct EndsCost {
  std::int64_t kept_bytes = 0;   ///< where all blocks keep everything
  std::int64_t rerun_bytes = 0;  ///< where the prologue runs again
};

/// Everything the planner needs to know of a model and of its samples, filled by app.
struct ModelCost {
  std::vector<UnitCost> units;                   ///< those that have state: the chain in order, then the replicated one
  std::int64_t activation_bytes_per_sample = 0;  ///< kept by forward for backward, by networks without such blocks
  std::int64_t blocks = 0;                       ///< that have levels of recompute; 0: the network has none
  std::array<LevelCost, 4> levels = {};          ///< none, cheap, attention, full
  EndsCost ends = {};
  std::int64_t level_samples = 1;    ///< that these are of; others in proportion
  std::int64_t encoder_bytes = 0;    ///< frozen encoders and codec that a learner holds beside its shards
  std::int64_t sample_bytes = 0;     ///< one slot of the feed's arena
  std::int64_t decoder_bytes = 0;    ///< working memory of one decoder, encoder or simulator, with its networks
  std::int64_t rollout_bytes = 0;    ///< kind rl: working memory of one rollout worker, with its networks
  std::int64_t evaluator_bytes = 0;  ///< kind rl: the same of the evaluator
  /// Of DreamZero that learns in an environment: what either holds on a device that it is given, beside those.
  std::int64_t rollout_device_bytes = 0, evaluator_device_bytes = 0;
  std::int64_t reference_bytes = 0;  ///< kind rl: whole weights of the reference policy on every rank; 0 without it
  std::int64_t block_bytes = 0;      ///< kind rl: what a simulator sends of one step of a block
  std::int64_t policy_bytes = 0;     ///< kind rl: one version of the weights as it is published
};

/// One actor of the plan.
struct PlannedActor {
  std::string name = {};  ///< "learner/0"
  std::string role;
  std::int64_t process_rank = 0;
  std::int64_t node = 0;  ///< node rank
  std::vector<std::int64_t> devices = {};
  double cpus = 1;
  std::int64_t threads = 1;       ///< that a learner computes on; on small nodes more than the cores counted for it
  std::string isolation;          ///< process or thread
  std::int64_t memory_bytes = 0;  ///< host memory
  /// Of a rollout worker or evaluator, on its device with the margin. A learner's is learner_memory.engine_bytes().
  std::int64_t device_bytes = 0;
};

/// One stream between actors.
struct PlannedStream {
  std::string from;
  std::string to;
  std::string transport;  ///< inproc, shm, zmq
  std::int64_t slots = 0;
  std::int64_t slot_bytes = 0;
};

/// What a device has to have beside what a process holds there, for fragmentation, driver and collectives: 6 %.
inline std::int64_t device_margin(std::int64_t bytes) { return bytes * 6 / 100; }

/// Bytes per learner rank (docs/placement.md#memory-of-a-learner-rank; placement/memory_model.h has the formulas).
struct MemoryTable {
  std::int64_t shard_bytes = 0;  ///< master, moments, accumulator (and low-precision shard) of this rank; frozen values
  std::int64_t param_slot_bytes = 0;  ///< and the replicated parameters, whole
  std::int64_t grad_slot_bytes = 0;   ///< and the replicated gradients, whole
  std::int64_t activation_bytes = 0;
  std::int64_t encoder_bytes = 0;
  std::int64_t reference_bytes = 0;  ///< the whole weights of kl_beta's reference policy, in host memory
  std::int64_t snapshot_bytes = 0;   ///< checkpoint arena
  std::int64_t feed_bytes = 0;       ///< arena of slots
  std::int64_t offload_bytes = 0;    ///< states and activations in files; then the checkpoint arena is one too
  std::int64_t margin_bytes = 0;     ///< on devices: device_margin of the engine's bytes
  /// What the engine holds: on the rank's device, or in host memory on a node without devices.
  std::int64_t engine_bytes() const {
    return shard_bytes + param_slot_bytes + grad_slot_bytes + activation_bytes + encoder_bytes + margin_bytes;
  }
  /// Shared arenas in host memory.
  std::int64_t arena_bytes() const { return (offload_bytes > 0 ? 0 : snapshot_bytes) + feed_bytes; }
  /// In host memory wherever the engine is.
  std::int64_t host_bytes() const { return arena_bytes() + reference_bytes; }
  std::int64_t total() const { return engine_bytes() + host_bytes(); }
};

/// Batch arithmetic: global = micro * data_ranks * accumulation.
struct BatchPlan {
  std::int64_t global = 0;
  std::int64_t micro = 0;
  std::int64_t data_ranks = 0;
  std::int64_t accumulation = 0;
};

/// The printed, diffable result of placement.
struct Plan {
  std::string job;
  std::int64_t revision = 0;
  std::vector<NodeSnapshot> nodes;
  std::vector<PlannedActor> actors;  ///< by role (learner, decoder or encoder, checkpointer), then process rank
  std::vector<PlannedStream> streams;
  std::string collective;                      ///< thread, gloo or nccl
  std::string sharding = "zero3";              ///< what parallelism.mode came to
  std::string activation_checkpoint = "full";  ///< level of all blocks
  std::vector<std::int64_t> recompute_counts;  ///< where levels differ: blocks of none, cheap, attention, full
  std::string products = {};  ///< form of bf16 products on cores: native or widened; empty: the job has none
  BatchPlan batch;
  MemoryTable learner_memory;
  std::int64_t parameters = 0;
  std::int64_t frozen_parameters = 0;  ///< of them
  std::int64_t disk_bytes_per_checkpoint = 0;
  std::int64_t feed_slots = 0;            ///< slots of each learner's feed
  std::int64_t sample_bytes = 0;          ///< one slot
  std::int64_t decoder_memory_bytes = 0;  ///< of one decoder, encoder or simulator, for pools that grow later
  std::int64_t rollout_memory_bytes = 0;  ///< kind rl: of one rollout worker, for the same
  std::int64_t block_slots = 0;           ///< kind rl: slots of each rollout worker for its simulators
  std::int64_t block_bytes = 0;           ///< kind rl: one of them
  std::vector<std::string> warnings;
};

/// The actor of this name; null: the plan has none.
inline const PlannedActor* find_actor(const Plan& plan, std::string_view name) {
  const auto found = std::find_if(plan.actors.begin(), plan.actors.end(),
                                  [&](const PlannedActor& actor) { return actor.name == name; });
  return found == plan.actors.end() ? nullptr : &*found;
}

}  // namespace troupe::placement
