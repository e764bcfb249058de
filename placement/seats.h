#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "configs/job_config.h"
#include "placement/plan.h"

namespace troupe::placement {

/// Where one process of a role sits.
struct Seat {
  std::int64_t node = 0;
  std::vector<std::int64_t> devices;
};

/// Seats of every role by process rank.
using Seats = std::map<std::string, std::vector<Seat>>;

/// The roles of a job, in the order of the plan: learner, elastic_roles(job), evaluator, checkpointer.
std::vector<std::string> planned_roles(const JobConfig& job);

/// Nodes with less cores have none to set aside for feeders: actors share them.
inline constexpr std::int64_t kSharedCores = 8;

/// Resolves `cluster.component_placement` and fills in roles it leaves out: learners of DreamZero on every device, or
/// one per node where no node has any, and those of small networks on cores; elastic pools beside the learners, where
/// rollout workers of DreamZero have a device each, with learners on them or not; one evaluator, of DreamZero on device
/// 0, and one checkpointer on node 0. Every failure appends one sentence to `reasons`; the result is complete
/// only when none was added.
Seats resolve_seats(const ClusterSnapshot& cluster, const JobConfig& job, std::vector<std::string>& reasons);

/// Threads that one learner rank computes on: cluster.threads.learner where it is set. Else 2 beside a device (1 on
/// small nodes); without devices, the node's cores shared by its ranks, less what the pools that the job starts beside
/// a rank, the checkpointer and the node agent need; on less than 8 cores those share the ranks' cores. It depends on
/// no pool's size, so that scaling one never changes a learner's threads.
std::int64_t learner_threads(const NodeSnapshot& node, const JobConfig& job, std::int64_t ranks_on_node);
/// Cores that are counted for one learner rank: its threads, but on less than 8 cores without devices half of the
/// node's over its ranks, at least 1.
double learner_cpus(const NodeSnapshot& node, const JobConfig& job, std::int64_t ranks_on_node);
/// Cores of one decoder, encoder or rollout worker: 1, but of an encoder cluster.threads.encoder.
double feeder_cpus(const JobConfig& job, const std::string& role);
/// Cores of one actor of an elastic pool: feeder_cpus. But on a node without devices the simulators share all cores to
/// step their environments: simulators and learner take turns, and each waits while the other works.
double elastic_cpus(const NodeSnapshot& node, const JobConfig& job, const std::string& role,
                    std::int64_t actors_on_node);
/// Cores of the evaluator: 1, on which it steps its environments and computes the policy.
inline constexpr double kEvaluatorCpus = 1;
/// 2 on nodes of 16 cores and more, else 1.
double checkpointer_cpus(const NodeSnapshot& node);

/// Cores that actors may use: all but 1 for the node agent, 0.25 below 8 cores.
double usable_cpus(const NodeSnapshot& node);

}  // namespace troupe::placement
