#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>

#include "base/log.h"
#include "base/stopwatch.h"
#include "comm/serve/websocket_server.h"
#include "workers/inference/serve/dreamzero_protocol.h"
#include "workers/inference/serve/openpi_protocol.h"
#include "workers/inference/serve/policy_front.h"

namespace troupe::workers {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint16_t kInternalError = 1011;  // the close code that clients know (docs/serve.md)

/// One connection. `session_id` belongs to the server's thread; the rest is shared with the service's.
struct Client {
  std::string session;  // how the service knows it
  std::optional<std::string> session_id;
  std::atomic<std::int64_t> outstanding{0};
  std::atomic<double> prev_total_ms{-1};  // negative: no reply yet
};

class WebSocketFront final : public PolicyFront {
 public:
  WebSocketFront(const PolicyFrontOptions& options, std::unique_ptr<PolicyService> service)
      : options_(options), service_(std::move(service)) {
    limits_.bytes = options_.max_message_bytes;
  }
  ~WebSocketFront() override {
    // the service first: its last answers still go out, and none comes after the server
    service_->stop();
    if (server_) server_->stop();
  }

  Result<void> open() {
    TROUPE_TRY(choose_protocol());
    WebSocketCallbacks callbacks;
    callbacks.on_open = [this](ConnectionId id) { on_open(id); };
    callbacks.on_message = [this](ConnectionId id, const std::vector<std::byte>& message, bool is_text) {
      on_message(id, message, is_text);
    };
    callbacks.on_close = [this](ConnectionId id) { on_close(id); };
    callbacks.is_healthy = [this] { return service_->is_healthy(); };
    callbacks.status_json = [this] { return status_json(*service_); };
    // callbacks run from here on, and use server_: they wait until it stands
    const std::lock_guard lock(opening_);
    TROUPE_ASSIGN(server_, WebSocketServer::start(options_, std::move(callbacks)));
    return {};
  }

  std::uint16_t port() const override { return server_->port(); }
  const PolicyService& service() const override { return *service_; }

 private:
  Result<void> choose_protocol() {
    const PolicyInfo& info = service_->info();
    if (options_.protocol == "dreamzero") {
      TROUPE_ASSIGN(const ActionForm form, parse_action_key(options_.action_key, ActionForm::array));
      protocol_ = make_dreamzero_protocol(info, form);
    } else {
      TROUPE_ASSIGN(const ActionForm form, parse_action_key(options_.action_key, ActionForm::actions));
      protocol_ = make_openpi_protocol(info, form);
    }
    return {};
  }

  // on the server's thread

  void on_open(ConnectionId id) {
    const std::lock_guard lock(opening_);
    auto client = std::make_shared<Client>();
    client->session = fmt::format("websocket/{}", id);
    clients_[id] = client;
    server_->send_binary(id, protocol_->metadata());
  }

  void on_close(ConnectionId id) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;
    service_->forget(found->second->session);
    clients_.erase(found);
  }

  void on_message(ConnectionId id, const std::vector<std::byte>& message, bool is_text) {
    const auto arrived = Clock::now();
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;
    const std::shared_ptr<Client> client = found->second;
    if (is_text) return fail(id, {Errc::invalid_argument, "a text frame; requests are binary frames of MessagePack"});
    if (client->outstanding >= options_.requests_per_client)
      return fail(id, {Errc::resource_exhausted,
                       fmt::format("{} requests of this connection wait already", client->outstanding.load())});
    auto request = protocol_->parse(message, limits_);
    if (!request) return fail(id, request.error());
    ++client->outstanding;
    if (request->endpoint == WebSocketRequest::Endpoint::reset) {
      service_->reset(client->session, [this, id, client](const Result<PolicyReply>& result) {
        --client->outstanding;
        result ? server_->send_text(id, "reset successful") : fail(id, result.error());
      });
      return;
    }
    const bool is_new_session = client->session_id != request->session_id;
    client->session_id = request->session_id;
    PolicyRequest ask{client->session, is_new_session, {}};
    ask.rows.push_back(std::move(request->observation));
    service_->infer(std::move(ask), [this, id, client, arrived](const Result<PolicyReply>& result) {
      on_reply(id, *client, arrived, result);
    });
  }

  // on a thread of the service

  void on_reply(ConnectionId id, Client& client, Clock::time_point arrived, const Result<PolicyReply>& result) {
    --client.outstanding;
    if (!result) return fail(id, result.error());
    ReplyTiming timing{result->infer_ms, {}};
    if (const double before = client.prev_total_ms; before >= 0) timing.prev_total_ms = before;
    server_->send_binary(id, protocol_->reply(result->rows.front(), timing));
    client.prev_total_ms = seconds_since(arrived) * 1000;
  }

  /// What clients of both dialects take as an error: a text frame, then close 1011.
  void fail(ConnectionId id, const Error& error) {
    log::warn("serve: connection {}: {}", id, error.to_string());
    server_->send_text(id, error.to_string());
    server_->close(id, kInternalError, std::string(enum_name(error.code())));
  }

  const PolicyFrontOptions options_;
  const std::unique_ptr<PolicyService> service_;
  WireTreeLimits limits_;
  std::unique_ptr<WebSocketProtocol> protocol_;
  std::map<ConnectionId, std::shared_ptr<Client>> clients_;  // the server's thread only
  std::mutex opening_;
  std::unique_ptr<WebSocketServer> server_;
};

}  // namespace

Result<std::unique_ptr<PolicyFront>> start_websocket_front(const PolicyFrontOptions& options,
                                                           std::unique_ptr<PolicyService> service) {
  auto front = std::make_unique<WebSocketFront>(options, std::move(service));
  TROUPE_TRY(front->open());
  return std::unique_ptr<PolicyFront>(std::move(front));
}

Result<std::unique_ptr<PolicyFront>> start_front(const PolicyFrontOptions& options,
                                                 std::unique_ptr<PolicyService> service) {
  if (options.protocol == "groot") return start_groot_front(options, std::move(service));
  if (options.protocol == "dreamzero" || options.protocol == "openpi")
    return start_websocket_front(options, std::move(service));
  return Error{Errc::invalid_argument, fmt::format("--protocol {}: want dreamzero, openpi or groot", options.protocol)};
}

}  // namespace troupe::workers
