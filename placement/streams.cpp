#include "placement/streams.h"

#include "placement/feeder.h"

namespace troupe {

namespace {

const char* transport_between(const PlannedActor& a, const PlannedActor& b) {
  if (a.node != b.node) return "zmq";
  return a.isolation == "thread" && b.isolation == "thread" ? "inproc" : "shm";
}

}  // namespace

std::vector<PlannedStream> plan_streams(const std::vector<PlannedActor>& actors, std::int64_t feed_slots,
                                        std::int64_t sample_bytes, std::int64_t snapshot_bytes) {
  std::vector<PlannedStream> streams;
  for (const PlannedActor& from : actors) {
    for (const PlannedActor& to : actors) {
      if (is_feeder(from.role) && to.role == "learner") {
        streams.push_back({from.name, to.name, transport_between(from, to), feed_slots, sample_bytes});
      } else if (from.role == "learner" && to.role == "checkpointer") {
        streams.push_back({from.name, to.name, transport_between(from, to), 1, snapshot_bytes});
      }
    }
  }
  return streams;
}

}  // namespace troupe
