#include "comm/serve/zmtp_front.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <system_error>
#include <thread>
#include <vector>

#include "base/blocked_signals.h"
#include "base/event_fd.h"
#include "base/log.h"
#include "comm/control/log_limiter.h"
#include "comm/serve/tcp_address.h"
#include "comm/serve/zmtp_meter.h"

namespace troupe::comm {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kFrontPollMs = 100;  // never infinite: a lost signal would hang the process
constexpr std::size_t kBuffer = std::size_t{64} << 10;
constexpr std::size_t kFraming = 4096;  // of one message, beside its payload: what proxies put in front
constexpr int kBacklog = 128;

/// Bytes on their way from one socket to another.
class Pipe {
 public:
  bool is_empty() const { return end_ == begin_; }
  /// Only when it is empty. The bytes read; 0: the end, -1: nothing now or an error.
  ssize_t fill(int fd) {
    const ssize_t got = ::recv(fd, bytes_.data(), bytes_.size(), MSG_DONTWAIT);
    begin_ = 0;
    end_ = static_cast<std::size_t>(std::max<ssize_t>(0, got));
    return got;
  }
  std::span<const std::byte> bytes() const { return {bytes_.data() + begin_, end_ - begin_}; }
  /// False: the other side is gone.
  bool drain(int fd) {
    const ssize_t sent = ::send(fd, bytes_.data() + begin_, end_ - begin_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    begin_ += static_cast<std::size_t>(sent);
    return true;
  }

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kBuffer);
  std::size_t begin_ = 0, end_ = 0;
};

/// One peer and its connection to libzmq.
struct Connection {
  Connection(FileDescriptor to_client, FileDescriptor to_backend, const ZmtpMeter::Limits& limits)
      : client(std::move(to_client)), backend(std::move(to_backend)), meter(limits) {}
  FileDescriptor client, backend;
  ZmtpMeter meter;
  Pipe up, down;
  Clock::time_point since = Clock::now();
  /// The message that has begun did so then.
  Clock::time_point message_since{};
  std::uint64_t messages_then = 0;
  bool in_message = false;
  bool ended = false;
};

class Front final : public ZmtpFront {
 public:
  explicit Front(const ZmtpFrontOptions& options)
      : options_(options), limits_{.message_bytes = options.max_message_bytes + kFraming} {}
  ~Front() override {
    stopping_ = true;
    changed_.raise();
    if (thread_.joinable()) thread_.join();
  }

  Result<void> open() {
    auto address = TcpAddress::parse(options_.host, options_.port);
    if (!address)
      return Error{Errc::invalid_argument,
                   fmt::format("'{}' is no address to bind; use an IPv4 or IPv6 address", options_.host)};
    listener_.reset(::socket(address->bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    if (!changed_.is_open() || !listener_.is_open())
      return Error{Errc::resource_exhausted, fmt::format("no descriptors left: {}", std::strerror(errno))};
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address->bytes), address->size) != 0 ||
        ::listen(listener_.get(), kBacklog) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address->bytes), &address->size) != 0) {
      return Error{Errc::unavailable,
                   fmt::format("tcp://{}:{} cannot be bound: {}", options_.host, options_.port, std::strerror(errno))};
    }
    port_ = address->port();
    const BlockedSignals blocked;
    try {
      thread_ = std::thread([this] { run(); });
      pthread_setname_np(thread_.native_handle(), "zmtp front");
    } catch (const std::system_error& e) {
      return Error{Errc::resource_exhausted, fmt::format("the ZeroMQ front cannot start its thread: {}", e.what())};
    }
    return {};
  }

  std::uint16_t port() const override { return port_; }
  Stats stats() const override { return {accepted_, cut_, turned_away_}; }

 private:
  void run() {
    while (!stopping_) {
      std::vector<pollfd> fds{{changed_.get(), POLLIN, 0},
                              {listener_.get(), static_cast<short>(has_descriptors_ ? POLLIN : 0), 0}};
      has_descriptors_ = true;
      for (const auto& c : connections_) {
        const auto events = [](bool reads, bool writes) {
          return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
        };
        fds.push_back({c->client.get(), events(c->up.is_empty(), !c->down.is_empty()), 0});
        fds.push_back({c->backend.get(), events(c->down.is_empty(), !c->up.is_empty()), 0});
      }
      if (::poll(fds.data(), fds.size(), kFrontPollMs) < 0 && errno != EINTR) {
        log::error("serve: poll failed: {}", std::strerror(errno));
        break;
      }
      for (std::size_t i = 0; i < connections_.size(); ++i)
        serve(*connections_[i], fds[2 + 2 * i].revents, fds[3 + 2 * i].revents);
      std::erase_if(connections_, [](const auto& c) { return c->ended; });
      if ((fds[1].revents & POLLIN) != 0) accept();
    }
    connections_.clear();
  }

  void serve(Connection& c, short client, short backend) {
    constexpr short kGone = POLLHUP | POLLERR | POLLNVAL;
    // nobody is left to read an answer; poll would report it without end
    if ((client & kGone) != 0) c.ended = true;
    if (!c.ended && (client & POLLIN) != 0) from_client(c);
    if (!c.ended && (backend & (POLLIN | kGone)) != 0) from_backend(c);
    if (!c.ended && !c.up.is_empty() && !c.up.drain(c.backend.get())) c.ended = true;
    if (!c.ended && !c.down.is_empty() && !c.down.drain(c.client.get())) c.ended = true;
    if (!c.ended) check_deadlines(c, Clock::now());
  }

  /// libzmq may have closed its end and left something to read; what the client does not take then is lost.
  void from_backend(Connection& c) {
    if (!c.down.is_empty()) {
      c.ended = true;
      return;
    }
    const ssize_t got = c.down.fill(c.backend.get());
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) c.ended = true;
  }

  void from_client(Connection& c) {
    const ssize_t got = c.up.fill(c.client.get());
    if (got < 0) {
      c.ended = errno != EAGAIN && errno != EINTR;
      return;
    }
    if (got == 0) {
      c.ended = true;
      return;
    }
    if (const char* wrong = c.meter.add(c.up.bytes())) return cut(c, wrong);
    if (c.meter.pending_bytes() != 0 && unfinished_bytes() > options_.max_unfinished_bytes)
      return cut(c, "unfinished messages of all peers together are too long");
    const bool in_message = c.meter.pending_bytes() != 0;
    if (in_message && (!c.in_message || c.messages_then != c.meter.messages())) c.message_since = Clock::now();
    c.in_message = in_message;
    c.messages_then = c.meter.messages();
  }

  std::size_t unfinished_bytes() const {
    std::size_t sum = 0;
    for (const auto& c : connections_) sum += c->ended ? 0 : c->meter.pending_bytes();
    return sum;
  }

  void check_deadlines(Connection& c, Clock::time_point now) {
    if (!c.meter.has_shaken_hands() && now - c.since > options_.handshake_timeout)
      return cut(c, "it has not shaken hands in time");
    if (c.in_message && now - c.message_since > options_.message_timeout)
      cut(c, "a message has not come to its end in time");
  }

  void cut(Connection& c, const char* why) {
    ++cut_;
    c.ended = true;
    if (warnings_.allows(why)) log::warn("serve: a ZeroMQ client was cut off: {}", why);
  }

  void accept() {
    while (true) {
      FileDescriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!client.is_open()) {
        // out of descriptors: the one that waits stays in the backlog until another has gone
        if (errno == EMFILE || errno == ENFILE) has_descriptors_ = push_out();
        return;
      }
      ++accepted_;
      if (connections_.size() >= options_.max_connections && !push_out()) {
        ++turned_away_;
        continue;
      }
      FileDescriptor backend = dial_backend();
      if (!backend.is_open()) {
        ++turned_away_;
        continue;
      }
      const int on = 1;
      ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      connections_.push_back(std::make_unique<Connection>(std::move(client), std::move(backend), limits_));
    }
  }

  /// Ends the oldest connection that has not shaken hands. False: there is none.
  bool push_out() {
    const auto oldest = std::find_if(connections_.begin(), connections_.end(),
                                     [](const auto& c) { return !c->meter.has_shaken_hands(); });
    if (oldest == connections_.end()) return false;
    ++turned_away_;
    connections_.erase(oldest);
    return true;
  }

  FileDescriptor dial_backend() const {
    FileDescriptor backend(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    options_.backend.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(backend.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) backend.reset();
    return backend;
  }

  const ZmtpFrontOptions options_;
  const ZmtpMeter::Limits limits_;
  FileDescriptor listener_;
  EventFd changed_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> accepted_{0}, cut_{0}, turned_away_{0};
  std::vector<std::unique_ptr<Connection>> connections_;  // oldest first; the thread's own, like what follows
  LogLimiter warnings_;
  bool has_descriptors_ = true;  // false: the next round does not look for new peers
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<ZmtpFront>> ZmtpFront::start(const ZmtpFrontOptions& options) {
  if (options.backend.size() >= sizeof(sockaddr_un::sun_path))
    return Error{Errc::invalid_argument, fmt::format("{} is too long for a socket's path", options.backend)};
  auto front = std::make_unique<Front>(options);
  TROUPE_TRY(front->open());
  return std::unique_ptr<ZmtpFront>(std::move(front));
}

}  // namespace troupe::comm
