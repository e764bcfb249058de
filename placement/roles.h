#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/job_config.h"
#include "configs/role_kind.h"

namespace troupe::placement {

/// Which roles a job has, and what flows between them. This is the only place that branches on
/// job.kind to find a role.

/// The role whose actors dial the learners' feeds: `rollout` in reinforcement learning; else `encoder` with
/// data.features.encode encoder, which sends latents and text features, or `decoder`, which sends frames. What a job
/// says of a feeder that it does not have is not used (plan warning `feeder:`).
inline std::string feeder_role(const JobConfig& job) {
  if (job.job.kind == JobKind::rl) return "rollout";
  return job.data.features.encode == "encoder" ? "encoder" : "decoder";
}

/// Whether rollout workers step the environments themselves: a job of kind rl without actors of the role `env`.
inline bool steps_inline(const JobConfig& job) {
  const auto found = job.cluster.isolation.find("env");
  return job.job.kind == JobKind::rl && found != job.cluster.isolation.end() && found->second == "inline";
}

/// Roles whose number of actors may change while the job runs, sources first.
inline std::vector<std::string> elastic_roles(const JobConfig& job) {
  if (steps_inline(job)) return {"rollout"};
  if (job.job.kind == JobKind::rl) return {"env", "rollout"};
  return {feeder_role(job)};
}

/// Roles that may be elastic in some job: they run on any node and hold nothing that others cannot make again.
inline bool is_elastic(std::string_view role) {
  return role == RoleKind::decoder || role == RoleKind::encoder || role == RoleKind::env || role == RoleKind::rollout;
}

/// Roles that compute on a device where they are given one: learners, and who acts by a DreamZero.
inline bool uses_devices(const JobConfig& job, std::string_view role) {
  if (role == RoleKind::learner) return true;
  return learns_dreamzero(job) && (role == RoleKind::rollout || role == RoleKind::evaluator);
}

/// The role in an actor's name: "env" of "env/3".
inline std::string role_of(std::string_view actor) { return std::string(actor.substr(0, actor.find('/'))); }

/// Whether "env/3" is an actor of an elastic role.
inline bool is_elastic_actor(std::string_view actor) {
  return actor.find('/') != std::string_view::npos && is_elastic(role_of(actor));
}

/// Elastic roles that this job does not have, and about which its file may still speak.
inline bool is_absent_role(std::string_view role, const JobConfig& job) {
  if (role == RoleKind::env && steps_inline(job)) return true;
  if (role != RoleKind::decoder && role != RoleKind::encoder) return false;
  // its file may extend that of the fine-tuning job
  if (learns_dreamzero(job)) return true;
  return job.job.kind == JobKind::sft && role != feeder_role(job);
}

/// The actor that plays a job's evaluations beside training.
inline constexpr const char* kEvaluatorActor = "evaluator/0";
/// Whether the job has it.
inline bool has_evaluator(const JobConfig& job) { return job.job.kind == JobKind::rl; }

/// A stream of items from every actor of one role to every actor of another. The consumer owns the arena and listens;
/// the producer dials and is told when its consumers change (comm/channel/channel.h).
struct Flow {
  std::string producer, consumer;
  bool weights = false;  ///< published weights, on addresses of their own
};

/// Every flow of a job but the learners' snapshots.
inline std::vector<Flow> flows(const JobConfig& job) {
  std::vector<Flow> all = {{feeder_role(job), "learner"}};
  if (job.job.kind == JobKind::rl) {
    if (!steps_inline(job)) all.push_back({"env", "rollout"});
    all.push_back({"learner", "rollout", /*weights=*/true});
    all.push_back({"learner", "evaluator", /*weights=*/true});
  }
  return all;
}

}  // namespace troupe::placement
