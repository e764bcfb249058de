#include "comm/serve/websocket_server.h"

#include <fmt/format.h>
#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <map>
#include <span>
#include <system_error>
#include <thread>

#include "base/blocked_signals.h"
#include "base/log.h"
#include "comm/serve/websocket_session.h"

namespace troupe::comm {

namespace {

using namespace websocket_internal;
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);  // no descriptors left

class BeastServer final : public WebSocketServer, public SessionHost {
 public:
  BeastServer(const WebSocketServerOptions& options, WebSocketCallbacks callbacks)
      : options_(options),
        callbacks_(std::move(callbacks)),
        work_(net::make_work_guard(context_)),
        acceptor_(context_),
        retry_(context_),
        stop_deadline_(context_) {}
  ~BeastServer() override { stop(); }
  void stop() override {
    if (!thread_.joinable()) return;
    net::post(context_, [this] { begin_stop(); });
    thread_.join();
  }

  Result<void> listen() {
    error_code ec;
    const auto address = net::ip::make_address(options_.host == "localhost" ? "127.0.0.1" : options_.host, ec);
    if (ec)
      return Error{Errc::invalid_argument,
                   fmt::format("'{}' is no address to bind; use an IPv4 or IPv6 address", options_.host)};
    const tcp::endpoint endpoint(address, options_.port);
    acceptor_.open(endpoint.protocol(), ec);
    if (!ec) acceptor_.set_option(net::socket_base::reuse_address(true), ec);
    if (!ec) acceptor_.bind(endpoint, ec);
    if (!ec) acceptor_.listen(net::socket_base::max_listen_connections, ec);
    if (!ec) port_ = acceptor_.local_endpoint(ec).port();
    if (ec)
      return Error{Errc::unavailable,
                   fmt::format("{}:{} cannot be bound: {}", options_.host, options_.port, ec.message())};
    return {};
  }

  Result<void> launch() {
    accept();
    const BlockedSignals blocked;
    try {
      thread_ = std::thread([this] { run(); });
      pthread_setname_np(thread_.native_handle(), "websocket");
    } catch (const std::system_error& e) {
      return Error{Errc::resource_exhausted, fmt::format("the WebSocket server cannot start its thread: {}", e.what())};
    }
    return {};
  }

  std::uint16_t port() const override { return port_; }
  void send_binary(ConnectionId connection, std::vector<std::byte> message) override {
    enqueue(connection, {std::move(message), false, {}});
  }
  void send_text(ConnectionId connection, std::string text) override {
    const auto bytes = std::as_bytes(std::span(text));
    enqueue(connection, {{bytes.begin(), bytes.end()}, true, {}});
  }
  void close(ConnectionId connection, std::uint16_t code, std::string reason) override {
    reason.resize(std::min<std::size_t>(reason.size(), 120));  // a control frame holds 125 bytes
    enqueue(connection, {{}, false, websocket::close_reason(static_cast<websocket::close_code>(code), reason)});
  }
  Stats stats() const override {
    return {counters.accepted,    counters.opened,  counters.open_now, counters.unauthorized,
            counters.turned_away, counters.dropped, counters.messages, counters.replies};
  }

  // SessionHost
  const WebSocketServerOptions& options() const override { return options_; }
  const WebSocketCallbacks& callbacks() const override { return callbacks_; }
  bool admit(Session& session) override {
    if (stopping_ || counters.open_now >= options_.max_connections) return false;
    ++counters.open_now;
    session.set_admitted();
    return true;
  }
  void on_end(Session& session) override {
    if (session.is_admitted()) --counters.open_now;
    sessions_.erase(session.id());
    if (stopping_ && sessions_.empty()) finish_stop();
  }

 private:
  void run() {
    for (;;) {
      try {
        context_.run();
        return;
      } catch (const std::exception& e) {
        log::error("serve: a WebSocket handler failed: {}", e.what());
      }
    }
  }

  void accept() {
    acceptor_.async_accept([this](error_code ec, tcp::socket socket) {
      if (stopping_) return;
      if (ec) {
        log::warn("serve: a connection could not be accepted: {}", ec.message());
        retry_.expires_after(kAcceptRetry);
        retry_.async_wait([this](error_code cancelled) {
          if (!cancelled) accept();
        });
        return;
      }
      welcome(std::move(socket));
      accept();
    });
  }

  void welcome(tcp::socket socket) {
    ++counters.accepted;
    error_code ignored;  // an option that cannot be set costs latency only
    socket.set_option(tcp::no_delay(true), ignored);
    make_room();
    const ConnectionId id = next_id_++;
    const auto session = std::make_shared<Session>(*this, std::move(socket), id);
    sessions_[id] = session;
    handshakes_.push_back(session);
    session->start();
  }

  /// Closes the oldest connections that have not said what they want, so that they cannot keep others out.
  void make_room() {
    std::erase_if(handshakes_, [](const std::weak_ptr<Session>& weak) {
      const auto session = weak.lock();
      return !session || session->is_admitted();
    });
    while (handshakes_.size() >= options_.max_handshakes) {
      if (const auto oldest = handshakes_.front().lock()) {
        ++counters.turned_away;
        oldest->kill();
      }
      handshakes_.pop_front();
    }
  }

  void enqueue(ConnectionId connection, OutgoingFrame outgoing) {
    net::post(context_, [this, connection, shared = std::make_shared<OutgoingFrame>(std::move(outgoing))] {
      const auto found = sessions_.find(connection);
      if (found != sessions_.end()) std::shared_ptr(found->second)->send(std::move(*shared));
    });
  }

  void begin_stop() {
    stopping_ = true;
    error_code ignored;  // nobody can be told any more
    acceptor_.close(ignored);
    retry_.cancel();
    if (sessions_.empty()) return finish_stop();
    const auto copy = sessions_;  // ending a session takes it out of the table
    for (const auto& [id, session] : copy) {
      if (session->is_open()) {
        session->send({{}, false, websocket::close_reason(websocket::close_code::going_away, "the server stops")});
      } else {
        session->kill();
      }
    }
    stop_deadline_.expires_after(options_.write_timeout + options_.close_timeout);
    stop_deadline_.async_wait([this](error_code cancelled) {
      if (!cancelled) context_.stop();
    });
  }
  void finish_stop() {
    stop_deadline_.cancel();
    work_.reset();
  }

  const WebSocketServerOptions options_;
  const WebSocketCallbacks callbacks_;
  net::io_context context_{1};
  net::executor_work_guard<net::io_context::executor_type> work_;
  tcp::acceptor acceptor_;
  net::steady_timer retry_, stop_deadline_;
  std::uint16_t port_ = 0;
  ConnectionId next_id_ = 1;
  std::map<ConnectionId, std::shared_ptr<Session>> sessions_;
  std::deque<std::weak_ptr<Session>> handshakes_;  // oldest first
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<WebSocketServer>> WebSocketServer::start(const WebSocketServerOptions& options,
                                                                WebSocketCallbacks callbacks) {
  auto server = std::make_unique<BeastServer>(options, std::move(callbacks));
  TROUPE_TRY(server->listen());
  TROUPE_TRY(server->launch());
  return std::unique_ptr<WebSocketServer>(std::move(server));
}

}  // namespace troupe::comm
