#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/event_fd.h"
#include "comm/control/callback_guard.h"
#include "comm/control/io_loop.h"
#include "comm/control/socket_table.h"
#include "comm/control/timer_queue.h"
#include "comm/control/zap.h"
#include "comm/control/zmq_handles.h"

namespace troupe::comm {

/// The loop behind IoLoop::start. Members below "loop's thread only" are touched by nobody else once it runs.
class IoLoopImpl final : public IoLoop {
 public:
  explicit IoLoopImpl(std::string name) : name_(std::move(name)) {}
  ~IoLoopImpl() override;
  /// Makes the context and the ZAP handler and starts the thread.
  Result<void> open();

  Result<SocketId> bind_router(const std::string& endpoint, OnMessage on_message, std::optional<CurveServer> curve,
                               std::size_t max_payload) override;
  Result<SocketId> connect_dealer(const std::string& endpoint, const std::string& routing_id, OnMessage on_message,
                                  std::optional<CurveClient> curve, std::size_t max_payload) override;
  std::string bound_endpoint(SocketId socket) const override;
  void close(SocketId socket) override;
  void send(SocketId socket, const std::string& routing_id, const Envelope& envelope,
            std::vector<std::byte> payload) override;
  void set_on_undeliverable(OnUndeliverable report) override;
  void post(std::function<void()> task) override;
  std::uint64_t after(std::chrono::milliseconds delay, std::function<void()> task) override;
  void cancel(std::uint64_t timer) override;
  void watch(int fd, std::function<bool()> on_readable) override;
  void unwatch(int fd) override;
  PeerProof sender() const override { return sockets_->sender(); }
  Stats stats() const override;

 private:
  struct Watch {
    std::function<bool()> on_readable;
    /// Unwatched while its events were being served.
    bool ended = false;
  };

  bool on_loop_thread() const { return std::this_thread::get_id() == loop_id_.load(); }
  /// Runs `work` on the loop's thread and waits up to 20 s for its result. Errors: those of `work`,
  /// deadline_exceeded.
  template <class T>
  Result<T> call(std::function<Result<T>()> work);
  void run();
  /// One poll, then tasks, ZAP requests, sockets, descriptors and timers that are due.
  void turn();
  void run_tasks();
  void run_timers();
  void serve_fds(std::size_t first_item);
  int poll_timeout_ms() const;

  std::string name_;
  LoopCounters counters_;
  /// Fronts of closed sockets. They end after the context, which first waits until its last messages are passed on.
  std::vector<std::unique_ptr<ZmtpFront>> closing_fronts_;
  ZmqContext context_;
  /// Raised when a task is queued and none was before.
  EventFd queued_;

  // MPSC queue: many post, the loop swaps the whole list out
  std::mutex queue_mutex_;
  std::vector<std::function<void()>> queue_;
  /// A signal is on its way.
  std::atomic<bool> armed_{false};
  std::atomic<std::uint64_t> next_timer_{1};

  mutable std::mutex endpoints_mutex_;
  std::map<SocketId, std::string> endpoints_;

  CallbackGuard guard_;

  // loop's thread only
  std::unique_ptr<ZapHandler> zap_;
  std::unique_ptr<SocketTable> sockets_;
  TimerQueue timers_;
  std::map<int, std::shared_ptr<Watch>> watches_;
  std::vector<zmq_pollitem_t> items_;
  std::vector<std::shared_ptr<Watch>> polled_watches_;
  bool more_to_read_ = false;
  bool stopping_ = false;

  std::atomic<std::thread::id> loop_id_{};
  std::thread thread_;
};

}  // namespace troupe::comm
