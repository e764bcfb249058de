#pragma once

#include <vector>

#include "placement/plan.h"

namespace troupe {

/// Every stream between the actors of a plan (control-plane.md 14.1): each decoder or encoder to each learner's feed,
/// each learner to the checkpointer. Two threads of one node's process share memory by handing it over (`inproc`), other
/// pairs on one node through an arena (`shm`), pairs on two nodes over `zmq`.
std::vector<PlannedStream> plan_streams(const std::vector<PlannedActor>& actors, std::int64_t feed_slots,
                                        std::int64_t sample_bytes, std::int64_t snapshot_bytes);

}  // namespace troupe
