#include "workers/node/restart_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"

namespace troupe::workers {

namespace {

using Action = RestartDecision::Action;
constexpr auto kSteadyRun = std::chrono::minutes(10);
constexpr double kJitter = 0.2;

/// Exit codes of host processes (docs/processes.md#restart), those of sysexits.h where it has one.
constexpr int kUsage = 64, kBadData = 65, kTryAgain = 75, kPermission = 77, kUnsafeConfig = 78;

bool is_final(int exit_code) {
  return exit_code == kUsage || exit_code == kBadData || exit_code == kPermission || exit_code == kUnsafeConfig;
}

std::string describe(const ActorDeath& death) {
  if (death.signal == 0) return fmt::format("{} ended with exit code {}", death.actor, death.exit_code);
  return fmt::format("{} was ended by signal {}{}", death.actor, death.signal,
                     death.out_of_memory ? " (out of memory)" : "");
}

RestartDecision give_up(std::string why) { return {.action = Action::give_up, .delay = {}, .why = std::move(why)}; }

}  // namespace

void RestartPolicy::on_start(const std::string& actor, Time now) {
  actors_[actor].started = now;
  actors_[actor].is_running = true;
}

RestartDecision RestartPolicy::on_exit(const ActorDeath& death, Time now) {
  Actor& actor = actors_[death.actor];
  const bool ran_long = actor.is_running && now - actor.started >= kSteadyRun;
  actor.is_running = false;
  const std::string what = describe(death);
  if (death.signal == 0 && is_final(death.exit_code))
    return give_up(what + "; starting it again cannot mend that, see its log");
  if (death.signal == 0 && death.exit_code == kTryAgain) {
    return {.action = Action::restart, .delay = backoff(death.actor, 1), .why = what + " (try again)"};
  }

  if (ran_long) actor.restarts.clear();
  auto& component = components_[death.component];
  forget_old(actor.restarts, now);
  forget_old(component, now);
  const auto restarts = actor.restarts.size();
  if (static_cast<std::int64_t>(restarts) >= config_.budget) {
    return give_up(fmt::format("{} after {} restarts within {} s; cluster.restart.budget allows no more", what,
                               restarts, config_.window.count()));
  }
  if (static_cast<std::int64_t>(component.size()) >= config_.component_budget) {
    return give_up(
        fmt::format("{}; {} of role {} were restarted within {} s and cluster.restart.component_budget allows no more",
                    what, component.size(), death.component, config_.window.count()));
  }
  actor.component = death.component;
  actor.restarts.push_back(now);
  component.push_back(now);
  return {.action = Action::restart, .delay = backoff(death.actor, restarts), .why = what};
}

void RestartPolicy::forgive(const std::string& name) {
  const auto actor = actors_.find(name);
  if (actor == actors_.end() || actor->second.restarts.empty()) return;
  auto& component = components_[actor->second.component];
  const auto same = std::find(component.rbegin(), component.rend(), actor->second.restarts.back());
  if (same != component.rend()) component.erase(std::next(same).base());
  actor->second.restarts.pop_back();
}

void RestartPolicy::forget_old(std::deque<Time>& restarts, Time now) const {
  while (!restarts.empty() && now - restarts.front() >= config_.window) restarts.pop_front();
}

std::chrono::milliseconds RestartPolicy::backoff(const std::string& actor, std::size_t restarts_before) const {
  if (restarts_before == 0) return std::chrono::milliseconds(0);
  const Seconds doubled =
      config_.backoff_initial * std::exp2(static_cast<double>(std::min<std::size_t>(restarts_before, 64) - 1));
  const std::uint64_t draw = mix64(xxh3_64(actor) + restarts_before);
  const double factor = 1 - kJitter + 2 * kJitter * static_cast<double>(draw >> 11) * 0x1p-53;
  return std::chrono::round<std::chrono::milliseconds>(std::min(doubled * factor, config_.backoff_max));
}

}  // namespace troupe::workers
