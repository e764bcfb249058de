// `troupe node`: joins a running job over CURVE and hosts what the controller places here.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cctype>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>

#include "actors/actor_process.h"
#include "actors/feed_keys.h"
#include "actors/local_actors.h"
#include "actors/role_factory.h"
#include "actors/signals.h"
#include "app/commands.h"
#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/ids.h"
#include "base/log.h"
#include "comm/control/curve_keys.h"
#include "configs/loader.h"
#include "placement/render.h"
#include "workers/controller/run_directory.h"
#include "workers/node/inventory.h"
#include "workers/node/node_role.h"

namespace troupe::app {

namespace {

constexpr std::chrono::milliseconds kBeat{1000};
constexpr std::chrono::milliseconds kJoinRetry{500};

int fail(const std::string& why, int code = kFailed) {
  fmt::print(stderr, "error: {}\n", why);
  return code;
}

/// One membership of a job, from Join to the controller's end.
class NodeSession {
 public:
  NodeSession(std::string name, std::string controller, Token token, std::chrono::milliseconds join_timeout)
      : name_(std::move(name)),
        controller_(std::move(controller)),
        token_(std::move(token)),
        join_timeout_(join_timeout) {}

  int run() {
    if (auto connected = connect(); !connected) return fail(connected.error().message());
    if (auto joined = join(); !joined) return fail(joined.error().message());
    if (auto hosted = host(); !hosted) return fail(hosted.error().message());
    fmt::print("joined as node/{} of {}\n", joined_.node_rank, controller_);
    std::fflush(stdout);
    return stay();
  }

  /// However it went: the actor system waits for its actors, so they are told to end first.
  ~NodeSession() {
    if (process_ && self_) {
      process_->bridge->remove_local(name_);
      caf::anon_send_exit(self_, caf::exit_reason::user_shutdown);
      self_ = nullptr;
    }
    node_.reset();
    actors_.reset();
    process_.reset();
    std::error_code ignored;  // sockets of this membership; a folder that stays is not an error
    if (!runtime_dir_.empty()) std::filesystem::remove_all(runtime_dir_, ignored);
  }
  NodeSession(const NodeSession&) = delete;
  NodeSession& operator=(const NodeSession&) = delete;

 private:
  Result<void> connect() {
    TROUPE_ASSIGN(process_, Process::start(name_));
    watch_signals(*process_->loop, [this](int signal) {
      if (signal == SIGINT || signal == SIGTERM) wake([this] { stopped_ = true; });
    });
    self_ = process_->system->spawn([this](MailboxActor::pointer) -> MailboxActor::behavior_type {
      return {[this](const ControlMessage& mail) { on_message(mail.message); }, [](Signal) {}};
    });
    process_->bridge->add_local(name_, self_);
    CurveClient curve{
        .server_key = token_.server_key, .public_key = token_.public_key, .secret_key = token_.secret_key};
    TROUPE_ASSIGN(link_, process_->loop->connect_dealer(controller_, fmt::format("{}#{:x}", name_, incarnation_),
                                                        process_->bridge->receiver(), curve));
    process_->bridge->set_default_route(link_);
    return {};
  }

  void wake(const std::function<void()>& change) {
    std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }

  void on_message(const Message& message) {
    if (const auto* joined = std::get_if<Joined>(&message)) {
      wake([&] { joined_ = *joined, is_joined_ = true; });
    } else if (std::holds_alternative<HeartbeatAck>(message)) {
      wake([&] { last_ack_ = std::chrono::steady_clock::now(); });
    } else if (const auto* finish = std::get_if<Finish>(&message)) {
      wake([&] { stopped_ = true, farewell_ = finish->reason; });
    } else if (const auto* reply = std::get_if<Reply>(&message)) {
      wake([&] { refusal_ = reply->text; });
    } else {
      // For the node agent. The controller may send work before the agent stands: kept until then.
      std::lock_guard lock(mutex_);
      if (agent_.empty()) {
        early_.push_back(message);
      } else {
        process_->bridge->send({"controller", agent_, message});
      }
    }
  }

  void agent_stands(const std::string& agent) {
    std::lock_guard lock(mutex_);
    agent_ = agent;
    for (const Message& message : early_) process_->bridge->send({"controller", agent_, message});
    early_.clear();
  }

  void send(const Message& message) { process_->bridge->send({name_, "controller", message}); }

  Result<void> join() {
    const NodeFacts facts = read_inventory(name_);
    const NodeSnapshot& own = facts.snapshot;
    const Join request{.name = name_,
                       .incarnation = incarnation_,
                       .cpus = own.cpus,
                       .memory_bytes = own.memory_bytes,
                       .host = facts.host,
                       .boot_id = facts.boot_id,
                       .term_seen = 0};
    const auto until = std::chrono::steady_clock::now() + join_timeout_;
    std::unique_lock lock(mutex_);
    while (!is_joined_ && refusal_.empty() && !stopped_) {
      if (std::chrono::steady_clock::now() > until) {
        return Error{
            Errc::deadline_exceeded,
            fmt::format(
                "{} did not let this node in within {:.1f} s: wrong address, or this token is not the running job's",
                controller_, std::chrono::duration<double>(join_timeout_).count())};
      }
      send(request);  // repeated until answered; the controller knows it by name and incarnation
      changed_.wait_for(lock, kJoinRetry);
    }
    if (stopped_) return Error{Errc::cancelled, "interrupted"};
    if (!refusal_.empty()) return Error{Errc::invalid_argument, refusal_};
    last_ack_ = std::chrono::steady_clock::now();
    return {};
  }

  Result<void> host() {
    LoadOutcome config = load_job_text("controller", joined_.config, {});
    if (!config.config)
      return Error{Errc::invalid_argument, config.errors.empty() ? "the job cannot be read" : config.errors.front()};
    TROUPE_ASSIGN(auto plan, plan_from_json(joined_.plan));
    TROUPE_ASSIGN(runtime_dir_, runtime_directory(fmt::format("node-{:x}", incarnation_)));
    TROUPE_TRY(make_folders(runtime_dir_ + "/logs"));
    log::configure(name_, runtime_dir_ + "/logs/node.log");
    TROUPE_TRY(write_file_durably(runtime_dir_ + "/config.yaml", joined_.config));
    TROUPE_TRY(write_file_durably(runtime_dir_ + "/plan.json", joined_.plan));
    TROUPE_TRY(write_feed_client(runtime_dir_,
                                 {.server_key = "", .public_key = token_.public_key, .secret_key = token_.secret_key}));
    const std::string endpoint = fmt::format("ipc://{}/control", runtime_dir_);
    TROUPE_TRY(process_->loop->bind_router(endpoint, process_->bridge->receiver()));
    const std::string node = fmt::format("node/{}", joined_.node_rank);
    RoleContext context{.config = config.config->job,
                        .plan = std::move(plan),
                        .run_dir = runtime_dir_,
                        .runtime_dir = runtime_dir_,
                        .data_host = "",
                        .loop = process_->loop.get()};
    actors_ = std::make_unique<LocalActors>(*process_->system, *process_->bridge,
                                            [context](const RoleIdentity& id, const std::string& role, Outbox outbox) {
                                              return make_role(context, id, role, std::move(outbox));
                                            });
    NodeRole::Launch launch{.executable = own_executable(),
                            .node = node,
                            .endpoint = endpoint,
                            .config = runtime_dir_ + "/config.yaml",
                            .plan = runtime_dir_ + "/plan.json",
                            .run_dir = runtime_dir_,
                            .runtime_dir = runtime_dir_,
                            .data_host = "",
                            .environment = {}};
    node_ = std::make_unique<LocalActors>(
        *process_->system, *process_->bridge,
        [this, launch](const RoleIdentity&, const std::string&, Outbox outbox) -> std::unique_ptr<Role> {
          return std::make_unique<NodeRole>(
              launch,
              [this](const RoleIdentity& id, const std::string& role, NodeRole::OnEnd on_end) {
                actors_->spawn(id, role, std::move(on_end));
              },
              [this](const std::string& actor) { actors_->stop(actor); }, std::move(outbox));
        });
    node_->spawn({.actor = node, .incarnation = 0}, "node", [](const std::string&) {});
    agent_stands(node);
    return {};
  }

  /// Beats until stopped, or until the controller has been silent for a lease: then what runs here has no job any more.
  int stay() {
    std::uint64_t sequence = 0;
    const std::chrono::milliseconds lease(std::max<std::int64_t>(joined_.lease_ms, 3000));
    std::unique_lock lock(mutex_);
    while (!stopped_) {
      if (std::chrono::steady_clock::now() - last_ack_ > lease) {
        fmt::print("the controller has been silent for {} ms; leaving\n", lease.count());
        return kOk;
      }
      send(Heartbeat{.node = name_, .sequence = ++sequence, .free_memory_bytes = free_memory_bytes()});
      changed_.wait_for(lock, kBeat);
    }
    if (!farewell_.empty()) fmt::print("{}; leaving\n", farewell_);
    return kOk;
  }

  const std::string name_, controller_;
  const Token token_;
  const std::chrono::milliseconds join_timeout_;
  const std::uint64_t incarnation_ = new_incarnation();
  std::mutex mutex_;
  std::condition_variable changed_;
  Joined joined_;
  bool is_joined_ = false, stopped_ = false;
  std::string refusal_, farewell_, runtime_dir_, agent_;
  std::vector<Message> early_;
  std::chrono::steady_clock::time_point last_ack_{};
  SocketId link_{};
  std::unique_ptr<Process> process_;
  MailboxActor self_;
  std::unique_ptr<LocalActors> actors_, node_;
};

}  // namespace

int node_command(const NodeOptions& options) {
  auto token = read_token_file(options.token_file);
  if (!token) return fail(token.error().message(), kUsage);
  const std::string controller = options.controller.empty() ? token->endpoint : options.controller;
  const std::string address = controller.find("://") == std::string::npos ? "tcp://" + controller : controller;
  std::string name = options.name.empty() ? read_inventory("").host : options.name;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (!is_name(name) || name == "local")
    return fail(fmt::format("--name {}: wanted {} and not 'local'", name, kNamePattern), kUsage);
  log::configure(name, "");
  return NodeSession(name, address, std::move(*token),
                     std::chrono::milliseconds(static_cast<std::int64_t>(options.join_timeout_s * 1000)))
      .run();
}

}  // namespace troupe::app
