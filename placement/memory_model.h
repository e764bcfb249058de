#pragma once

#include <cstdint>
#include <vector>

#include "configs/job_config.h"
#include "placement/plan.h"

namespace troupe::placement {

/// Every entry of a unit's flat buffer starts at a multiple of this many elements (256 bytes of f32).
inline constexpr std::int64_t kEntryAlignment = 64;
/// A unit's flat buffer is padded to a multiple of `world` times this many elements, so that shards are equal and
/// aligned.
inline constexpr std::int64_t kShardAlignment = 1024;

/// With offload.activations: blocks whose activations are in memory.
inline constexpr int kStashSlots = 3;

/// Elements of a unit's flat buffer, the rule that the engine's layout follows too: entries in
/// order, each rounded up to start at a multiple of 64 elements; the end of the last entry rounded up to a multiple
/// of world * 1024 elements. A unit without parameters has length 0.
std::int64_t padded_numel(const std::vector<std::int64_t>& numels, std::int64_t world);

/// Slots of one rank's feed: micro_batch_size * (accumulation + prefetch_batches), so that a whole step is
/// kept until it commits while `prefetch_batches` micro-batches are on their way, plus this rank's share
/// ceil(eval.max_samples / ranks) of the held-out windows when evaluation is on. Reinforcement learning: this rank's
/// blocks of one round, of as many rounds more as rollouts may be
/// ahead (rollout.staleness), and of one more that a group before may still hold.
std::int64_t feed_slots(const JobConfig& job, const BatchPlan& batch);

/// Bytes of one of `ranks` learner ranks; world = those that share the parameters (sharing_ranks), n and z = shard
/// elements of trained and of frozen units = sum over them of padded_numel / world, r = padded elements of the
/// replicated unit, chain = all other units:
///     shard       state_bytes_per_param() n: 16 n with fp32 parameters: master, two moments, gradient accumulator; the
///                 master itself is gathered. 18 n with bf16 parameters: the same and the bf16 shard that is gathered.
///                 4 n more with ema.decay: the moving average of the master. 4 n fewer with bf16 moments.
///                 (4 | 2) z: the values that are gathered
///                 offload.states: (8 | 12) n of it lie in a file, and 2 * (8 | 12) * the largest trained unit's shard
///                 are added, in which they are updated
///     param slots (param_slots * largest padded unit of the chain + r) * (4 | 2); in parallelism.mode zero1 and zero2,
///                 and where param_slots is enough for all, (all padded units of the chain + r) * (4 | 2); one rank
///                 alone: none, as it reads its shards in place
///     grad slots  (gradient_slots() * largest padded trained unit of the chain + r) * 4, and where there are several
///                 ranks what they send of one unit: the largest padded trained unit, or r, * 4, and with
///                 parallelism.reduce nccl one rank's part of it, its sum; hybrid: at least
///                 replicas * the largest trained unit's shard * 4. zero1: and all padded trained units of the chain
///                 * 4, in which the accumulators of their shards lie
///     activations what each block keeps at its level of activation_checkpoint + what the other units keep + the most
///                 that one works in; with offload.activations three times the most that a block keeps, and what all
///                 blocks keep lies in files; of networks without levels what is kept per sample
///     reference   with algorithm.policy_gradient.kl_beta the reference policy: its acting units in f32, and what a
///                 policy holds frozen beside them; no shards, and host memory also beside a device
///     snapshot    saved_bytes_per_param() n: master, moments and average on their way to a checkpoint; a file with
///                 offload
///     feed        slots_in_feed * sample_bytes
/// `margin_bytes` is left at 0; the planner sets it for ranks on devices.
MemoryTable learner_memory(const JobConfig& job, const ModelCost& cost, std::int64_t ranks, std::int64_t slots_in_feed);

/// G of one learner rank: `parallelism.grad_slots`; 1 in mode zero1, and of a rank that is alone, unless that is enough
/// for all units that are trained.
std::int64_t gradient_slots(const JobConfig& job, const ModelCost& cost, std::int64_t world);

/// Bytes of state per trained parameter and world: what is saved, the gradient accumulator (4) and with bf16 parameters
/// the copy that is gathered (2).
std::int64_t state_bytes_per_param(const JobConfig& job);

/// Bytes of a trained parameter in a snapshot and a checkpoint: master (4), moments (8 or, in bf16, 4) and with
/// ema.decay the average (4).
std::int64_t saved_bytes_per_param(const JobConfig& job);

/// Of them, bytes that offload.states puts into a file: all but a master that is gathered itself.
std::int64_t offloaded_bytes_per_param(const JobConfig& job);

/// Bytes of a parameter as it is gathered, and of a frozen one's state: 4 or 2.
std::int64_t gathered_bytes_per_param(const JobConfig& job);

}  // namespace troupe::placement
