#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/job_config.h"
#include "placement/plan.h"
#include "placement/seats.h"

namespace troupe::placement {

/// Reasons why seats contradict each other or the hardware: a device given twice, but to who acts beside a learner; a
/// learner rank without exactly one device beside others that have one, mixed device models, devices of who computes on
/// cores, more than one evaluator or checkpointer, a pool outside its elastic bounds.
void check_seats(const ClusterSnapshot& cluster, const JobConfig& job, const Seats& seats,
                 std::vector<std::string>& reasons);

/// The setting that places a role on cores, as a word of a command line.
std::string placed_on_cores(const JobConfig& job, const std::string& role);

/// Isolation of a role: what the job says, else "process".
std::string isolation_of(const JobConfig& job, const std::string& role);

/// Reasons why `cluster.isolation` cannot be met: unknown roles, threads for what computes on devices, thread learners
/// on several nodes.
void check_isolation(const JobConfig& job, const Seats& seats, std::vector<std::string>& reasons);

/// The reason why `parallelism.reduce` cannot be met: nccl for several learners on cores.
void check_reduce(const JobConfig& job, const Seats& seats, std::vector<std::string>& reasons);

/// global = micro * ranks * accumulation, and the shard degree. Appends to `reasons` what does not divide, with the
/// nearest fix.
BatchPlan plan_batch(const JobConfig& job, std::int64_t ranks, std::vector<std::string>& reasons);

}  // namespace troupe::placement
