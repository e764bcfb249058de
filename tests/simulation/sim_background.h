#pragma once

#include <deque>
#include <utility>

#include "tests/simulation/wire.h"
#include "workers/controller/background.h"

namespace troupe::testing {

/// The controller's file thread on the simulation's clock: a piece takes a few milliseconds, and seconds now and then,
/// where the disk is slow. What a process has not done when it dies is not done.
class SimBackground final : public Background {
 public:
  /// `draw` says how long a piece takes. All are used for as long as it lives. `has_thread`: pieces are done on the
  /// product's thread, one at a time.
  SimBackground(SimClock& clock, SimWire& wire, std::shared_ptr<SimProcess> process, std::function<Millis()> draw,
                bool has_thread)
      : clock_(clock), wire_(wire), process_(std::move(process)), draw_(std::move(draw)) {
    if (has_thread) thread_ = std::make_unique<BackgroundThread>();
  }

  void run(Work work, Then then) override {
    waiting_->push_back({.work = std::move(work), .then = std::move(then)});
    if (waiting_->size() == 1) begin();
  }
  void collect() override {
    for (const auto& [then, result] : std::exchange(done_, {})) then(result);
  }
  std::size_t waiting() const override { return waiting_->size(); }
  bool wait_idle(std::chrono::milliseconds) override { return waiting_->empty(); }

 private:
  struct Piece {
    Work work;
    Then then;
  };
  Result<void> done(const Work& work) {
    if (!thread_) return work();
    Result<void> outcome = Error{Errc::deadline_exceeded, "the thread does nothing"};
    thread_->run(work, [&outcome](const Result<void>& result) { outcome = result; });
    if (thread_->wait_idle(std::chrono::minutes(1)) && thread_->waiting() == 0) thread_->collect();
    return outcome;
  }
  void begin() {
    clock_.after(draw_(), [this, alive = std::weak_ptr(waiting_), process = process_] {
      if (alive.expired()) return;
      wire_.run_in(process, [this, alive] {
        if (alive.expired()) return;
        const Piece piece = std::move(waiting_->front());
        waiting_->pop_front();
        const Result<void> result = done(piece.work);
        if (piece.then) done_.emplace_back(piece.then, result);
        if (!waiting_->empty()) begin();
      });
    });
  }

  SimClock& clock_;
  SimWire& wire_;
  const std::shared_ptr<SimProcess> process_;
  const std::function<Millis()> draw_;
  const std::shared_ptr<std::deque<Piece>> waiting_ = std::make_shared<std::deque<Piece>>();
  std::vector<std::pair<Then, Result<void>>> done_;
  std::unique_ptr<BackgroundThread> thread_;
};

}  // namespace troupe::testing
