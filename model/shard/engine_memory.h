#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/program/unit_memory.h"
#include "model/shard/arena_views.h"
#include "model/shard/arenas.h"
#include "model/shard/device_vote.h"
#include "model/shard/engine_options.h"
#include "model/shard/flat_layout.h"
#include "model/shard/network.h"
#include "model/shard/shard_kernels.h"
#include "model/shard/shard_store.h"
#include "model/shard/step_vote.h"
#include "model/shard/unit_groups.h"
#include "model/shard/update_intervals.h"
#include "model/step/step_builder.h"

namespace troupe::model {

/// What an engine and its executor work on.
struct EngineMemory {
  /// What a (rank, world) has allocated.
  struct Rank {
    Rank(const EngineMemory& engine, ArenaPlan with_plan, Arenas with_arenas);

    ArenaPlan plan;
    Arenas arenas;
    ShardStore store;
    ArenaViews views;
    /// of each unit
    std::vector<std::vector<UpdateInterval>> intervals;
  };

  /// `device` outlives it, and so do `device_kernels`, which it has where it is not the host.
  EngineMemory(std::shared_ptr<const Network> with_network, EngineOptions with_options, device::Device& device,
               kernels::DeviceKernels* device_kernels);

  /// For that many ranks.
  StepShape shape_for(int ranks) const;
  /// What this (rank, world) needs. Errors: those of Arenas::make.
  Result<std::unique_ptr<Rank>> allocate(device::Device& device) const;

  const std::shared_ptr<const Network> network;
  EngineOptions options;
  /// the chain's, and behind them that of the replicated parameters, if any (state_units)
  std::vector<UnitSpec> units;
  std::vector<FlatLayout> layouts;
  std::uint64_t layout_hash = 0;
  UnitGroups groups;
  /// of a target network: the unit that it follows
  std::vector<std::optional<std::size_t>> source_of;

  /// among those that share the parameters
  int rank = 0, world = 0;
  /// which replica of how many
  int replica = 0, replicas = 1;
  /// null before the first attach
  std::unique_ptr<Rank> memory;
  /// what its buffers hold
  StepState step;
  /// arithmetic of the units, and the host's values on their way
  std::unique_ptr<device::Stream> compute;
  /// on cores: of each unit the squares of its accumulator, until the ranks agree
  std::vector<double> squares;
  /// null on cores; outlives the kernels
  std::unique_ptr<DeviceVote> device_vote;
  std::unique_ptr<ShardKernels> kernels;
  /// of the units' programs, over the steps
  UnitMemory unit_memory;
  bool saw_non_finite_loss = false;
  OptimizerCounts counts;
  /// commits behind the state, of whatever groups
  std::int64_t updates = 0;
};

}  // namespace troupe::model
