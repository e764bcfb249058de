#include "comm/control/io_loop.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "base/blocked_signals.h"
#include "base/check.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "comm/control/io_loop_impl.h"

namespace troupe::comm {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kMaxPollMs = 100;                           // never infinite: a lost signal would hang the process
constexpr int kRetryMs = 2;                               // room in a ROUTER's pipe is not announced
constexpr auto kCallDeadline = std::chrono::seconds(20);  // longer than a bind with two handshakes of 5 s

/// Answer to a caller on another thread.
template <class T>
struct Answer {
  std::mutex mutex;
  std::condition_variable arrived;
  std::optional<Result<T>> result;
};

}  // namespace

Result<std::unique_ptr<IoLoop>> IoLoop::start(const std::string& name) {
  auto loop = std::make_unique<IoLoopImpl>(name);
  TROUPE_TRY(loop->open());
  return std::unique_ptr<IoLoop>(std::move(loop));
}

Result<void> IoLoopImpl::open() {
  const BlockedSignals blocked;
  context_.reset(zmq_ctx_new());
  if (!context_ || !queued_.is_open())
    return Error{Errc::resource_exhausted,
                 fmt::format("io loop {}: no descriptors left: {}", name_, std::strerror(errno))};
  zmq_ctx_set(context_.get(), ZMQ_IO_THREADS, 1);
  zmq_ctx_set(context_.get(), ZMQ_MAX_SOCKETS, 4096);
  // the ZAP handler exists before the first server socket: without one libzmq takes every key
  auto zap = ZapHandler::bind(context_.get(), counters_.refused);
  if (!zap) return zap.error();
  zap_ = std::move(*zap);
  sockets_ = std::make_unique<SocketTable>(context_.get(), *zap_, guard_, counters_, closing_fronts_);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& e) {
    return Error{Errc::resource_exhausted, fmt::format("io loop {}: cannot start a thread: {}", name_, e.what())};
  }
  pthread_setname_np(thread_.native_handle(), name_.substr(0, 15).c_str());
  return {};
}

IoLoopImpl::~IoLoopImpl() {
  TROUPE_CHECK(!thread_.joinable() || !on_loop_thread(), "a loop is not destroyed by its own callback");
  if (thread_.joinable()) {
    post([this] { stopping_ = true; });
    thread_.join();
  }
}

void IoLoopImpl::run() {
  loop_id_.store(std::this_thread::get_id());
  while (!stopping_) {
    guard_.run("a turn", [this] { turn(); });
  }
  guard_.run("closing", [this] {
    run_tasks();  // what the last tasks posted, such as a final message
    sockets_->close_all();
    watches_.clear();
    zap_.reset();
  });
}

int IoLoopImpl::poll_timeout_ms() const {
  if (more_to_read_) return 0;
  int timeout = sockets_->must_retry_soon() ? kRetryMs : kMaxPollMs;
  if (const auto due = timers_.next_due()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now()).count();
    timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, timeout));
  }
  return timeout;
}

void IoLoopImpl::turn() {
  items_.clear();
  polled_watches_.clear();
  items_.push_back({nullptr, queued_.get(), ZMQ_POLLIN, 0});
  items_.push_back({zap_->socket(), 0, ZMQ_POLLIN, 0});
  sockets_->add_poll_items(items_);
  const std::size_t first_fd = items_.size();
  for (const auto& [fd, watch] : watches_) {
    items_.push_back({nullptr, fd, ZMQ_POLLIN, 0});
    polled_watches_.push_back(watch);
  }
  if (zmq_poll(items_.data(), static_cast<int>(items_.size()), poll_timeout_ms()) < 0) {
    if (zmq_errno() == EINTR) return;
    throw std::runtime_error(fmt::format("zmq_poll failed: {}", zmq_strerror(zmq_errno())));
  }
  const auto begin = Clock::now();
  if (items_[0].revents != 0) run_tasks();
  zap_->answer_all();
  more_to_read_ = sockets_->turn();
  serve_fds(first_fd);
  run_timers();
  const double seconds = seconds_since(begin);
  if (seconds > counters_.longest_turn_s.load(std::memory_order_relaxed))
    counters_.longest_turn_s.store(seconds, std::memory_order_relaxed);
}

void IoLoopImpl::run_tasks() {
  // this order loses no signal: empty the descriptor, clear the flag, then take the queue
  queued_.clear();
  armed_.store(false);
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock(queue_mutex_);
    tasks.swap(queue_);
  }
  for (auto& task : tasks) guard_.run("a posted task", task);
}

void IoLoopImpl::run_timers() {
  const auto now = Clock::now();
  while (auto task = timers_.take_due(now)) guard_.run("a timer", task);
}

void IoLoopImpl::serve_fds(std::size_t first_item) {
  for (std::size_t i = 0; i < polled_watches_.size(); ++i) {
    const auto& item = items_[first_item + i];
    const auto& watch = polled_watches_[i];
    if (item.revents == 0 || watch->ended) continue;
    bool goes_on = false;
    guard_.run("a descriptor's callback", [&] { goes_on = watch->on_readable(); });
    // out of the poll set in this turn: a hang-up is reported whatever is asked for
    if (!goes_on && !watch->ended) unwatch(item.fd);
  }
}

template <class T>
Result<T> IoLoopImpl::call(std::function<Result<T>()> work) {
  if (on_loop_thread()) return work();
  auto reply = std::make_shared<Answer<T>>();
  post([reply, work = std::move(work)] {
    Result<T> result = work();
    const std::lock_guard lock(reply->mutex);
    reply->result.emplace(std::move(result));
    reply->arrived.notify_all();
  });
  std::unique_lock lock(reply->mutex);
  if (!reply->arrived.wait_for(lock, kCallDeadline, [&] { return reply->result.has_value(); })) {
    return Error{Errc::deadline_exceeded,
                 fmt::format("io loop {} did not answer within {} s", name_, kCallDeadline.count())};
  }
  return std::move(*reply->result);
}

Result<SocketId> IoLoopImpl::bind_router(const std::string& endpoint, OnMessage on_message,
                                         std::optional<CurveServer> curve, std::size_t max_payload) {
  return call<SocketId>([=, this]() -> Result<SocketId> {
    TROUPE_ASSIGN(const SocketTable::Bound bound, sockets_->bind(endpoint, on_message, curve, max_payload));
    const std::lock_guard lock(endpoints_mutex_);
    endpoints_[bound.id] = bound.endpoint;
    return bound.id;
  });
}

Result<SocketId> IoLoopImpl::connect_dealer(const std::string& endpoint, const std::string& routing_id,
                                            OnMessage on_message, std::optional<CurveClient> curve,
                                            std::size_t max_payload) {
  return call<SocketId>([=, this] { return sockets_->connect(endpoint, routing_id, on_message, curve, max_payload); });
}

std::string IoLoopImpl::bound_endpoint(SocketId socket) const {
  const std::lock_guard lock(endpoints_mutex_);
  const auto it = endpoints_.find(socket);
  return it == endpoints_.end() ? std::string() : it->second;
}

void IoLoopImpl::close(SocketId socket) {
  {
    const std::lock_guard lock(endpoints_mutex_);
    endpoints_.erase(socket);
  }
  if (on_loop_thread()) return sockets_->close(socket);
  post([this, socket] { sockets_->close(socket); });
}

void IoLoopImpl::send(SocketId socket, const std::string& routing_id, const Envelope& envelope,
                      std::vector<std::byte> payload) {
  // encoded here, so that the checksum of a large payload does not hold up the loop
  auto frame = encode_envelope(envelope, payload);
  if (!frame) log::error("io loop {}: {}", name_, frame.error().message());
  Outgoing message{envelope, frame ? std::move(*frame) : std::vector<std::byte>{}, std::move(payload),
                   Clock::now() + std::chrono::milliseconds(envelope.ttl_ms)};
  // std::function copies: the message travels by pointer
  post([this, socket, routing_id, is_valid = frame.has_value(),
        shared = std::make_shared<Outgoing>(std::move(message))] {
    if (!is_valid) return sockets_->report_undeliverable(socket, routing_id, shared->envelope);
    sockets_->send(socket, routing_id, std::move(*shared));
  });
}

void IoLoopImpl::set_on_undeliverable(OnUndeliverable report) {
  post([this, report = std::move(report)] { sockets_->set_on_undeliverable(report); });
}

void IoLoopImpl::post(std::function<void()> task) {
  {
    const std::lock_guard lock(queue_mutex_);
    queue_.push_back(std::move(task));
  }
  if (!armed_.exchange(true)) queued_.raise();
}

std::uint64_t IoLoopImpl::after(std::chrono::milliseconds delay, std::function<void()> task) {
  const std::uint64_t id = next_timer_.fetch_add(1);
  const auto due = Clock::now() + delay;
  if (on_loop_thread()) {
    timers_.add(id, due, std::move(task));
  } else {
    post([this, id, due, task = std::move(task)] { timers_.add(id, due, task); });
  }
  return id;
}

void IoLoopImpl::cancel(std::uint64_t timer) {
  if (on_loop_thread()) return timers_.cancel(timer);
  post([this, timer] { timers_.cancel(timer); });
}

void IoLoopImpl::watch(int fd, std::function<bool()> on_readable) {
  if (!on_loop_thread()) {
    return post([this, fd, on_readable = std::move(on_readable)] { watch(fd, on_readable); });
  }
  unwatch(fd);
  watches_[fd] = std::make_shared<Watch>(Watch{std::move(on_readable)});
}

void IoLoopImpl::unwatch(int fd) {
  if (!on_loop_thread()) return post([this, fd] { unwatch(fd); });
  const auto it = watches_.find(fd);
  if (it == watches_.end()) return;
  it->second->ended = true;
  watches_.erase(it);
}

IoLoop::Stats IoLoopImpl::stats() const {
  const auto get = [](const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  Stats stats;
  stats.malformed = get(counters_.malformed);
  stats.refused = get(counters_.refused);
  stats.undeliverable = get(counters_.undeliverable);
  stats.received = get(counters_.received);
  stats.sent = get(counters_.sent);
  stats.exceptions = guard_.count();
  stats.longest_turn_s = counters_.longest_turn_s.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace troupe::comm
