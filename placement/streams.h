#pragma once

#include <vector>

#include "configs/job_config.h"
#include "placement/plan.h"

namespace troupe::placement {

/// Slots at the consumer's end of a stream, and bytes of each.
struct StreamSize {
  std::int64_t slots = 0, slot_bytes = 0;
};
struct StreamSizes {
  StreamSize feed;     ///< samples or trajectories to a learner
  StreamSize blocks;   ///< kind rl: transitions from a simulator to a rollout worker
  StreamSize weights;  ///< kind rl: published weights, in buckets
  std::int64_t snapshot_bytes = 0;
};
StreamSizes stream_sizes(const JobConfig& job, const Plan& plan);

/// Slots that one rollout worker has for its simulators: two per block, so that it may own every block.
std::int64_t block_slots(const JobConfig& job);

/// Every stream between the actors of a plan: the flows of its roles (placement/roles.h), and each
/// learner to the checkpointer. Two threads of one node's process share memory by handing it over (`inproc`), other
/// pairs on one node through an arena (`shm`), pairs on two nodes over `zmq`.
std::vector<PlannedStream> plan_streams(const JobConfig& job, const std::vector<PlannedActor>& actors,
                                        const StreamSizes& sizes);

}  // namespace troupe::placement
