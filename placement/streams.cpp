#include "placement/streams.h"

#include <algorithm>

#include "placement/rl_shape.h"
#include "placement/roles.h"
#include "placement/sharding.h"

namespace troupe::placement {

namespace {

// Of one rank's buckets at a rollout worker: one is filled while another is taken.
constexpr std::int64_t kWeightSlots = 2;

const char* transport_between(const PlannedActor& a, const PlannedActor& b) {
  if (a.node != b.node) return "zmq";
  return a.isolation == "thread" && b.isolation == "thread" ? "inproc" : "shm";
}

}  // namespace

std::int64_t block_slots(const JobConfig& job) { return 2 * rl_shape(job).blocks; }

StreamSizes stream_sizes(const JobConfig& job, const Plan& plan) {
  return {.feed = {plan.feed_slots, plan.sample_bytes},
          .blocks = {plan.block_slots, plan.block_bytes},
          .weights = {kWeightSlots, job.rollout.bucket_bytes},
          .snapshot_bytes = plan.learner_memory.snapshot_bytes};
}

std::vector<PlannedStream> plan_streams(const JobConfig& job, const std::vector<PlannedActor>& actors,
                                        const StreamSizes& sizes) {
  std::vector<PlannedStream> streams;
  const std::vector<Flow> all = flows(job);
  const auto is_learner = [](const PlannedActor& actor) { return actor.role == RoleKind::learner; };
  const std::int64_t savers = sharing_ranks(job.parallelism, std::count_if(actors.begin(), actors.end(), is_learner));
  for (const PlannedActor& from : actors) {
    for (const PlannedActor& to : actors) {
      for (const Flow& flow : all) {
        if (flow.producer != from.role || flow.consumer != to.role) continue;
        const StreamSize size = flow.weights                         ? sizes.weights
                                : flow.consumer == RoleKind::learner ? sizes.feed
                                                                     : sizes.blocks;
        streams.push_back({from.name, to.name, transport_between(from, to), size.slots, size.slot_bytes});
      }
      // the first replica's state is that of all
      if (is_learner(from) && from.process_rank < savers && to.role == RoleKind::checkpointer) {
        streams.push_back({from.name, to.name, transport_between(from, to), 1, sizes.snapshot_bytes});
      }
    }
  }
  return streams;
}

}  // namespace troupe::placement
