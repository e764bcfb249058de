#pragma once

#include <caf/all.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/actor_process.h"
#include "actors/controller_actor.h"
#include "comm/control/curve_keys.h"
#include "tests/support/scratch_folder.h"
#include "workers/controller/background.h"
#include "workers/controller/service.h"

namespace troupe::testing {

using namespace actors;

/// A job's controller behind the loop, the bridge and the socket with keys of `troupe run --listen`, in this process.
/// The job has no actors and goes on until this object ends. Nodes of any name join with `token`.
class RunningController {
 public:
  /// `on_sent` gets a copy of each message that the controller sends, on the controller's thread.
  explicit RunningController(std::function<void(const std::string& to, const Message& message)> on_sent = {})
      : db_(StateDb::open(folder_ / "state.db").value()) {
    const auto own = generate_keypair().value(), client = generate_keypair().value();
    token_ = {
        .endpoint = {}, .server_key = own.public_key, .public_key = client.public_key, .secret_key = client.secret_key};
    AllowList list;
    list.add({.key = client.public_key, .role = KeyRole::node, .name = "*"});
    keys_->replace(std::move(list));
    process_ = Process::start("controller").value();
    Bridge* const bridge = process_->bridge.get();  // the actor's, which ends before it
    ControllerService::Setup setup;
    setup.job.config.job.name = "test";
    setup.job.run = RunDirectory::create(folder_.path(), "test", "run").value();
    setup.job.runtime_dir = folder_.path();
    setup.job.term = 1;
    setup.forget = [bridge](const std::string& name) { bridge->forget(name); };
    setup.wall_seconds = [] { return 0.0; };
    setup.peers = peers_;
    service_ = std::make_unique<ControllerService>(
        std::move(setup), membership_, *db_, std::vector<std::unique_ptr<MetricSink>>{},
        [bridge, on_sent = std::move(on_sent)](const std::string& to, const Message& message) {
          if (on_sent) on_sent(to, message);
          bridge->send({"controller", to, message});
        },
        output_, std::make_unique<BackgroundThread>());
    actor_ = process_->system->spawn<caf::detached>(controller_actor, service_.get(),
                                                    std::function<void(const std::string&)>([](const std::string&) {}));
    bridge->add_local("controller", actor_);
    caf::anon_send(actor_, Signal::start);
    const auto socket =
        process_->loop
            ->bind_router("tcp://127.0.0.1:*", bridge->receiver(judge_keys(keys_, peers_)),
                          CurveServer{.secret_key = own.secret_key, .allowed_clients = {client.public_key}})
            .value();
    token_.endpoint = process_->loop->bound_endpoint(socket);
  }
  ~RunningController() { stop(); }
  RunningController(const RunningController&) = delete;
  RunningController& operator=(const RunningController&) = delete;

  /// The token of every node, with the address that the controller listens on.
  const Token& token() const { return token_; }
  IoLoop::Stats stats() const { return process_->loop->stats(); }
  /// Ends the actor and the process's parts; membership() does not change afterwards.
  void stop() {
    if (!process_) return;
    process_->bridge->remove_local("controller");
    caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
    actor_ = nullptr;
    process_.reset();
  }
  /// After stop().
  const Membership& membership() const { return membership_; }

 private:
  /// Drops all output.
  struct Silence final : RunOutput {
    void line(Severity, const std::string&) override {}
    void live(const LiveLine&) override {}
    void progress(const std::string&) override {}
  };
  const ScratchFolder folder_{"/tmp"};
  Silence output_;
  Membership membership_{{.name = "local", .cpus = 1, .memory_bytes = 1, .devices = {}}, std::chrono::seconds(10)};
  std::unique_ptr<StateDb> db_;
  const std::shared_ptr<LiveAllowList> keys_ = std::make_shared<LiveAllowList>();
  const std::shared_ptr<PeerBook> peers_ = std::make_shared<PeerBook>();
  Token token_;
  std::unique_ptr<ControllerService> service_;
  std::unique_ptr<Process> process_;
  MailboxActor actor_;
};

}  // namespace troupe::testing
