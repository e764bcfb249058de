#include "workers/inference/agent/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workers/rollout/policy_shape_of.h"

namespace troupe::workers {

Result<Agent> make_agent(const JobConfig& job) {
  Agent agent;
  auto envs = make_env_factory(job.env);
  if (!envs) return envs.error().with("env.id");
  agent.envs = std::move(*envs);
  auto shape = policy_shape_of(agent.envs->spec(), job.env);
  if (!shape) return shape.error().with("env.id");
  agent.shape = std::move(*shape);
  TROUPE_ASSIGN(agent.policy, make_policy_net(job.policy, job.algorithm, agent.shape));
  return agent;
}

std::string fingerprint_of(const EnvSpec& spec) {
  std::string text = spec.id;
  for (const EnvField& field : spec.observation) {
    const char* type = field.dtype == EnvDType::u8 ? "u8" : field.dtype == EnvDType::f32 ? "f32" : "f64";
    text += fmt::format(" {} {}[{}]", field.name, type, fmt::join(field.shape, ","));
  }
  return text + (spec.action.is_discrete() ? fmt::format(" choices {}", spec.action.choices)
                                           : fmt::format(" action [{}]", spec.action.size));
}

}  // namespace troupe::workers
