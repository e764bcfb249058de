#include "workers/inference/agent/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workers/rollout/policy_shape_of.h"

namespace troupe::workers {

Result<Agent> make_agent(const JobConfig& job, EnvSpec env) {
  Agent agent{.env = std::move(env), .shape = {}, .policy = {}};
  auto shape = policy_shape_of(agent.env, job.env);
  if (!shape) return shape.error().with("env.id");
  agent.shape = std::move(*shape);
  TROUPE_ASSIGN(agent.policy, make_policy_net(job.policy, job.algorithm, agent.shape));
  return agent;
}

Result<Agent> make_agent(const JobConfig& job) {
  TROUPE_ASSIGN(EnvSpec env, env_spec_of(job.env));
  return make_agent(job, std::move(env));
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
