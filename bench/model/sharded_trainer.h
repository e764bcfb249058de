#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/shard/engine.h"

namespace troupe::bench {

/// What one phase of a measurement gave.
struct Phase {
  double seconds = 0;          ///< wall time of all timed steps
  std::vector<double> losses;  ///< of each timed step, mean over the global batch
};

/// Troupe's learner: one Engine for each rank over the thread collective, each rank on a thread of its own with one
/// intra-op thread. Engines and their group live from phase to phase. One thread at a time.
class ShardedTrainer {
 public:
  ShardedTrainer(std::shared_ptr<const Network> network, int world, const EngineOptions& options, std::uint64_t seed);

  /// Runs `warm_up` and then `steps` steps; only the latter are timed, from one barrier to another. Step i takes
  /// batches[i mod size], split evenly over the ranks along dimension 0. Throws std::runtime_error when a rank fails.
  Phase run(const std::vector<Batch>& batches, int warm_up, int steps, double lr);

 private:
  struct Rank {
    std::unique_ptr<Collective> group;  // outlives its engine's use of it
    std::unique_ptr<Engine> engine;
  };
  double step(Rank& rank, const Batch& part, double lr) const;

  std::vector<Rank> ranks_;
};

}  // namespace troupe::bench
