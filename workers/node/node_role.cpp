#include "workers/node/node_role.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "comm/control/actor_identity.h"
#include "configs/host_environment.h"
#include "configs/role_kind.h"

namespace troupe::workers {

namespace {

/// What is said of an actor that is no process: it ended in order, or broke and left a reason.
ActorExited end_of(const std::string& actor, std::int64_t incarnation, bool in_order, const std::string& text) {
  return {.actor = actor,
          .incarnation = incarnation,
          .exit_code = in_order ? 0 : 70,
          .killed_by_us = in_order,
          .stderr_tail = text};
}

}  // namespace

NodeRole::NodeRole(Launch launch, std::shared_ptr<HostedActors> hosted, SpawnLocal spawn_local, StopLocal stop_local,
                   Outbox outbox)
    : launch_(std::move(launch)),
      hosted_(std::move(hosted)),
      spawn_local_(std::move(spawn_local)),
      stop_local_(std::move(stop_local)),
      outbox_(std::move(outbox)) {}

NodeRole::~NodeRole() = default;

void NodeRole::start() {}

ProcessTable& NodeRole::processes() {
  if (processes_) return *processes_;
  processes_ = std::make_unique<ProcessTable>([this](const ProcessExit& exit) {
    if (launch_.hosts) launch_.hosts->ended(exit.name, std::chrono::steady_clock::now());
    const ActorIdentity identity = ActorIdentity::parse(exit.name).value();  // our own spelling
    if (!exit.unkillable) hosted_->remove(exit.name);
    outbox_("controller", ActorExited{.actor = identity.actor,
                                      .incarnation = identity.incarnation,
                                      .exit_code = exit.exit_code,
                                      .signal = exit.signal,
                                      .killed_by_us = exit.killed_by_us,
                                      .stderr_tail = exit.stderr_tail,
                                      .out_of_memory = exit.out_of_memory,
                                      .unkillable = exit.unkillable});
  });
  return *processes_;
}

void NodeRole::handle(const std::string& from, const Message& message) {
  if (from != "controller") return log::warn("a node obeys the controller alone; {} is not heard", from);
  if (const auto* request = std::get_if<Spawn>(&message)) {
    spawn(*request);
  } else if (const auto* request_stop = std::get_if<Stop>(&message)) {
    stop(*request_stop);
  }
}

Result<void> NodeRole::check(const Spawn& request) {
  const std::string number = request.actor.substr(std::min(request.actor.size(), request.role.size() + 1));
  const bool is_name = request.actor == request.role + "/" + number && !number.empty() &&
                       number.find_first_not_of("0123456789") == std::string::npos && !request.role.empty() &&
                       request.role.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
  if (!is_name || request.incarnation < 0)
    return Error{Errc::invalid_argument, fmt::format("'{}' #{} is no actor of the role '{}'", request.actor,
                                                     request.incarnation, request.role)};
  for (const auto& [variable, value] : request.env) {
    if (!may_set_for_hosts(variable))
      return Error{Errc::invalid_argument,
                   fmt::format("{} may not be set for host processes (cluster.node_groups[].env)", variable)};
  }
  return {};
}

void NodeRole::spawn(const Spawn& request) {
  const ActorIdentity identity{.actor = request.actor, .incarnation = request.incarnation};
  const std::string instance = identity.instance();
  if (hosted_->contains(instance)) return;
  if (const auto checked = check(request); !checked) {
    log::error("{}", checked.error().message());
    return outbox_("controller", end_of(request.actor, request.incarnation, false, checked.error().message()));
  }
  hosted_->add(instance);
  if (request.isolation != "thread") {
    spawn_process(request);
    return;
  }
  // The actor may outlive this role.
  spawn_local_(identity, request.role, [outbox = outbox_, hosted = hosted_, identity](const std::string& failure) {
    hosted->remove(identity.instance());
    outbox("controller", end_of(identity.actor, identity.incarnation, failure.empty(), failure));
  });
}

void NodeRole::spawn_process(const Spawn& request) {
  ProcessSpec spec;
  spec.name = fmt::format("{}#{}", request.actor, request.incarnation);
  spec.argv = {launch_.executable, "host",
               "--actor",          request.actor,
               "--role",           request.role,
               "--incarnation",    std::to_string(request.incarnation),
               "--node",           launch_.endpoint,
               "--config",         launch_.config,
               "--plan",           launch_.plan,
               "--run-dir",        launch_.run_dir,
               "--runtime-dir",    launch_.runtime_dir};
  if (!launch_.data_host.empty()) spec.argv.insert(spec.argv.end(), {"--data-host", launch_.data_host});
  spec.env = launch_.environment;
  spec.env.insert(request.env.begin(), request.env.end());
  // One OpenMP thread per planned core; a rank is driven by one thread.
  spec.env["OMP_NUM_THREADS"] = std::to_string(std::max<std::int64_t>(1, request.cpus));
  // Arrow's allocator starts a thread when the program is loaded, and a process is confined before its first.
  if (request.role == RoleKind::decoder || request.role == RoleKind::encoder)
    spec.env["JE_ARROW_MALLOC_CONF"] = "background_thread:false";
  std::string file = request.actor;
  std::replace(file.begin(), file.end(), '/', '-');
  spec.stderr_log = fmt::format("{}/logs/{}.log", launch_.run_dir, file);
  if (launch_.hosts) launch_.hosts->expect(spec.name);
  const auto started = processes().start(spec);
  if (launch_.hosts && started) launch_.hosts->started(spec.name, *started);
  if (launch_.hosts && !started) launch_.hosts->ended(spec.name, std::chrono::steady_clock::now());
  if (!started) {
    hosted_->remove(spec.name);
    outbox_("controller", end_of(request.actor, request.incarnation, false, started.error().message()));
  }
}

void NodeRole::stop(const Stop& request) {
  const std::string instance = fmt::format("{}#{}", request.actor, request.incarnation);
  if (!hosted_->contains(instance)) {
    outbox_("controller", end_of(request.actor, request.incarnation, true, "was not running"));
  } else if (!processes_ || !processes_->kill(instance, std::chrono::milliseconds(request.grace_ms))) {
    stop_local_(instance);
  }
}

}  // namespace troupe::workers
