#pragma once

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <chrono>
#include <functional>

#include "comm/control/io_loop.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// An actor system on CAF's deterministic scheduler: actors that are not detached run in run(), on this thread, and
/// delayed messages come by advance().
class TestScheduler {
 public:
  TestScheduler() : system_(config_.set("scheduler.policy", caf::atom("testing"))) {}
  /// Messages that are still delayed hold their actors, which the system would wait for.
  ~TestScheduler() {
    coordinator().trigger_timeouts();
    run();
  }

  caf::actor_system& system() { return system_; }
  /// Until every mailbox is empty.
  void run() { coordinator().run(); }
  void advance(std::chrono::milliseconds time) {
    coordinator().advance_time(time);
    run();
  }

 private:
  caf::scheduler::test_coordinator& coordinator() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }
  caf::actor_system_config config_;
  caf::actor_system system_;
};

/// A loop without sockets and threads that keeps what it is to send.
class RecordingLoop final : public IoLoop {
 public:
  Result<SocketId> bind_router(const std::string&, OnMessage, std::optional<CurveServer>, std::size_t) override {
    return SocketId{};
  }
  Result<SocketId> connect_dealer(const std::string&, const std::string&, OnMessage, std::optional<CurveClient>,
                                  std::size_t) override {
    return SocketId{};
  }
  std::string bound_endpoint(SocketId) const override { return {}; }
  void close(SocketId) override {}
  void send(SocketId, const std::string&, const Envelope& envelope, std::vector<std::byte>) override {
    sent.push_back(envelope);
  }
  void set_on_undeliverable(OnUndeliverable) override {}
  void post(std::function<void()>) override {}
  std::uint64_t after(std::chrono::milliseconds, std::function<void()>) override { return 1; }
  void cancel(std::uint64_t) override {}
  void watch(int, std::function<bool()>) override {}
  void unwatch(int) override {}
  Stats stats() const override { return {}; }

  std::vector<Envelope> sent;
};

}  // namespace troupe::testing
