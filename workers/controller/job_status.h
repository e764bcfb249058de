#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "placement/plan.h"
#include "workers/controller/actor_table.h"
#include "workers/controller/job_state.h"

namespace troupe::workers {

/// What `troupe status` says of a job beside its actors and nodes.
struct JobStatus {
  std::string job, run;
  JobState state = JobState::starting;
  /// Committed by the group, of all, and the newest on disk.
  std::int64_t step = 0, steps = 0, committed_step = 0;
  std::uint64_t fence = 0;
  std::int64_t restarts = 0, void_samples = 0;
  /// Of the newest step.
  std::map<std::string, double> metrics;
  /// Of the learners by kind, largest rank.
  std::map<std::string, std::int64_t> bytes;
};

/// JSON: every member by its name, actors[], pools, nodes[].
std::string status_json(const JobStatus& status, const ActorTable& actors, const ClusterSnapshot& cluster,
                        std::chrono::steady_clock::time_point now);

/// The event "memory": measured bytes of the largest rank beside the planned ones.
std::string memory_text(const MemoryTable& planned, const std::map<std::string, std::int64_t>& measured);

}  // namespace troupe::workers
