#include "workers/inference/agent/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workers/inference/dreamzero/dreamzero_agent.h"
#include "workers/rollout/policy_shape_of.h"

namespace troupe::workers {

namespace {

/// Refuses imitation and algorithms that support only one agent per environment.
Result<void> check_agents(const JobConfig& job, const EnvSpec& env) {
  if (env.agents == 1) return {};
  const auto refuse = [&](const std::string& what) {
    return invalid_argument(fmt::format("{}; {} has {} agents", what, env.id, env.agents));
  };
  if (is_imitation(job)) return refuse("env.id: demonstrations are of one agent");
  const bool compares = job.algorithm.traits().compares_groups();
  if (!compares && !is_off_policy(job)) return {};
  return refuse(fmt::format(
      "algorithm.name is {}, which {} (wanted ppo, decoupled_ppo or vtrace)", enum_name(job.algorithm.name),
      compares ? "compares environments, not their agents" : "keeps transitions of one agent an environment"));
}

Result<Agent> without_policy(const JobConfig& job, EnvSpec env) {
  TROUPE_TRY(check_agents(job, env));
  Agent agent{.env = std::move(env), .shape = {}, .policy = {}};
  auto shape = policy_shape_of(agent.env, job.env, job.policy);
  if (!shape) return shape.error().with("env.id");
  agent.shape = std::move(*shape);
  return agent;
}

Result<Agent> make_agent_from(const std::string& checkpoint, const JobConfig& job, EnvSpec env,
                              std::shared_ptr<kernels::ComputeDevice> device) {
  TROUPE_ASSIGN(Agent agent, without_policy(job, std::move(env)));
  if (learns_dreamzero(job)) {
    TROUPE_ASSIGN(agent.policy, make_dreamzero_policy(job, checkpoint, agent.env, agent.shape, std::move(device)));
  } else {
    TROUPE_ASSIGN(agent.policy, make_policy_net(job.policy, job.algorithm, agent.shape));
  }
  return agent;
}

}  // namespace

Result<Agent> make_agent(const JobConfig& job, EnvSpec env, std::shared_ptr<kernels::ComputeDevice> device) {
  return make_agent_from(job.model.init.path, job, std::move(env), std::move(device));
}

Result<Agent> make_agent(const JobConfig& job) {
  TROUPE_ASSIGN(EnvSpec env, env_spec_of(job.env));
  return make_agent(job, std::move(env));
}

Result<Agent> make_agent(const JobConfig& job, EnvSpec env, const std::string& checkpoint) {
  return make_agent_from(checkpoint, job, std::move(env), nullptr);
}

Result<Agent> plan_agent(const JobConfig& job, EnvSpec env) {
  if (!learns_dreamzero(job)) return make_agent(job, std::move(env));
  TROUPE_ASSIGN(Agent agent, without_policy(job, std::move(env)));
  TROUPE_ASSIGN(agent.policy, plan_dreamzero_policy(job, agent.shape));
  return agent;
}

std::string fingerprint_of(const EnvSpec& spec) {
  std::string text = spec.id;
  for (const EnvField& field : spec.observation) {
    text += fmt::format(" {} {}[{}]", field.name, enum_name(field.dtype), fmt::join(field.shape, ","));
    if (field.reader != EnvReader::policy) text += fmt::format(" {}", enum_name(field.reader));
    if (!field.normalise) text += " as_is";
  }
  return text + (spec.action.is_discrete() ? fmt::format(" choices {}", spec.action.choices)
                                           : fmt::format(" action [{}]", spec.action.size));
}

}  // namespace troupe::workers
