#include "workers/controller/actor_restarts.h"

#include <fmt/format.h>

#include "configs/role_kind.h"

namespace troupe::workers {

namespace {

std::string how_it_ended(const ActorExited& exit) {
  if (exit.signal != 0) return fmt::format("killed by signal {}", exit.signal);
  return fmt::format("exited with code {}", exit.exit_code);
}

}  // namespace

ActorRestarts::ActorRestarts(const ClusterConfig& cluster, ActorTable& actors, ActorLauncher& launcher,
                             ControllerEffects& effects)
    : policy_(cluster.restart),
      start_timeout_(cluster.start_timeout),
      actors_(actors),
      launcher_(launcher),
      effects_(effects) {}

Result<std::string> ActorRestarts::plan(ActorRecord& actor, const ActorExited& exit, std::int64_t committed_step,
                                        TimePoint now) {
  // A wanted actor that ended is a death, also when it was we who killed it for being stuck, or when it ended in order.
  const bool orderly = exit.exit_code == 0 && exit.signal == 0;
  const RestartDecision decision = policy_.on_exit({.actor = actor.plan.name,
                                                    .component = actor.plan.role,
                                                    .exit_code = orderly ? 1 : static_cast<int>(exit.exit_code),
                                                    .signal = static_cast<int>(exit.signal),
                                                    .out_of_memory = exit.out_of_memory},
                                                   now);
  if (decision.action != RestartDecision::Action::restart) {
    return Error{
        Errc::failed_precondition,
        fmt::format("{} {} and is not started again: {}{}{}", actor.plan.name, how_it_ended(exit), decision.why,
                    exit.stderr_tail.empty() ? "" : "; the end of its stderr:\n", exit.stderr_tail)};
  }
  ++count_;
  ++actor.restarts;
  actor.state = ActorState::planned;
  actor.restart_at = now + decision.delay;
  std::string line = fmt::format("{} {}; restart {} in {:.1f} s", actor.plan.name, how_it_ended(exit), actor.restarts,
                                 Seconds(decision.delay).count());
  if (actor.plan.role == RoleKind::learner) line += fmt::format("; all ranks go back to step {}", committed_step);
  effects_.event(Severity::warn, "restart", line);
  return line;
}

void ActorRestarts::tick(TimePoint now) {
  for (auto& [name, actor] : actors_.rows()) {
    if (actor.state == ActorState::planned && actor.restart_at && now >= *actor.restart_at) launcher_.spawn(actor, now);
    if (actor.state != ActorState::starting || now - actor.since <= start_timeout_) continue;
    effects_.event(Severity::warn, "start_timeout",
                   fmt::format("{} did not come up in {} s; it is killed", name, start_timeout_.count()));
    actor.since = now;
    launcher_.send_stop(actor, std::chrono::milliseconds(0), "did not come up");
  }
}

}  // namespace troupe::workers
