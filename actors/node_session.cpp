#include "actors/node_session.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "actors/feed_keys.h"
#include "actors/guard.h"
#include "actors/signals.h"
#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/seconds.h"
#include "configs/loader.h"
#include "placement/render.h"
#include "workers/checkpoint/run_directory.h"
#include "workers/controller/join_rules.h"
#include "workers/node/inventory.h"

namespace troupe::actors {

namespace {

constexpr std::chrono::milliseconds kBeat{1000};
constexpr std::chrono::milliseconds kJoinRetry{500};

}  // namespace

NodeSession::NodeSession(std::string name, std::string controller, Token token, std::chrono::milliseconds join_timeout)
    : name_(std::move(name)),
      controller_(std::move(controller)),
      token_(std::move(token)),
      join_timeout_(join_timeout) {}

NodeSession::~NodeSession() {
  if (process_ && self_) {
    process_->bridge->remove_local(name_);
    caf::anon_send_exit(self_, caf::exit_reason::user_shutdown);
    self_ = nullptr;
  }
  agent_.reset();
  process_.reset();
  std::error_code ignored;  // sockets of this membership; a folder that stays is not an error
  if (!runtime_dir_.empty()) std::filesystem::remove_all(runtime_dir_, ignored);
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
    if (signal == SIGINT || signal == SIGTERM) wake([this] { stopped_ = true; });
  });
  self_ = process_->system->spawn([this](MailboxActor::pointer) -> MailboxActor::behavior_type {
    return {
        [this](const ControlMessage& control) {
          stop_for(failure_of(name_ + " " + failed_handling(control.message), [&] { on_message(control.message); }));
        },
        [](Signal) {}};
  });
  process_->bridge->add_local(name_, self_);
  CurveClient curve{.server_key = token_.server_key, .public_key = token_.public_key, .secret_key = token_.secret_key};
  TROUPE_ASSIGN(const SocketId link,
                process_->loop->connect_dealer(controller_, fmt::format("{}#{:x}", name_, incarnation_),
                                               process_->bridge->receiver(judge_upstream()), curve));
  process_->bridge->set_default_route(link);
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
  if (const auto* joined = std::get_if<Joined>(&message)) {
    wake([&] {
      if (!is_joined_) joined_ = *joined;  // asked again and answered again: the first answer stays
      is_joined_ = true;
    });
  } else if (std::holds_alternative<HeartbeatAck>(message)) {
    wake([&] { last_ack_ = std::chrono::steady_clock::now(); });
  } else if (const auto* finish = std::get_if<Finish>(&message)) {
    wake([&] { stopped_ = true, farewell_ = finish->reason; });
  } else if (const auto* reply = std::get_if<Reply>(&message)) {
    wake([&] { refusal_ = reply->text; });
  } else {
    // For the node agent. The controller may send work before the agent stands: kept until then.
    std::lock_guard lock(mutex_);
    if (agent_name_.empty()) {
      early_.push_back(message);
    } else {
      process_->bridge->send({"controller", agent_name_, message});
    }
  }
}

void NodeSession::agent_stands(const std::string& agent) {
  std::lock_guard lock(mutex_);
  agent_name_ = agent;
  for (const Message& message : early_) process_->bridge->send({"controller", agent_name_, message});
  early_.clear();
}

Result<void> NodeSession::ask() {
  const NodeFacts facts = read_inventory(name_);
  const NodeSnapshot& own = facts.snapshot;
  Join request{.name = name_,
               .incarnation = incarnation_,
               .cpus = own.cpus,
               .memory_bytes = own.memory_bytes,
               .host = facts.host,
               .boot_id = facts.boot_id,
               .term_seen = 0};
  describe_build(request);
  const auto until = std::chrono::steady_clock::now() + join_timeout_;
  std::unique_lock lock(mutex_);
  while (!is_joined_ && refusal_.empty() && !stopped_) {
    if (std::chrono::steady_clock::now() > until) {
      return Error{
          Errc::deadline_exceeded,
          fmt::format(
              "{} did not let this node in within {:.1f} s: wrong address, or this token is not the running job's",
              controller_, Seconds(join_timeout_).count())};
    }
    send(request);  // repeated until answered; the controller knows it by name and incarnation
    changed_.wait_for(lock, kJoinRetry);
  }
  if (!failure_.empty()) return Error{Errc::internal, failure_};
  if (stopped_) return Error{Errc::cancelled, "interrupted"};
  if (!refusal_.empty()) return Error{Errc::invalid_argument, refusal_};
  last_ack_ = std::chrono::steady_clock::now();
  return {};
}

Result<void> NodeSession::host() {
  LoadOutcome config = load_job_text("controller", joined_.config, {});
  if (!config.config)
    return Error{Errc::invalid_argument, config.errors.empty() ? "the job cannot be read" : config.errors.front()};
  TROUPE_ASSIGN(auto plan, plan_from_json(joined_.plan));
  TROUPE_ASSIGN(runtime_dir_, runtime_directory(fmt::format("node-{:x}", incarnation_)));
  TROUPE_TRY(make_folders(runtime_dir_ + "/logs"));
  log::configure(name_, runtime_dir_ + "/logs/node.log");
  const std::string config_file = runtime_dir_ + "/config.yaml";
  TROUPE_TRY(write_file_durably(config_file, joined_.config));
  TROUPE_TRY(write_file_durably(runtime_dir_ + "/plan.json", joined_.plan));
  TROUPE_TRY(write_feed_client(runtime_dir_,
                               {.server_key = "", .public_key = token_.public_key, .secret_key = token_.secret_key}));
  const std::string endpoint = fmt::format("ipc://{}/control", runtime_dir_);
  const auto hosts = std::make_shared<HostBook>();
  TROUPE_TRY(
      process_->loop->bind_router(endpoint, process_->bridge->receiver(judge_hosts(hosts, /*has_owner=*/false))));
  const std::string node = fmt::format("node/{}", joined_.node_rank);
  RoleContext context{.config = config.config->job,
                      .plan = std::move(plan),
                      .run_dir = runtime_dir_,
                      .runtime_dir = runtime_dir_,
                      .data_host = ""};
  agent_ = std::make_unique<NodeAgent>(*process_, context, node, endpoint, config_file, hosts,
                                       [this](const std::string& why) { stop_for(why); });
  agent_stands(node);
  return {};
}

Result<std::string> NodeSession::stay() {
  std::uint64_t sequence = 0;
  const std::chrono::milliseconds lease(std::max<std::int64_t>(joined_.lease_ms, 3000));
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (std::chrono::steady_clock::now() - last_ack_ > lease)
      return fmt::format("the controller has been silent for {} ms", lease.count());
    send(Heartbeat{.node = name_, .sequence = ++sequence, .free_memory_bytes = free_memory_bytes()});
    changed_.wait_for(lock, kBeat);
  }
  if (!failure_.empty()) return Error{Errc::internal, failure_};
  return farewell_;
}

}  // namespace troupe::actors
