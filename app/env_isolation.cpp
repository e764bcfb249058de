#include "app/env_isolation.h"

#include <fmt/format.h>

#include <algorithm>

#include "configs/role_kind.h"
#include "env/registry/registry.h"
#include "placement/rl_shape.h"

namespace troupe::app {

namespace {

/// What a step of a block costs more, in seconds, where a simulator in a process of its own carries it out: two
/// messages and the waking of two threads. Measured: rl_halfcheetah_ppo, one environment, makes 1,637 steps/s in
/// processes and 9,349 inline (bench/results/rl_inline_cpu2_2026-11-28.md), and 1/1637 - 1/9349 s is this.
constexpr double kHandOver = 0.5e-3;
/// More than this share a simulator may not cost.
constexpr double kSmallShare = 0.1;

constexpr const char* kKey = "cluster.isolation.env";

std::string percent_text(double share) { return fmt::format("{:.{}f} %", 100 * share, share < 0.1 ? 1 : 0); }

/// How much longer than `inlined` seconds `simulated` seconds are.
std::string excess_text(double simulated, double inlined) {
  return simulated < 2 * inlined ? percent_text(simulated / inlined - 1) + " more"
                                 : fmt::format("{:.3g} times as long", simulated / inlined);
}

double lesser(std::int64_t a, std::int64_t b) { return static_cast<double>(std::max<std::int64_t>(1, std::min(a, b))); }

/// By what a step was timed to take.
EnvIsolation choose_by_time(const EnvIsolationFacts& facts, const TimedEnvStep& timed) {
  const double threads = facts.threads == 0 ? 1 : lesser(facts.threads, facts.envs);
  const double inlined = timed.seconds * static_cast<double>(facts.envs * facts.exec_steps) / threads;
  const double cores_of_each =
      facts.threads > 0 ? 1 : lesser(facts.cores, facts.blocks * facts.envs) / lesser(facts.cores, facts.blocks);
  const double simulated = inlined / cores_of_each + kHandOver;
  const std::string step =
      fmt::format("a step of a block takes {} (timed here on {})", step_time_text(inlined), timed.day);
  if (simulated >= (1 + kSmallShare) * inlined) {
    return {"inline", fmt::format("{}, and in a process {}, for the hand-over", step, excess_text(simulated, inlined))};
  }
  if (cores_of_each > 1) {
    return {"process", fmt::format("{}, and {} in simulators, which share it among {} cores; a crash costs a simulator",
                                   step, step_time_text(simulated), facts.cores)};
  }
  return {"process", fmt::format("{}, of which the hand-over to a process is {}; a crash costs a simulator", step,
                                 percent_text(kHandOver / inlined))};
}

/// The key by which a job says where simulators are, or how many; empty: none.
std::string named_by(const ClusterConfig& cluster) {
  if (cluster.elastic.count("env") != 0) return "cluster.elastic.env";
  for (const auto& [key, rule] : cluster.component_placement) {
    for (const std::string& role : roles_of_key(key)) {
      if (role == RoleKind::env) return "cluster.component_placement." + key;
    }
  }
  return {};
}

std::string elsewhere(const ClusterConfig& cluster, const SteppingPlace& place) {
  if (cluster.num_nodes > 1) return fmt::format("cluster.num_nodes is {}", cluster.num_nodes);
  return place.listens ? "other machines may join (--listen)" : "";
}

EnvIsolationFacts facts_of(const JobConfig& job, const EnvSpec& env, const SteppingPlace& place) {
  const RlShape shape = rl_shape(job);
  EnvIsolationFacts facts{.env = job.env.id,
                          .named_by = named_by(job.cluster),
                          .elsewhere = elsewhere(job.cluster, place),
                          .is_built_in = is_built_in(job.env.id),
                          .is_large_policy = learns_dreamzero(job),
                          .timed = place.is_here ? kept_env_step_time(job) : std::nullopt,
                          .is_other_machine = !place.is_here,
                          .envs = shape.envs,
                          .exec_steps = shape.exec_steps,
                          .blocks = shape.blocks,
                          .threads = job.env.threads,
                          .cores = timed_cores()};
  const auto factory = make_env_factory(job.env, env);
  facts.is_made_here = factory.has_value();
  facts.waits_for_others = factory && (*factory)->waits_for_others();
  if (place.point != nullptr && place.point->run) facts.before = place.point->env_isolation;
  return facts;
}

}  // namespace

EnvIsolation choose_env_isolation(const EnvIsolationFacts& facts) {
  const auto process = [](std::string reason) { return EnvIsolation{"process", std::move(reason)}; };
  if (facts.waits_for_others) {
    return process(
        fmt::format("{} is stepped by Python's workers, for whom a rollout worker would stand still", facts.env));
  }
  if (!facts.is_made_here)
    return process(fmt::format("{} cannot be made here, but by simulators elsewhere", facts.env));
  if (!facts.named_by.empty()) return process(facts.named_by + " asks for simulators");
  if (!facts.elsewhere.empty()) {
    return process(facts.elsewhere + ", and environments are stepped on other machines by simulators alone");
  }
  if (!facts.before.empty()) return {facts.before, "as the run began"};
  if (facts.is_large_policy) {
    return process(
        "every rollout worker holds the world-action model, so that they are few; simulators step meanwhile");
  }
  if (!facts.is_built_in) {
    return process(fmt::format(
        "{} is not built in, and a crash costs a simulator; inline is faster where steps are short", facts.env));
  }
  if (facts.timed) return choose_by_time(facts, *facts.timed);
  return {"inline", facts.is_other_machine
                        ? fmt::format("{} is built in, and what it takes on other machines is not known", facts.env)
                        : fmt::format("{} is built in, and not timed here yet", facts.env)};
}

std::optional<EnvIsolation> settle_env_isolation(LoadedConfig& config, const EnvSpec& env, const SteppingPlace& place) {
  JobConfig& job = config.job;
  if (job.job.kind != JobKind::rl) return std::nullopt;
  const auto said = job.cluster.isolation.find("env");
  if (said != job.cluster.isolation.end() && said->second != "auto") return std::nullopt;
  EnvIsolation chosen = choose_env_isolation(facts_of(job, env, place));
  job.cluster.isolation["env"] = chosen.isolation;
  config.provenance[kKey] = "default";  // no setting of the job's, which comparisons of runs tell from others by this
  config.record();
  return chosen;
}

std::string to_text(const EnvIsolation& chosen) { return fmt::format("{}: {}", chosen.isolation, chosen.reason); }

std::string isolation_line(const EnvIsolation& chosen) {
  return fmt::format("  {:<13} {} ({})\n", "environments", to_text(chosen), kKey);
}

}  // namespace troupe::app
