#include <fmt/format.h>

#include <map>
#include <mutex>

#include "base/log.h"
#include "comm/serve/rep_server.h"
#include "workers/inference/serve/groot_protocol.h"
#include "workers/inference/serve/policy_front.h"

namespace troupe::workers {

namespace {

/// A ROUTER's identity is raw bytes; sessions are named by text.
std::string session_of(const RepPeer& peer) {
  std::string name = "groot/";
  for (const char c : peer.id) name += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return name;
}

class GrootFront final : public PolicyFront {
 public:
  GrootFront(const PolicyFrontOptions& options, std::unique_ptr<PolicyService> service, std::optional<ActionForm> form)
      : options_(options), service_(std::move(service)), protocol_(service_->info(), form) {
    limits_.bytes = options_.max_message_bytes;
  }
  ~GrootFront() override {
    service_->stop();
    if (server_) server_->stop();
  }

  Result<void> open() {
    RepServerOptions server;
    server.host = options_.host == "0.0.0.0" ? "*" : options_.host;
    server.port = options_.port;
    server.max_message_bytes = options_.max_message_bytes;
    server.max_unfinished_bytes = options_.max_unfinished_bytes;
    server.max_connections = options_.max_connections;
    server.handshake_timeout = options_.handshake_timeout;
    const std::lock_guard lock(mutex_);  // requests wait until server_ stands
    TROUPE_ASSIGN(server_, RepServer::start(server, [this](const RepPeer& peer, std::span<const std::byte> message) {
                    on_request(peer, message);
                  }));
    return {};
  }

  std::uint16_t port() const override { return server_->port(); }
  const PolicyService& service() const override { return *service_; }

 private:
  void on_request(const RepPeer& peer, std::span<const std::byte> message) {
    {
      const std::lock_guard lock(mutex_);  // until `open` is done
    }
    auto request = protocol_.parse(message, limits_, options_.token);
    if (!request) return fail(peer, request.error());
    switch (request->endpoint) {
      case GrootRequest::Endpoint::ping:
        return ping(peer);
      case GrootRequest::Endpoint::kill:
        return kill(peer);
      case GrootRequest::Endpoint::get_modality_config:
        return reply(peer, protocol_.modality_reply());
      case GrootRequest::Endpoint::reset:
        if (!begin(peer)) return;
        return service_->reset(session_of(peer), [this, peer](const Result<PolicyReply>& result) {
          end(peer);
          result ? reply(peer, GrootProtocol::empty_reply()) : fail(peer, result.error());
        });
      case GrootRequest::Endpoint::get_action:
        return get_action(peer, std::move(*request));
    }
  }

  void get_action(const RepPeer& peer, GrootRequest request) {
    if (!begin(peer)) return;
    PolicyRequest ask{session_of(peer), false, std::move(request.rows)};
    request.rows.clear();
    service_->infer(std::move(ask), [this, peer, request = std::move(request)](const Result<PolicyReply>& result) {
      end(peer);
      result ? reply(peer, protocol_.action_reply(request, result->rows)) : fail(peer, result.error());
    });
  }

  void ping(const RepPeer& peer) {
    if (!service_->is_healthy()) return fail(peer, {Errc::unavailable, "the policy does not answer"});
    reply(peer, GrootProtocol::status_reply("Server is running"));
  }

  void kill(const RepPeer& peer) {
    if (!options_.allow_kill)
      return fail(
          peer, {Errc::failed_precondition, "kill is off; start the server with --allow-kill to let clients stop it"});
    log::info("serve: a client asked the server to stop");
    reply(peer, GrootProtocol::status_reply("Server is stopping"));
    if (options_.on_kill) options_.on_kill();
  }

  /// Counts a request that the service will see; refuses one too many of a peer that does not wait for replies.
  bool begin(const RepPeer& peer) {
    {
      const std::lock_guard lock(mutex_);
      if (outstanding_[peer.id] < options_.requests_per_client) {
        ++outstanding_[peer.id];
        return true;
      }
    }
    fail(peer, {Errc::resource_exhausted,
                fmt::format("{} requests of this client wait already", options_.requests_per_client)});
    return false;
  }
  void end(const RepPeer& peer) {
    const std::lock_guard lock(mutex_);
    if (--outstanding_[peer.id] == 0) outstanding_.erase(peer.id);
  }

  void reply(const RepPeer& peer, std::vector<std::byte> message) { server_->reply(peer, std::move(message)); }
  void fail(const RepPeer& peer, const Error& error) {
    log::warn("serve: {}: {}", session_of(peer), error.to_string());
    reply(peer, GrootProtocol::error_reply(error.to_string()));
  }

  const PolicyFrontOptions options_;
  const std::unique_ptr<PolicyService> service_;
  const GrootProtocol protocol_;
  WireTreeLimits limits_;
  std::mutex mutex_;
  std::map<std::string, std::int64_t> outstanding_;  // by peer; guarded by mutex_
  std::unique_ptr<RepServer> server_;
};

}  // namespace

Result<std::unique_ptr<PolicyFront>> start_groot_front(const PolicyFrontOptions& options,
                                                       std::unique_ptr<PolicyService> service) {
  std::optional<ActionForm> form;
  if (!options.action_key.empty()) {
    TROUPE_ASSIGN(form, parse_action_key(options.action_key, ActionForm::keys));
    if (form == ActionForm::array)
      return Error{Errc::invalid_argument, "--action-key array: a GR00T reply is a map; want actions or keys"};
  }
  auto front = std::make_unique<GrootFront>(options, std::move(service), form);
  TROUPE_TRY(front->open());
  return std::unique_ptr<PolicyFront>(std::move(front));
}

}  // namespace troupe::workers
