#include "comm/serve/rep_server.h"

#include <fmt/format.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/blocked_signals.h"
#include "base/event_fd.h"
#include "base/log.h"
#include "comm/control/zmq_handles.h"
#include "comm/front/zmtp_front.h"

namespace troupe::comm {

namespace {

constexpr long kMaxPollMs = 100;  // never infinite: a lost signal would hang the process
constexpr int kLingerMs = 500;
constexpr std::size_t kMaxRoute = 4;
constexpr int kBatch = 64;  // requests taken in one turn, so that replies are not held up

class RouterServer final : public RepServer {
 public:
  RouterServer(const RepServerOptions& options, OnRequest on_request)
      : options_(options), on_request_(std::move(on_request)) {}
  ~RouterServer() override { stop(); }
  void stop() override {
    stopping_ = true;
    changed_.raise();
    if (thread_.joinable()) thread_.join();
    // libzmq's last answers go through the front, which therefore ends after the socket has been closed
    front_.reset();
  }

  Result<void> open() {
    context_.reset(zmq_ctx_new());
    if (!changed_.is_open() || !context_)
      return Error{Errc::resource_exhausted, fmt::format("no descriptors left: {}", std::strerror(errno))};
    router_.reset(zmq_socket(context_.get(), ZMQ_ROUTER));
    if (!router_)
      return Error{Errc::resource_exhausted, fmt::format("no ZeroMQ socket: {}", zmq_strerror(zmq_errno()))};
    void* socket = router_.get();
    const auto bytes = static_cast<std::int64_t>(options_.max_message_bytes);
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &bytes, sizeof bytes);
    set_option(socket, ZMQ_LINGER, kLingerMs);
    set_option(socket, ZMQ_RCVHWM, options_.queue_per_peer);
    set_option(socket, ZMQ_SNDHWM, options_.queue_per_peer);
    set_option(socket, ZMQ_HANDSHAKE_IVL, static_cast<int>(options_.handshake_timeout.count()));
    set_option(socket, ZMQ_HEARTBEAT_IVL, static_cast<int>(options_.heartbeat.count()));
    set_option(socket, ZMQ_HEARTBEAT_TIMEOUT, static_cast<int>(2 * options_.heartbeat.count()));
    return bind(socket);
  }

  Result<void> launch() {
    const BlockedSignals blocked;
    try {
      thread_ = std::thread([this] { run(); });
      pthread_setname_np(thread_.native_handle(), "rep server");
    } catch (const std::system_error& e) {
      return Error{Errc::resource_exhausted, fmt::format("the ZeroMQ server cannot start its thread: {}", e.what())};
    }
    return {};
  }

  std::uint16_t port() const override { return port_; }
  void reply(const RepPeer& peer, std::vector<std::byte> message) override {
    {
      const std::lock_guard lock(mutex_);
      outgoing_.push_back({peer, std::move(message)});
    }
    changed_.raise();
  }
  Stats stats() const override { return {requests_, replies_, malformed_}; }

 private:
  struct Reply {
    RepPeer peer;
    std::vector<std::byte> message;
  };

  Result<void> bind(void* socket) {
    TROUPE_ASSIGN(const std::string backend, bind_backend(socket));
    TROUPE_ASSIGN(front_, ZmtpFront::start({.host = options_.host,
                                            .port = options_.port,
                                            .backend = backend,
                                            .max_message_bytes = options_.max_message_bytes,
                                            .max_unfinished_bytes = options_.max_unfinished_bytes,
                                            .max_connections = options_.max_connections,
                                            .handshake_timeout = options_.handshake_timeout}));
    port_ = front_->port();
    return {};
  }

  void run() {
    while (!stopping_) {
      zmq_pollitem_t items[] = {{router_.get(), 0, ZMQ_POLLIN, 0}, {nullptr, changed_.get(), ZMQ_POLLIN, 0}};
      if (zmq_poll(items, 2, kMaxPollMs) < 0 && zmq_errno() != EINTR) {
        log::error("serve: zmq_poll failed: {}", zmq_strerror(zmq_errno()));
        break;
      }
      send_replies();
      for (int i = 0; i < kBatch && receive(); ++i) {
      }
    }
    send_replies();
    router_.reset();  // a socket is closed by the thread that used it
  }

  /// One message; false when there is none.
  bool receive() {
    RepPeer peer;
    ZmqFrame frame;
    if (!frame.receive(router_.get())) return false;
    peer.id = frame.text();
    // what a proxy or REQ_CORRELATE put in front ends with an empty frame
    bool delimited = false;
    while (!delimited && frame.has_more() && peer.route.size() < kMaxRoute && frame.receive(router_.get())) {
      delimited = frame.bytes().empty();
      if (!delimited) peer.route.push_back(frame.text());
    }
    if (!delimited || !frame.has_more() || !frame.receive(router_.get()) || frame.has_more()) {
      while (frame.has_more() && frame.receive(router_.get())) {
      }
      ++malformed_;
      return true;
    }
    ++requests_;
    try {
      on_request_(peer, frame.bytes());
    } catch (const std::exception& e) {
      log::error("serve: a request failed: {}", e.what());
    }
    return true;
  }

  void send_replies() {
    changed_.clear();
    std::vector<Reply> replies;
    {
      const std::lock_guard lock(mutex_);
      replies.swap(outgoing_);
    }
    for (const Reply& reply : replies) {
      // a ROUTER drops what a peer does not take: nobody else waits for it
      bool sent = send_frame(std::as_bytes(std::span(reply.peer.id)), true);
      for (const std::string& part : reply.peer.route) sent = sent && send_frame(std::as_bytes(std::span(part)), true);
      sent = sent && send_frame({}, true) && send_frame(reply.message, false);
      if (sent) ++replies_;
    }
  }
  bool send_frame(std::span<const std::byte> bytes, bool more) {
    return zmq_send(router_.get(), bytes.data(), bytes.size(), ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0;
  }

  const RepServerOptions options_;
  const OnRequest on_request_;
  ZmqContext context_;
  ZmqSocket router_;
  std::unique_ptr<ZmtpFront> front_;
  /// Raised for a reply to send and for the end.
  EventFd changed_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> requests_{0}, replies_{0}, malformed_{0};
  std::mutex mutex_;
  std::vector<Reply> outgoing_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<RepServer>> RepServer::start(const RepServerOptions& options, OnRequest on_request) {
  auto server = std::make_unique<RouterServer>(options, std::move(on_request));
  TROUPE_TRY(server->open());
  TROUPE_TRY(server->launch());
  return std::unique_ptr<RepServer>(std::move(server));
}

}  // namespace troupe::comm
