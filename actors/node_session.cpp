#include "actors/node_session.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "actors/feed_keys.h"
#include "actors/guard.h"
#include "actors/signals.h"
#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/seconds.h"
#include "configs/loader.h"
#include "env/env_spec_json.h"
#include "placement/render.h"
#include "workers/checkpoint/run_directory.h"
#include "workers/controller/join_rules.h"
#include "workers/node/inventory.h"

namespace troupe::actors {

namespace {

/// Connections are numbered modulo this, so that a routing id stays short; the earlier one of a number is long gone.
constexpr int kLines = 1000;

/// Where a node keeps what it hosted: $XDG_STATE_HOME/troupe/nodes, else ~/.local/state/troupe/nodes, else beside the
/// runtime directory.
std::string state_folder(const std::string& runtime_dir) {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state && *state) return fmt::format("{}/troupe/nodes", state);
  const char* home = std::getenv("HOME");
  if (home && *home) return fmt::format("{}/.local/state/troupe/nodes", home);
  return std::filesystem::path(runtime_dir).parent_path() / "nodes";
}

}  // namespace

NodeSession::NodeSession(std::string name, std::string controller, Token token, std::chrono::milliseconds join_timeout,
                         std::atomic<bool>& told_to_leave)
    : name_(std::move(name)),
      controller_(std::move(controller)),
      token_(std::move(token)),
      join_timeout_(join_timeout),
      told_to_leave_(told_to_leave),
      address_(fmt::format("{}#{}", name_, incarnation_)) {}

NodeSession::~NodeSession() {
  if (process_ && self_) {
    process_->bridge->remove_local(address_);
    caf::anon_send_exit(self_, caf::exit_reason::user_shutdown);
    self_ = nullptr;
  }
  node_.reset();
  process_.reset();
  desk_.reset();
  runtime_.remove();
}

Result<std::int64_t> NodeSession::join() {
  TROUPE_TRY(connect());
  TROUPE_TRY(ask());
  TROUPE_TRY(host());
  return joined_.node_rank;
}

Result<void> NodeSession::connect() {
  TROUPE_ASSIGN(process_, Process::start(name_));
  watch_signals(*process_->loop, [this](int signal) {
    if (signal != SIGINT && signal != SIGTERM) return;
    told_to_leave_ = true;
    wake([] {});
  });
  self_ = process_->system->spawn([this](MailboxActor::pointer) -> MailboxActor::behavior_type {
    return {
        [this](const ControlMessage& control) {
          stop_for(failure_of(name_ + " " + failed_handling(control.message), [&] { on_message(control.message); }));
        },
        [](Signal) {}};
  });
  process_->bridge->add_local(address_, self_);
  return dial();
}

Result<void> NodeSession::dial() {
  CurveClient curve{.server_key = token_.server_key, .public_key = token_.public_key, .secret_key = token_.secret_key};
  TROUPE_ASSIGN(const SocketId line,
                process_->loop->connect_dealer(controller_, fmt::format("{}.{}", address_, lines_++ % kLines),
                                               process_->bridge->receiver(judge_upstream()), curve));
  process_->bridge->set_default_route(line);
  if (line_) process_->loop->close(*line_);
  line_ = line;
  return {};
}

void NodeSession::wake(const std::function<void()>& change) {
  std::lock_guard lock(mutex_);
  change();
  changed_.notify_all();
}

void NodeSession::stop_for(const std::string& failure) {
  if (failure.empty()) return;
  log::error("{}", failure);
  wake([&] { stopped_ = true, failure_ = failure; });
}

void NodeSession::on_message(const Message& message) {
  const auto now = std::chrono::steady_clock::now();
  if (const auto* joined = std::get_if<Joined>(&message)) {
    wake([&] {
      if (!is_joined_) joined_ = *joined;  // asked again and answered again: the first answer stays
      is_joined_ = true;
      membership_->on(*joined, now);
    });
  } else if (const auto* ack = std::get_if<HeartbeatAck>(&message)) {
    wake([&] { membership_->on(*ack, now); });
  } else if (const auto* finish = std::get_if<Finish>(&message)) {
    wake([&] { stopped_ = true, farewell_ = finish->reason; });
  } else if (const auto* reply = std::get_if<Reply>(&message)) {
    wake([&] { membership_->on(*reply); });
  } else {
    // For the node agent. The controller may send work before the agent stands: kept until then.
    std::lock_guard lock(mutex_);
    if (!agent_stands_) {
      early_.push_back(message);
    } else {
      process_->bridge->send({"controller", agent_, message});
    }
  }
}

void NodeSession::agent_stands() {
  std::lock_guard lock(mutex_);
  agent_stands_ = true;
  for (const Message& message : early_) process_->bridge->send({"controller", agent_, message});
  early_.clear();
}

void NodeSession::turn(std::unique_lock<std::mutex>& lock) {
  const auto now = std::chrono::steady_clock::now();
  if (now >= membership_->next()) {
    const auto hosted = node_ ? node_->hosted() : std::vector<std::string>{};
    const auto message = membership_->tick(hosted, free_memory_bytes(), now);
    if (message) process_->bridge->send({address_, "controller", *message});
  }
  if (membership_->wants_new_line()) {
    lock.unlock();  // the loop's thread may want the mutex, for a signal
    if (auto dialled = dial(); !dialled) log::warn("{}", dialled.error().message());
    lock.lock();
    return;
  }
  changed_.wait_until(lock, membership_->next());
}

Result<void> NodeSession::ask() {
  const NodeFacts facts = read_inventory(name_);
  const NodeSnapshot& own = facts.snapshot;
  Join request{.name = name_,
               .incarnation = static_cast<std::uint64_t>(incarnation_),
               .cpus = own.cpus,
               .memory_bytes = own.memory_bytes,
               .host = facts.host,
               .boot_id = facts.boot_id,
               .term_seen = 0};
  describe_build(request);
  const auto until = std::chrono::steady_clock::now() + join_timeout_;
  std::unique_lock lock(mutex_);
  membership_.emplace(std::move(request));
  while (!is_joined_ && membership_->phase() == MembershipPhase::asking && !stopped_ && !told_to_leave_) {
    if (std::chrono::steady_clock::now() > until) {
      return Error{
          Errc::deadline_exceeded,
          fmt::format(
              "{} did not let this node in within {:.1f} s: wrong address, or this token is not the running job's",
              controller_, Seconds(join_timeout_).count())};
    }
    turn(lock);
  }
  if (!failure_.empty()) return Error{Errc::internal, failure_};
  if (stopped_ || told_to_leave_) return Error{Errc::cancelled, "interrupted"};
  if (!is_joined_) return Error{Errc::invalid_argument, membership_->reason()};
  return {};
}

Result<void> NodeSession::host() {
  LoadOutcome config = load_job_text("controller", joined_.config, {});
  if (!config.config)
    return Error{Errc::invalid_argument, config.errors.empty() ? "the job cannot be read" : config.errors.front()};
  TROUPE_ASSIGN(auto plan, plan_from_json(joined_.plan));
  const std::string id = fmt::format("node-{:x}", incarnation_);
  TROUPE_ASSIGN(runtime_, RuntimeDirectory::take(id));
  // its own folder of the user's state, because the runtime directory goes when this node leaves
  const std::string run_dir = fmt::format("{}/{}-{:x}", state_folder(runtime_.path()), name_, incarnation_);
  logs_ = RunDirectory(run_dir).logs();
  TROUPE_TRY(make_folders(logs_));
  log::configure(name_, logs_ + "/node.log");
  const std::string config_file = run_dir + "/config.yaml";
  TROUPE_TRY(write_file_durably(config_file, joined_.config));
  TROUPE_TRY(write_file_durably(run_dir + "/plan.json", joined_.plan));
  EnvSpec env_spec;
  if (!joined_.env_spec.empty()) {
    TROUPE_ASSIGN(env_spec, parse_env_spec(joined_.env_spec, "controller"));
    TROUPE_TRY(write_file_durably(RunDirectory(run_dir).env_spec(), joined_.env_spec));
  }
  TROUPE_TRY(write_feed_client(runtime_.path(),
                               {.server_key = "", .public_key = token_.public_key, .secret_key = token_.secret_key}));
  const std::string endpoint = fmt::format("ipc://{}/control", runtime_.path());
  const auto hosts = std::make_shared<HostBook>();
  TROUPE_TRY(
      process_->loop->bind_router(endpoint, process_->bridge->receiver(judge_hosts(hosts, /*has_owner=*/false))));
  const ActorIdentity node{.actor = fmt::format("node/{}", joined_.node_rank), .incarnation = incarnation_};
  agent_ = node.instance();
  TROUPE_ASSIGN(desk_, ArenaDesk::open(runtime_.path()));
  RoleContext context{.config = config.config->job,
                      .plan = std::move(plan),
                      .env_spec = std::move(env_spec),
                      .run_dir = run_dir,
                      .runtime_dir = runtime_.path(),
                      .data_host = ""};
  node_ = std::make_unique<NodeAgent>(*process_, context, node, endpoint, config_file, hosts,
                                      [this](const std::string& why) { stop_for(why); });
  agent_stands();
  return {};
}

Result<NodeSession::End> NodeSession::stay() {
  std::unique_lock lock(mutex_);
  auto before = membership_->phase();
  while (!stopped_ && !told_to_leave_) {
    const auto phase = membership_->phase();
    if (phase != before) log::info("{} is {}", name_, enum_name(phase));
    before = phase;
    if (phase == MembershipPhase::refused) return Error{Errc::failed_precondition, membership_->reason()};
    if (phase == MembershipPhase::orphaned)
      return End{.why = membership_->reason() + "; what runs here ends", .is_orphaned = true};
    turn(lock);
  }
  if (!failure_.empty()) return Error{Errc::internal, failure_};
  return End{.why = farewell_};
}

}  // namespace troupe::actors
