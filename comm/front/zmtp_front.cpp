#include "comm/front/zmtp_front.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include "base/blocked_signals.h"
#include "base/descriptor_limit.h"
#include "base/event_fd.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/log_limiter.h"
#include "comm/front/front_connection.h"
#include "comm/front/tcp_address.h"

namespace troupe::comm {

namespace {

using Clock = FrontConnection::Clock;
using Stage = CurveHandshake::Stage;
constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kLinger = std::chrono::seconds(1);
constexpr int kLingerTicks = 5;
constexpr std::size_t kFraming = 4096;  // of one message, beside its payload: what proxies put in front
constexpr int kBacklog = 4096;
constexpr int kAcceptsPerTurn =
    16;  // then the accepted ones are read: a crowd must not push out peers that have not been read once
constexpr std::size_t kKeptDescriptors = 64;
constexpr std::size_t kDescriptorsPerPeer = 3;  // client's, front's and libzmq's

/// What epoll answers with: a connection's id x 2, and 1 more for libzmq's side; or one of these.
enum : std::uint64_t { kListener = 0, kChanged = 1, kFirstConnection = 1 };

sockaddr_un abstract_address(const std::string& name, socklen_t& size) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

class Front final : public ZmtpFront {
 public:
  explicit Front(const ZmtpFrontOptions& options)
      : options_(options),
        limits_{.has_keys = options.has_keys,
                .meter = {.message_bytes = options.max_message_bytes + (options.has_keys ? 0 : kFraming)},
                .unread_bytes = options.max_unread_bytes} {
    const std::size_t descriptors = descriptor_limit();
    const std::size_t free = descriptors > 2 * kKeptDescriptors ? descriptors - kKeptDescriptors : kKeptDescriptors;
    max_connections_ = std::min(options.max_connections, free / kDescriptorsPerPeer);
    max_strangers_ = std::min(options.max_strangers, std::max<std::size_t>(descriptors / 8, 8));
  }
  ~Front() override {
    finish();
    if (thread_.joinable()) thread_.join();
  }

  Result<void> open() {
    auto address = TcpAddress::parse(options_.host, options_.port);
    if (!address)
      return Error{
          Errc::invalid_argument,
          fmt::format("'{}' is no address to bind; use an IPv4 or IPv6 address or an interface", options_.host)};
    listener_.reset(::socket(address->bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    poll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    const int on = 1;
    if (!changed_.is_open() || !listener_.is_open() || !poll_.is_open())
      return Error{Errc::resource_exhausted, fmt::format("no descriptors left: {}", std::strerror(errno))};
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address->bytes), address->size) != 0 ||
        ::listen(listener_.get(), kBacklog) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address->bytes), &address->size) != 0) {
      return Error{errno == EADDRINUSE || errno == EACCES ? Errc::unavailable : Errc::invalid_argument,
                   fmt::format("tcp://{}:{} cannot be bound: {}", options_.host, options_.port, std::strerror(errno))};
    }
    port_ = address->port();
    endpoint_ = fmt::format("tcp://{}:{}", address->host(), port_);
    watch(EPOLL_CTL_ADD, listener_.get(), EPOLLIN, kListener);
    watch(EPOLL_CTL_ADD, changed_.get(), EPOLLIN, kChanged);
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
  std::string endpoint() const override { return endpoint_; }
  void finish() override {
    finishing_ = true;
    changed_.raise();
  }
  bool has_ended() const override { return has_ended_; }

  std::optional<Peer> peer_in_question() const override {
    const std::lock_guard lock(mutex_);
    return in_question_;
  }
  void delivered(std::uint64_t connection, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    const auto account = accounts_.find(connection);
    if (account == accounts_.end()) return;
    account->second->delivered += bytes;
    if (!account->second->is_held) return;
    told_.insert(connection);
    changed_.raise();
  }
  void nothing_left() override { rounds_.fetch_add(1, std::memory_order_relaxed); }
  void cut(std::uint64_t connection) override {
    const std::lock_guard lock(mutex_);
    to_cut_.insert(connection);
    changed_.raise();
  }

 private:
  void run() {
    auto last_tick = Clock::now();
    std::optional<Clock::time_point> give_up;
    std::array<epoll_event, 64> events{};
    while (!give_up || (!connections_.empty() && Clock::now() < *give_up)) {
      const int count =
          ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), static_cast<int>(kTick.count()));
      if (count < 0 && errno != EINTR) {
        log::error("{}: epoll_wait failed: {}", endpoint_, std::strerror(errno));
        break;
      }
      bool has_callers = false;
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events.at(static_cast<std::size_t>(i));
        if (event.data.u64 == kListener) {
          has_callers = true;
        } else if (event.data.u64 == kChanged) {
          hear();
        } else {
          serve(event);
        }
      }
      if (finishing_ && !give_up) give_up = close_door();
      if (has_callers && !give_up) accept();
      if (const auto now = Clock::now(); now - last_tick >= kTick) {
        last_tick = now;
        tick(now);
      }
    }
    while (!connections_.empty()) end(*connections_.begin()->second);
    has_ended_ = true;
  }

  /// Stops accepting and ends the strangers. What libzmq still sends is passed on until the time that it returns.
  Clock::time_point close_door() {
    listener_.reset();
    while (!strangers_.empty()) end(*connections_.at(*strangers_.begin()));
    return Clock::now() + kLinger;
  }

  void watch(int operation, int fd, std::uint32_t wanted, std::uint64_t data) const {
    epoll_event event{};
    event.events = wanted;
    event.data.u64 = data;
    ::epoll_ctl(poll_.get(), operation, fd, &event);
  }

  /// Takes what other threads have asked for: cuts, and connections of which more was delivered.
  void hear() {
    changed_.clear();
    std::set<std::uint64_t> told, to_cut;
    {
      const std::lock_guard lock(mutex_);
      told.swap(told_);
      to_cut.swap(to_cut_);
    }
    for (const std::uint64_t id : to_cut) {
      if (const auto it = connections_.find(id); it != connections_.end())
        cut(*it->second, "its key is no longer taken");
    }
    for (const std::uint64_t id : told) {
      const auto it = connections_.find(id);
      if (it == connections_.end()) continue;
      it->second->num_held_ticks = 0;
      settle(*it->second);
    }
  }

  void serve(const epoll_event& event) {
    const auto it = connections_.find(event.data.u64 >> 1);
    if (it == connections_.end()) return;
    FrontConnection& c = *it->second;
    const bool is_gone = (event.events & (EPOLLHUP | EPOLLERR)) != 0;
    const bool is_backend = (event.data.u64 & 1) != 0;
    if (is_backend ? c.wants_backend() : c.wants_client()) {
      if (is_backend) {
        c.read_backend();
      } else if (const char* wrong = read_client(c)) {
        return cut(c, wrong);
      }
    } else if (is_gone) {
      // epoll would report the hang-up again and again; what is left is read once there is room
      want(is_backend ? c.backend : c.client, 0, is_backend ? c.backend_events : c.client_events, event.data.u64);
    }
    settle(c);
  }

  const char* read_client(FrontConnection& c) const {
    if (const char* wrong = c.read_client()) return wrong;
    if (!limits_.has_keys && c.meter.pending_bytes() != 0 && unfinished_bytes() > options_.max_unfinished_bytes)
      return "unfinished messages of all peers together are too long";
    return nullptr;
  }

  /// Passes on what may be, takes stock, and tells epoll what to watch for. `c` may be gone afterwards.
  void settle(FrontConnection& c) {
    if (!c.ended && !c.up.is_empty() && c.may_pass() && has_backend(c) && has_turn(c)) c.send_up();
    if (!c.ended) c.send_down();
    if (c.is_known && strangers_.erase(c.id) > 0) admit(c);
    if (c.has_turn && c.handshake.stage() > Stage::asked) end_turn(c);
    if (c.backend_ended && c.down.is_empty()) c.ended = true;
    if (c.ended) return end(c);
    want(c.client, (c.wants_client() ? EPOLLIN : 0U) | (c.down.is_empty() ? 0U : EPOLLOUT), c.client_events, c.id << 1);
    if (!c.backend.is_open()) return;
    const bool can_send = !c.up.is_empty() && c.may_pass() && (!c.has_asked() || c.has_turn);
    want(c.backend, (c.wants_backend() ? EPOLLIN : 0U) | (can_send ? EPOLLOUT : 0U), c.backend_events, c.id << 1 | 1);
  }

  /// A descriptor without wishes is taken out: its end would be reported all the time.
  void want(const FileDescriptor& fd, std::uint32_t wanted, std::uint32_t& current, std::uint64_t data) const {
    if (wanted == current) return;
    watch(wanted == 0 ? EPOLL_CTL_DEL : current == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd.get(), wanted, data);
    current = wanted;
  }

  bool has_backend(FrontConnection& c) {
    if (c.backend.is_open()) return true;
    FileDescriptor backend(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    socklen_t size = 0;
    const sockaddr_un address = abstract_address(options_.backend, size);
    if (::connect(backend.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
      c.ended = true;
      return false;
    }
    c.backend = std::move(backend);
    return true;
  }

  /// Whether its INITIATE, where that is what waits, may go to libzmq now.
  bool has_turn(FrontConnection& c) {
    if (!c.has_asked() || c.has_turn) return true;
    if (turn_ != 0) {
      if (std::find(waiting_.begin(), waiting_.end(), c.id) == waiting_.end()) waiting_.push_back(c.id);
      return false;
    }
    turn_ = c.id;
    c.has_turn = true;
    const std::lock_guard lock(mutex_);
    in_question_ = Peer{c.id, c.address};
    return true;
  }
  void end_turn(FrontConnection& c) {
    c.has_turn = false;
    turn_ = 0;
    {
      const std::lock_guard lock(mutex_);
      in_question_.reset();
    }
    while (turn_ == 0 && !waiting_.empty()) {
      const auto next = connections_.find(waiting_.front());
      waiting_.pop_front();
      if (next != connections_.end() && !next->second->ended) settle(*next->second);
    }
  }

  void admit(FrontConnection& c) {
    if (!limits_.has_keys) return;
    const std::lock_guard lock(mutex_);
    accounts_[c.id] = c.account;
  }

  std::size_t unfinished_bytes() const {
    std::size_t sum = 0;
    for (const auto& [id, c] : connections_) sum += c->ended ? 0 : c->meter.pending_bytes();
    return sum;
  }

  void tick(Clock::time_point now) {
    if (!has_descriptors_ && listener_.is_open()) {
      has_descriptors_ = true;
      watch(EPOLL_CTL_MOD, listener_.get(), EPOLLIN, kListener);
    }
    const std::uint64_t rounds = rounds_.load(std::memory_order_relaxed);
    reader_waits_ = rounds != last_rounds_;
    last_rounds_ = rounds;
    std::vector<std::uint64_t> all;
    all.reserve(connections_.size());
    for (const auto& [id, c] : connections_) all.push_back(id);
    for (const std::uint64_t id : all) {
      if (const auto it = connections_.find(id); it != connections_.end()) check_deadlines(*it->second, now);
    }
  }
  void check_deadlines(FrontConnection& c, Clock::time_point now) {
    // ticks, not a clock: a process that was stopped and goes on has not had that time to read
    const bool is_held = limits_.has_keys && c.is_known && c.account->is_held;
    if (!is_held && !c.backend_ended) c.num_held_ticks = 0;
    if ((is_held && reader_waits_) || c.backend_ended) ++c.num_held_ticks;
    if (!c.is_known && now - c.since > options_.handshake_timeout) return cut(c, "its handshake took too long");
    if (!limits_.has_keys && c.in_message && now - c.message_since > options_.message_timeout)
      return cut(c, "its message was not complete in time");
    if (is_held && c.num_held_ticks * kTick > options_.unread_timeout)
      return cut(c, "its unfinished message is longer than the front passes on unread");
    if (c.backend_ended && c.num_held_ticks > kLingerTicks) end(c);
  }

  void cut(FrontConnection& c, const char* why) {
    if (!c.is_known && options_.refused != nullptr) ++*options_.refused;
    if (warnings_.allows(why)) log::warn("{}: {} was cut off: {}", endpoint_, c.address, why);
    end(c);
  }
  /// `c` is gone afterwards.
  void end(FrontConnection& c) {
    c.ended = true;
    const auto node = connections_.extract(c.id);
    strangers_.erase(c.id);
    {
      const std::lock_guard lock(mutex_);
      accounts_.erase(c.id);
    }
    if (c.has_turn) end_turn(c);
  }

  void accept() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      TcpAddress from;
      from.size = sizeof from.bytes;
      FileDescriptor client(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from.bytes), &from.size,
                                      SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!client.is_open()) {
        if (errno != EMFILE && errno != ENFILE) return;
        // the new connection stays in the backlog until another one has ended
        has_descriptors_ = push_out();
        if (!has_descriptors_) watch(EPOLL_CTL_MOD, listener_.get(), 0, kListener);
        return;
      }
      if ((connections_.size() >= max_connections_ || strangers_.size() >= max_strangers_) && !push_out()) continue;
      add(std::move(client), fmt::format("{}:{}", from.host(), from.port()));
    }
  }
  void add(FileDescriptor client, std::string address) {
    const int on = 1, idle_s = 10, interval_s = 5, probes = 3;
    ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(client.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(client.get(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    ::setsockopt(client.get(), IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    ::setsockopt(client.get(), IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    auto c = std::make_unique<FrontConnection>(next_id_++, std::move(client), std::move(address), limits_);
    want(c->client, EPOLLIN, c->client_events, c->id << 1);
    strangers_.insert(c->id);
    connections_.emplace(c->id, std::move(c));
  }

  /// Ends a stranger: the oldest that has sent nothing, else the oldest. False: there are no strangers.
  bool push_out() {
    if (strangers_.empty()) return false;
    const auto silent = std::find_if(strangers_.begin(), strangers_.end(),
                                     [this](std::uint64_t id) { return connections_.at(id)->received_bytes == 0; });
    end(*connections_.at(silent != strangers_.end() ? *silent : *strangers_.begin()));
    return true;
  }

  const ZmtpFrontOptions options_;
  const FrontConnection::Limits limits_;
  std::size_t max_connections_ = 0, max_strangers_ = 0;
  FileDescriptor listener_, poll_;
  EventFd changed_;
  std::uint16_t port_ = 0;
  std::string endpoint_;
  std::atomic<bool> finishing_{false}, has_ended_{false};
  std::atomic<std::uint64_t> rounds_{0};

  mutable std::mutex mutex_;
  std::optional<Peer> in_question_;                                   // guarded by mutex_, like what follows
  std::map<std::uint64_t, std::shared_ptr<ReaderAccount>> accounts_;  // of those that have proved their key
  std::set<std::uint64_t> told_, to_cut_;

  // the thread's own; ids grow, so the oldest is first
  std::map<std::uint64_t, std::unique_ptr<FrontConnection>> connections_;
  std::set<std::uint64_t> strangers_;
  std::uint64_t next_id_ = kFirstConnection;
  /// The connection whose INITIATE libzmq has and has not answered; 0: none. Those in waiting_ have the next turns.
  std::uint64_t turn_ = 0;
  std::deque<std::uint64_t> waiting_;
  LogLimiter warnings_;
  /// The reader called nothing_left() between the last two ticks.
  bool reader_waits_ = false;
  std::uint64_t last_rounds_ = 0;
  bool has_descriptors_ = true;  // false: no connection is accepted until the next tick
  std::thread thread_;
};

}  // namespace

Result<std::string> bind_backend(void* socket) {
  const std::string name = "troupe-" + to_hex(new_message_id());
  const pid_t own = ::getpid();
  if (zmq_setsockopt(socket, ZMQ_IPC_FILTER_PID, &own, sizeof own) != 0 ||
      zmq_bind(socket, ("ipc://@" + name).c_str()) != 0) {
    return Error{Errc::unavailable, fmt::format("ipc://@{} cannot be bound: {}", name, zmq_strerror(zmq_errno()))};
  }
  return name;
}

Result<std::unique_ptr<ZmtpFront>> ZmtpFront::start(const ZmtpFrontOptions& options) {
  auto front = std::make_unique<Front>(options);
  TROUPE_TRY(front->open());
  return std::unique_ptr<ZmtpFront>(std::move(front));
}

}  // namespace troupe::comm
