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

std::string key_of(const JobConfig& job) {
  return fmt::format("{}{}{}, policy {}", job.env.id, job.env.profile.empty() ? "" : " ", job.env.profile,
                     enum_name(job.policy.kind));
}

std::int64_t own_cpus() { return static_cast<std::int64_t>(read_inventory("local").snapshot.cpus); }

std::string seconds_text(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.3g} us", 1e6 * seconds)
         : seconds < 1  ? fmt::format("{:.3g} ms", 1e3 * seconds)
                        : fmt::format("{:.3g} s", seconds);
}

}  // namespace

void keep_step_time(const JobConfig& job, std::optional<double> seconds, const base::Clock& clock) {
  if (!seconds) return;
  MachineCache cache(kFile);
  const RlShape shape = rl_shape(job);
  auto& steps = cache.values()["policy_steps"];
  if (!steps.is_object()) steps = nlohmann::ordered_json::object();  // the first, or not a file of ours
  steps[key_of(job)] = {{"seconds", *seconds},
                        {"environments", shape.envs},
                        {"exec_steps", shape.exec_steps},
                        {"cpus", own_cpus()},
                        {"day", utc_text(clock.wall_seconds()).substr(0, 10)}};
  cache.keep();
}

std::optional<TimedStep> kept_step_time(const JobConfig& job) {
  MachineCache cache(kFile);
  try {
    const auto& kept = cache.values().at("policy_steps").at(key_of(job));
    if (kept.at("cpus") != own_cpus()) return std::nullopt;
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

std::string item_line(const JobConfig& job, bool is_here, const std::optional<TimedStep>& timed) {
  const RlShape shape = rl_shape(job);
  const std::string item = fmt::format("  {:<13} {} policy steps of {} environments", "item", shape.calls, shape.envs);
  if (!is_here) return fmt::format("{}; what they take on other machines is not known\n", item);
  if (!timed) {
    return fmt::format("{}; what they take is not known: a run times it ({}, this machine)\n", item, key_of(job));
  }
  const double actions = static_cast<double>(shape.envs * shape.exec_steps);
  const double timed_actions = static_cast<double>(timed->rows * timed->exec_steps);
  const double step = timed->seconds * actions / timed_actions;
  const std::string scaled = actions == timed_actions ? ""
                                                      : fmt::format(", scaled from {} environments x {} actions",
                                                                    timed->rows, timed->exec_steps);
  return fmt::format("{}, about {}: {} a step, timed here on {}{}\n", item,
                     seconds_text(step * static_cast<double>(shape.calls)), seconds_text(step), timed->day, scaled);
}

}  // namespace troupe::app
