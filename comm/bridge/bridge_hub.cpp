#include "comm/bridge/bridge_hub.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/blocked_signals.h"
#include "base/check.h"
#include "base/event_fd.h"
#include "base/file_descriptor.h"
#include "base/file_io.h"
#include "base/ids.h"
#include "base/log.h"
#include "comm/bridge/direct_connection.h"
#include "comm/bridge/message_fields.h"
#include "comm/bridge/router_socket.h"
#include "comm/bridge/session_table.h"

namespace troupe::comm {

namespace {

using Clock = std::chrono::steady_clock;

constexpr long kMaxPollMs = 100;  // never infinite: a lost signal would hang the process
constexpr int kBatch = 64;        // messages taken in one turn, so that questions are not held up
constexpr std::chrono::milliseconds kFarewell{500};
constexpr std::chrono::seconds kComplement{10}, kLook{1};
constexpr std::size_t kMostSessions = 1024;

/// What is the same for two processes that see each other's process ids; as the worker computes it.
std::string host_id() {
  const auto boot = read_file("/proc/sys/kernel/random/boot_id", 128);
  struct stat space {};
  if (!boot || ::stat("/proc/self/ns/pid", &space) != 0) return {};
  return fmt::format("{}/{}", boot->substr(0, boot->find('\n')), space.st_ino);
}

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

class RouterHub final : public BridgeHub {
 public:
  explicit RouterHub(BridgeHubOptions options) : options_(std::move(options)), host_(host_id()) {}
  ~RouterHub() override;

  Result<void> open();
  Result<void> launch();

  const std::string& endpoint() const override { return router_.endpoint(); }
  Result<std::unique_ptr<BridgeLease>> lease(std::int64_t rows, std::chrono::milliseconds patience) override;
  void announce_outage(const Error& why) override;
  Stats stats() const override;

 private:
  class Lease;

  /// Tells on_gone of the sessions that are over; without mutex_.
  void report_gone();
  Result<WireMap> ask(std::int64_t lease, std::string_view type, WireMap body, std::chrono::milliseconds patience,
                      std::chrono::milliseconds making);
  /// Waits until `until` for a message on the connection of a lease, by which `call` was asked. A connection that ended
  /// ends the call's session. `lock` holds mutex_, but not while this waits.
  void wait_direct(std::unique_lock<std::mutex>& lock, DirectConnection& direct, SessionTable::Call& call,
                   Clock::time_point until);
  /// Takes a message from that connection, if one comes before `until`. Errors: the connection has ended, or carried
  /// bytes that are no message. Without mutex_.
  Result<void> take_direct(DirectConnection& direct, std::int64_t session, Clock::time_point until);
  /// Handles a worker's message in its session, by ZeroMQ or by a lease's connection; under mutex_.
  void take_of_worker(SessionTable::Session& session, BridgeMessage message);

  // The hub's thread.
  void run();
  void poll(Clock::duration at_most);
  bool receive();
  void take(const std::string& peer, std::span<const std::byte> bytes);
  void take_hello(const std::string& peer, const BridgeMessage& message);
  void send_all();
  void end_silent();

  const BridgeHubOptions options_;
  const std::string host_;
  RouterSocket router_;
  /// Raised for a message to send and for the end.
  EventFd changed_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> last_request_{0}, malformed_{0}, late_{0};

  mutable std::mutex mutex_;  // of the next four
  std::condition_variable came_;
  std::int64_t waiting_leases_ = 0;  // calls of lease() that wait for a worker
  SessionTable table_;
  std::optional<Error> outage_;

  std::thread thread_;
};

class RouterHub::Lease final : public BridgeLease {
 public:
  Lease(RouterHub& hub, std::int64_t number)
      : hub_(hub),
        number_(number),
        worker_(hub.table_.lease(number).worker),
        sharing_pid_(hub.table_.lease(number).sharing_pid) {}
  ~Lease() override {
    const std::lock_guard lock(hub_.mutex_);
    hub_.table_.release(number_);
    hub_.changed_.raise();
  }
  Result<WireMap> call(std::string_view type, WireMap body, std::chrono::milliseconds patience,
                       std::chrono::milliseconds making) override {
    body.push_back({"lease", number_});
    return hub_.ask(number_, type, std::move(body), patience, making);
  }
  const std::string& worker() const override { return worker_; }
  Result<Arena> share(std::int64_t bytes, WireArray arrays, std::chrono::milliseconds patience) override;

 private:
  RouterHub& hub_;
  const std::int64_t number_;
  const std::string worker_;
  const std::int64_t sharing_pid_;
};

Result<Arena> RouterHub::Lease::share(std::int64_t bytes, WireArray arrays, std::chrono::milliseconds patience) {
  if (sharing_pid_ == 0)
    return Error{Errc::failed_precondition, fmt::format("worker {} is not on this machine", worker_)};
  std::int64_t nonce = 0;
  random_bytes(&nonce, sizeof nonce);
  TROUPE_ASSIGN(DirectListener listener, DirectListener::open());
  WireMap question{{"bytes", bytes}, {"nonce", nonce}, {"arrays", std::move(arrays)}, {"connect", listener.name()}};
  TROUPE_ASSIGN(const WireMap answer, call("SHARE", std::move(question), patience, {}));
  TROUPE_ASSIGN(Arena arena, Arena::attach_to(sharing_pid_, whole(answer, "fd"), static_cast<std::size_t>(bytes)));
  // the process id may have been reused: memory of this size without the nonce is another process's
  if (std::memcmp(arena.bytes().data(), &nonce, sizeof nonce) != 0)
    return Error{Errc::failed_precondition, fmt::format("worker {} shares memory that is not its own", worker_)};
  if (flag(answer, "connected")) {
    TROUPE_ASSIGN(base::FileDescriptor socket, listener.accept(sharing_pid_));
    const std::lock_guard lock(hub_.mutex_);
    hub_.table_.connect(number_, DirectConnection(std::move(socket)));
  }
  return arena;
}

RouterHub::~RouterHub() {
  {
    const std::lock_guard lock(mutex_);
    TROUPE_CHECK(table_.num_leases() == 0, "a hub outlives its leases");
    for (const auto& [number, session] : table_.sessions()) table_.post(session.peer, number, {.type = "DRAIN"});
  }
  stopping_ = true;
  changed_.raise();
  if (thread_.joinable()) thread_.join();
}

Result<void> RouterHub::open() {
  if (!changed_.is_open())
    return Error{Errc::resource_exhausted, fmt::format("no descriptors left: {}", std::strerror(errno))};
  TROUPE_ASSIGN(router_, RouterSocket::open(options_.bind, options_.max_message_bytes));
  return {};
}

Result<void> RouterHub::launch() {
  const BlockedSignals blocked;
  try {
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "bridge hub");
  } catch (const std::system_error& e) {
    return Error{Errc::resource_exhausted, fmt::format("the bridge cannot start its thread: {}", e.what())};
  }
  return {};
}

Result<std::unique_ptr<BridgeLease>> RouterHub::lease(std::int64_t rows, std::chrono::milliseconds patience) {
  const auto start = Clock::now();
  std::unique_ptr<Lease> lease;
  {
    std::unique_lock lock(mutex_);
    const auto& sessions = table_.sessions();
    ++waiting_leases_;
    came_.wait_until(lock, start + std::min<Clock::duration>(patience, kComplement),
                     [&] { return sessions.size() >= options_.awaited || outage_.has_value(); });
    came_.wait_until(lock, start + patience, [&] { return !sessions.empty() || (outage_ && !table_.has_begun()); });
    --waiting_leases_;
    if (sessions.empty() && outage_ && !table_.has_begun()) return Error{Errc::unavailable, outage_->message()};
    if (sessions.empty()) {
      return Error{Errc::deadline_exceeded, fmt::format("no worker came within {:.1f} s{}", seconds(patience),
                                                        outage_ ? ": " + outage_->message() : std::string())};
    }
    lease = std::make_unique<Lease>(*this, table_.lease());
  }
  TROUPE_TRY(lease->call("LEASE", {{"rows", rows}}, {}, rows * patience));
  return std::unique_ptr<BridgeLease>(std::move(lease));
}

void RouterHub::announce_outage(const Error& why) {
  const std::lock_guard lock(mutex_);
  outage_ = why;
  came_.notify_all();
}

BridgeHub::Stats RouterHub::stats() const {
  const std::lock_guard lock(mutex_);
  return {.workers = static_cast<std::int64_t>(table_.sessions().size()),
          .leases = table_.num_leases(),
          .making = waiting_leases_ + table_.num_making(),
          .malformed = malformed_,
          .late = late_};
}

Result<WireMap> RouterHub::ask(std::int64_t lease, std::string_view type, WireMap body,
                               std::chrono::milliseconds patience, std::chrono::milliseconds making) {
  SessionTable::Call call;
  call.makes = making.count() > 0;
  patience += making;
  std::unique_lock lock(mutex_);
  const std::int64_t request = ++last_request_;
  const SessionTable::Lease& held = table_.lease(lease);
  if (held.gone) return *held.gone;
  call.session = held.session;
  table_.ask(request, call, lease, type, std::move(body));
  DirectConnection* const direct = held.direct.get();
  if (direct == nullptr) changed_.raise();
  while (!call.answer) {
    const auto now = Clock::now();
    // a call that makes environments has a deadline of its own
    const auto until = table_.may_wait_for_making(request) ? now + kLook : call.begun + patience;
    if (now < until) {
      if (direct == nullptr)
        call.answered.wait_until(lock, until);
      else
        wait_direct(lock, *direct, call, until);
      continue;
    }
    const Error late{
        Errc::deadline_exceeded,
        fmt::format("worker {} gave no answer to {} in {:.1f} s (its last beat was {:.1f} s ago)", held.worker, type,
                    seconds(patience), seconds(Clock::now() - table_.find(call.session)->heard))};
    table_.forget(request);
    table_.end(call.session, late);
    changed_.raise();
    call.answer.emplace(late);
  }
  Result<WireMap> answer = std::move(*call.answer);
  lock.unlock();
  report_gone();
  return answer;
}

void RouterHub::wait_direct(std::unique_lock<std::mutex>& lock, DirectConnection& direct, SessionTable::Call& call,
                            Clock::time_point until) {
  lock.unlock();
  const Result<void> taken = take_direct(direct, call.session, until);
  lock.lock();
  if (taken) return;
  // a worker that ends or leaves closes its connections too, and the hub's thread is about to know why
  if (call.answered.wait_for(lock, kFarewell, [&] { return call.answer.has_value(); })) return;
  const SessionTable::Session* session = table_.find(call.session);
  table_.end(call.session, {Errc::aborted, fmt::format("worker {} cannot be asked any more: {}", session->hello.name,
                                                       taken.error().message())});
  changed_.raise();
}

Result<void> RouterHub::take_direct(DirectConnection& direct, std::int64_t session, Clock::time_point until) {
  TROUPE_ASSIGN(const auto bytes, direct.receive(until, options_.max_message_bytes));
  if (!bytes) return {};
  TROUPE_ASSIGN(BridgeMessage message, decode_bridge_message(*bytes, options_.max_message_bytes));
  const std::lock_guard lock(mutex_);
  SessionTable::Session* found = message.session == session ? table_.find(session) : nullptr;
  if (found == nullptr) {
    ++late_;
    return {};
  }
  found->heard = Clock::now();
  take_of_worker(*found, std::move(message));
  return {};
}

void RouterHub::report_gone() {
  std::vector<SessionTable::Gone> gone;
  {
    const std::lock_guard lock(mutex_);
    gone = table_.take_gone();
  }
  for (const SessionTable::Gone& one : gone) {
    if (options_.on_gone) options_.on_gone(one.name, one.why);
  }
}

void RouterHub::run() {
  while (!stopping_) {
    poll(std::chrono::milliseconds(kMaxPollMs));
    send_all();
    for (int i = 0; i < kBatch && receive(); ++i) {
    }
    end_silent();
    send_all();  // what those answered
    report_gone();
  }
  // farewells: workers that are in the midst of a step say theirs afterwards, or not at all
  const auto end = Clock::now() + kFarewell;
  send_all();
  while (Clock::now() < end) {
    {
      const std::lock_guard lock(mutex_);
      if (table_.sessions().empty()) break;
    }
    poll(end - Clock::now());
    while (receive()) {
    }
  }
  router_.close();  // a socket is closed by the thread that used it
}

/// Waits for something to do; sessions whose process has ended are over.
void RouterHub::poll(Clock::duration at_most) {
  std::vector<zmq_pollitem_t> items{{router_.get(), 0, ZMQ_POLLIN, 0}, {nullptr, changed_.get(), ZMQ_POLLIN, 0}};
  std::vector<std::int64_t> watched;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, session] : table_.sessions()) {
      if (!session.process.is_open()) continue;
      items.push_back({nullptr, session.process.get(), ZMQ_POLLIN, 0});
      watched.push_back(number);
    }
  }
  const long ms =
      std::clamp<long>(std::chrono::duration_cast<std::chrono::milliseconds>(at_most).count(), 0, kMaxPollMs);
  if (zmq_poll(items.data(), static_cast<int>(items.size()), ms) < 0) {
    // a descriptor that a session of just now took with it
    if (zmq_errno() != EINTR) log::debug("bridge: zmq_poll failed: {}", zmq_strerror(zmq_errno()));
    return;
  }
  for (std::size_t i = 0; i < watched.size(); ++i) {
    if (items[i + 2].revents == 0) continue;
    // what it said last comes before its end
    while (receive()) {
    }
    std::unique_lock lock(mutex_);
    const auto* session = table_.find(watched[i]);
    if (session == nullptr) continue;
    const BridgeHello hello = session->hello;
    lock.unlock();
    const std::string why = options_.why_ended ? options_.why_ended(hello.name) : std::string();
    lock.lock();
    table_.end(watched[i], {Errc::aborted, fmt::format("the process {} of worker {} has ended{}{}", hello.pid,
                                                       hello.name, why.empty() ? "" : ": ", why)});
  }
}

/// One message; false when there is none.
bool RouterHub::receive() {
  const auto received = router_.receive();
  if (!received) return false;
  if (received->content)
    take(received->peer, *received->content);
  else
    ++malformed_;
  return true;
}

void RouterHub::take(const std::string& peer, std::span<const std::byte> bytes) {
  auto message = decode_bridge_message(bytes, options_.max_message_bytes);
  const std::lock_guard lock(mutex_);
  if (!message) {
    ++malformed_;
    // a worker of another protocol version waits for an answer to its HELLO
    return table_.post(peer, 0, {.type = "REJECT", .body = {{"reason", message.error().message()}}});
  }
  if (message->type == "HELLO") return take_hello(peer, *message);
  SessionTable::Session* session = table_.find(message->session);
  const bool is_beat = message->type == "PING";  // comes by a connection of its own
  if (session == nullptr || (!is_beat && session->peer != peer)) {
    ++late_;
    // a worker that is not known any more says HELLO again
    if (!is_beat)
      table_.post(peer, message->session, {.type = "ERR", .body = {{"text", "no such session"}, {"fatal", true}}});
    return;
  }
  session->heard = Clock::now();
  if (is_beat) return table_.post(peer, message->session, {.type = "PONG"});
  take_of_worker(*session, std::move(*message));
}

void RouterHub::take_of_worker(SessionTable::Session& session, BridgeMessage message) {
  const std::string name = session.hello.name, type = message.type;
  const std::int64_t request = message.request, number = message.session;
  if (type == "RESULT" || type == "LEASED") {
    if (!table_.answer(request, number, std::move(message.body))) ++late_;
    if (!std::exchange(session.has_answered, true) && options_.on_answer) options_.on_answer(name);
  } else if (type == "ERR") {
    const Error why{Errc::internal, fmt::format("worker {}: {}", name, text(message.body, "text"))};
    if (flag(message.body, "fatal"))
      table_.end(number, why);
    else if (!table_.answer(request, number, why))
      ++late_;
  } else if (type == "BYE") {
    table_.end(number, {Errc::aborted, fmt::format("worker {} left: {}", name, text(message.body, "reason"))});
  } else {
    ++malformed_;
    table_.post(session.peer, number,
                {.type = "ERR", .body = {{"text", fmt::format("there is no message '{}'", type)}, {"fatal", false}}});
  }
}

void RouterHub::take_hello(const std::string& peer, const BridgeMessage& message) {
  const auto reject = [&](const std::string& reason) {
    table_.post(peer, 0, {.type = "REJECT", .body = {{"reason", reason}}});
  };
  SessionTable::Session session{.peer = peer,
                                .hello = {.name = text(message.body, "name"),
                                          .env = text(message.body, "env"),
                                          .options = text(message.body, "options"),
                                          .spec = text(message.body, "spec"),
                                          .pid = whole(message.body, "pid"),
                                          .has_shm = list_has(message.body, "features", "shm")},
                                .process = {},
                                .heard = Clock::now()};
  const BridgeHello& hello = session.hello;
  if (hello.name.empty()) return reject("its HELLO has no name");
  if (const auto accepted = options_.accept ? options_.accept(hello) : Result<void>(); !accepted) {
    log::warn("bridge: worker {} is refused: {}", hello.name, accepted.error().message());
    return reject(accepted.error().message());
  }
  if (table_.sessions().size() >= kMostSessions)
    return reject(fmt::format("there are {} workers already", kMostSessions));
  if (!host_.empty() && text(message.body, "host") == host_ && hello.pid > 0)
    session.process.reset(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(hello.pid), 0)));
  log::info("bridge: worker {} (process {}) serves {}", hello.name, hello.pid, hello.env);
  table_.begin(std::move(session));
  outage_.reset();
  came_.notify_all();
}

void RouterHub::send_all() {
  changed_.clear();
  std::vector<SessionTable::Outgoing> outgoing;
  {
    const std::lock_guard lock(mutex_);
    outgoing = table_.take_outgoing();
  }
  for (const SessionTable::Outgoing& one : outgoing) {
    if (router_.send(one.peer, one.message)) continue;
    const std::lock_guard lock(mutex_);
    const auto* session = table_.find(one.session);
    if (session != nullptr && session->peer == one.peer)
      table_.end(one.session, {Errc::aborted, fmt::format("worker {} is not connected any more", session->hello.name)});
  }
}

void RouterHub::end_silent() {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  std::vector<std::pair<std::int64_t, Error>> silent;
  for (const auto& [number, session] : table_.sessions()) {
    // a worker with an open question has until its deadline: a simulator that holds the interpreter delays beats
    if (session.process.is_open() || now - session.heard < options_.liveness || table_.is_asked(number)) continue;
    silent.emplace_back(number, Error{Errc::aborted, fmt::format("worker {} has sent no beat for {:.1f} s",
                                                                 session.hello.name, seconds(now - session.heard))});
  }
  for (const auto& [number, why] : silent) table_.end(number, why);
}

}  // namespace

Result<std::unique_ptr<BridgeHub>> BridgeHub::start(BridgeHubOptions options) {
  auto hub = std::make_unique<RouterHub>(std::move(options));
  TROUPE_TRY(hub->open());
  TROUPE_TRY(hub->launch());
  return std::unique_ptr<BridgeHub>(std::move(hub));
}

}  // namespace troupe::comm
