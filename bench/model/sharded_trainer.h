#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bench/model/dit_case.h"
#include "bench/model/tensor_memory.h"
#include "kernels/device_module.h"
#include "model/shard/engine.h"

namespace troupe::bench {

/// What some steps took.
struct Phase {
  double seconds = 0;             ///< wall time of all steps, from one barrier of the ranks to another
  double update_s = 0;            ///< of these, rank 0's from a step's results to its end
  std::vector<double> losses;     ///< of each step, mean over the global batch
  TensorUse tensors = {};         ///< of the steps, all ranks
  std::int64_t minor_faults = 0;  ///< of the process meanwhile
};

/// Troupe's learner: one Engine for each rank over the thread collective, and between devices NCCL. Engines and their
/// group live from phase to phase. One thread at a time.
class ShardedTrainer {
 public:
  /// `weights`: initial values by name, f32. `devices`: one of each rank, which outlive the trainer; none: cores.
  /// Throws std::runtime_error.
  ShardedTrainer(const std::shared_ptr<const Network>& network, int world, const EngineOptions& options,
                 const NamedTensors& weights, std::span<const kernels::ComputeDevice> devices = {});

  /// Runs steps of `accumulation` micro-batches for each rank: batches[r] is rank r's, each time. Each rank has a
  /// thread of its own, in which LibTorch may use one thread and the kernels `threads`. Throws std::runtime_error when
  /// a rank fails.
  Phase run(const std::vector<Batch>& batches, int steps, double lr, int threads, int accumulation = 1);

  /// What the engines of all ranks have allocated.
  std::int64_t bytes() const;

 private:
  struct Rank {
    std::unique_ptr<Collective> group;  // outlives its engine's use of it
    std::unique_ptr<Engine> engine;
  };
  void step(Rank& rank, const Batch& batch, double lr, int accumulation, Phase& phase) const;
  /// In a thread of each rank; throws what one of them threw.
  void run_ranks(const std::function<void(std::size_t)>& body);

  std::vector<Rank> ranks_;
};

}  // namespace troupe::bench
