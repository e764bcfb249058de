#include "app/step_times.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/machine_cache.h"
#include "base/utc_text.h"
#include "placement/rl_shape.h"
#include "workers/node/inventory.h"

namespace troupe::app {

namespace {

constexpr const char* kFile = "step_times.json";
constexpr const char *kPolicySteps = "policy_steps", *kEnvSteps = "env_steps";

std::string env_of(const JobConfig& job) {
  return fmt::format("{}{}{}", job.env.id, job.env.profile.empty() ? "" : " ", job.env.profile);
}

std::string policy_key_of(const JobConfig& job) {
  return fmt::format("{}, policy {}", env_of(job), enum_name(job.policy.kind));
}

/// With the options: the size of its pictures decides what a step takes.
std::string env_key_of(const JobConfig& job) {
  std::string key = env_of(job);
  for (const auto& [name, value] : job.env.options) key += fmt::format(", {}={}", name, value);
  return key;
}

/// Adds `entry`, with this machine's cores and the day, to a table of the file.
void keep_entry(const char* table, const std::string& key, nlohmann::ordered_json entry, const base::Clock& clock) {
  MachineCache cache(kFile);
  auto& steps = cache.values()[table];
  if (!steps.is_object()) steps = nlohmann::ordered_json::object();  // the first, or not a file of ours
  entry["cpus"] = timed_cores();
  entry["day"] = utc_text(clock.wall_seconds()).substr(0, 10);
  steps[key] = std::move(entry);
  cache.keep();
}

}  // namespace

void keep_step_time(const JobConfig& job, std::optional<double> seconds, const base::Clock& clock) {
  if (!seconds) return;
  const RlShape shape = rl_shape(job);
  keep_entry(kPolicySteps, policy_key_of(job),
             {{"seconds", *seconds}, {"environments", shape.envs}, {"exec_steps", shape.exec_steps}}, clock);
}

std::optional<TimedStep> kept_step_time(const JobConfig& job) {
  MachineCache cache(kFile);
  try {
    const auto& kept = cache.values().at(kPolicySteps).at(policy_key_of(job));
    if (kept.at("cpus") != timed_cores()) return std::nullopt;
    TimedStep timed{.seconds = kept.at("seconds").get<double>(),
                    .rows = kept.at("environments").get<std::int64_t>(),
                    .exec_steps = kept.at("exec_steps").get<std::int64_t>(),
                    .day = kept.at("day").get<std::string>()};
    if (!(timed.seconds > 0) || timed.rows < 1 || timed.exec_steps < 1) return std::nullopt;
    return timed;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // never timed, or not a file of ours
  }
}

void keep_env_step_time(const JobConfig& job, std::optional<double> seconds, const base::Clock& clock) {
  if (seconds) keep_entry(kEnvSteps, env_key_of(job), {{"seconds", *seconds}}, clock);
}

std::optional<TimedEnvStep> kept_env_step_time(const JobConfig& job) {
  MachineCache cache(kFile);
  try {
    const auto& kept = cache.values().at(kEnvSteps).at(env_key_of(job));
    if (kept.at("cpus") != timed_cores()) return std::nullopt;
    TimedEnvStep timed{.seconds = kept.at("seconds").get<double>(), .day = kept.at("day").get<std::string>()};
    if (!(timed.seconds > 0)) return std::nullopt;
    return timed;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::int64_t timed_cores() { return static_cast<std::int64_t>(read_inventory("local").snapshot.cpus); }

std::string step_time_text(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.3g} us", 1e6 * seconds)
         : seconds < 1  ? fmt::format("{:.3g} ms", 1e3 * seconds)
                        : fmt::format("{:.3g} s", seconds);
}

std::string item_line(const JobConfig& job, bool is_here, const std::optional<TimedStep>& timed) {
  const RlShape shape = rl_shape(job);
  const std::string item = fmt::format("  {:<13} {} policy steps of {} environments", "item", shape.calls, shape.envs);
  if (!is_here) return fmt::format("{}; what they take on other machines is not known\n", item);
  if (!timed) {
    return fmt::format("{}; what they take is not known: a run times it ({}, this machine)\n", item,
                       policy_key_of(job));
  }
  const double actions = static_cast<double>(shape.envs * shape.exec_steps);
  const double timed_actions = static_cast<double>(timed->rows * timed->exec_steps);
  const double step = timed->seconds * actions / timed_actions;
  const std::string scaled = actions == timed_actions ? ""
                                                      : fmt::format(", scaled from {} environments x {} actions",
                                                                    timed->rows, timed->exec_steps);
  return fmt::format("{}, about {}: {} a step, timed here on {}{}\n", item,
                     step_time_text(step * static_cast<double>(shape.calls)), step_time_text(step), timed->day, scaled);
}

}  // namespace troupe::app
