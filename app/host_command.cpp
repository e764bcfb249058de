// The process of one actor: dials its node, builds the role, ends when told.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "actors/actor_process.h"
#include "actors/local_actors.h"
#include "actors/role_factory.h"
#include "actors/signals.h"
#include "app/commands.h"
#include "app/confined.h"
#include "base/fault.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/trace.h"
#include "configs/loader.h"
#include "configs/role_kind.h"
#include "env/env_spec_json.h"
#include "placement/render.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::app {

namespace {

Result<RoleContext> load_context(const HostOptions& options) {
  TROUPE_ASSIGN(const std::string config_text, read_file(options.config));
  LoadOutcome loaded = load_job_text(options.config, config_text, {});
  if (!loaded.config)
    return Error{Errc::invalid_argument, loaded.errors.empty() ? "unreadable configuration" : loaded.errors.front()};
  TROUPE_ASSIGN(const std::string plan_text, read_file(options.plan));
  TROUPE_ASSIGN(auto plan, plan_from_json(plan_text));
  EnvSpec env_spec;
  if (trains_agent(loaded.config->job)) {
    TROUPE_ASSIGN(env_spec, read_env_spec(RunDirectory(options.run_dir).env_spec()));
  }
  return RoleContext{.config = loaded.config->job,
                     .plan = std::move(plan),
                     .env_spec = std::move(env_spec),
                     .run_dir = options.run_dir,
                     .runtime_dir = options.runtime_dir,
                     .data_host = options.data_host};
}

int fail(const std::string& why) {
  log::error("{}", why);
  fmt::print(stderr, "{}\n", why);
  return kFailed;
}

}  // namespace

int host_command(const HostOptions& options) {
  const ActorIdentity identity{.actor = options.actor, .incarnation = options.incarnation};
  auto context = load_context(options);
  if (!context) return fail(context.error().message());
  // Before the process has threads, of which that of the log is the first, and before a byte of a dataset is read.
  std::optional<SandboxSupport> confined;
  if (options.role == RoleKind::decoder || options.role == RoleKind::encoder) {
    const auto entered = enter_sandbox(rules_of_host(*context));
    if (!entered) return fail(entered.error().message());
    confined = *entered;
  }
  log::configure(identity.instance(), RunDirectory(options.run_dir).log_of(options.actor));
  if (confined) log::info("confined: {}", describe(*confined));
  name_fault_process(identity.instance());
  if (auto traced = start_tracing(RunDirectory(options.run_dir).path("profile"), identity.instance()); !traced)
    log::warn("this process is not traced: {}", traced.error().message());
  Latch told_to_end, ended;  // made before the process: its loop and actors set them
  auto process = Process::start(identity.instance());
  if (!process) return fail(process.error().message());
  Process& p = **process;
  watch_signals_of(*p.loop, ::getppid(), [&told_to_end](int signal) {
    if (signal == SIGTERM) told_to_end.set();  // SIGINT comes from the terminal: the node decides
  });
  auto link = p.loop->connect_dealer(options.node_endpoint, identity.instance(), p.bridge->receiver(judge_upstream()));
  if (!link) return fail(link.error().message());
  p.bridge->set_default_route(*link);
  LocalActors actors(*p.system, *p.bridge, role_maker(std::move(*context), *p.loop));
  std::string failure;  // written before `ended` is set, read after
  actors.spawn(identity, options.role, [&](const std::string& why) {
    failure = why;
    ended.set();
    told_to_end.set();
  });
  // A host lives as long as its role: its node ends it with SIGTERM, and the node's death by the parent-death signal.
  while (!told_to_end.wait_for(std::chrono::hours(1))) continue;
  if (ended.is_set()) return fail(fmt::format("{} {}", identity.instance(), failure));
  actors.stop(identity.instance());
  // Orderly end of the role's threads; what still hangs then ends with the process.
  const bool orderly = ended.wait_for(std::chrono::seconds(4));
  log::info("{} ends{}", identity.instance(), orderly ? "" : " without waiting for its threads");
  if (!orderly) {
    log::flush();
    std::_Exit(kOk);
  }
  return kOk;
}

}  // namespace troupe::app
