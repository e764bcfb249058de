#include "workers/learner/batch_ahead.h"

#include <pthread.h>

#include <utility>

#include "base/trace.h"
#include "workers/learner/rank_thread.h"

namespace troupe::workers {

BatchAhead::BatchAhead(Options options) : options_(std::move(options)) {
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), options_.name.substr(0, 15).c_str());
}

BatchAhead::~BatchAhead() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  options_.cancel();
  thread_.join();
}

void BatchAhead::run() {
  begin_rank_thread(options_.threads);
  std::unique_lock lock(mutex_);
  while (true) {
    // Idle until the rank asks: only take() and the destructor end this wait.
    changed_.wait(lock, [this] { return stopping_ || task_.valid(); });
    if (stopping_) return;
    Task task = std::exchange(task_, {});
    lock.unlock();
    task();
    lock.lock();
  }
}

void BatchAhead::prepare(const Place& place) {
  Task task([this, place] { return options_.make(place, Clock::now()); });
  ahead_ = Ahead{.place = place, .made = task.get_future()};
  {
    std::lock_guard lock(mutex_);
    task_ = std::move(task);
  }
  changed_.notify_one();
}

Result<BatchAhead::MicroBatch> BatchAhead::take_ahead(Clock::time_point since) {
  const Place place = ahead_->place;
  auto made = std::move(ahead_->made);
  ahead_.reset();
  auto batch = made.get();
  // that deadline began before the rank needed the samples
  const bool is_late = !batch && batch.error().code() == Errc::deadline_exceeded;
  return is_late ? options_.make(place, since) : std::move(batch);
}

Result<BatchAhead::MicroBatch> BatchAhead::take(const Place& place, const std::optional<Place>& next) {
  const auto since = Clock::now();
  if (ahead_) {
    // The wait for samples inside `make` has a deadline, which began earlier; then `make` waits for no other party.
    const Span span("wait for a batch", SpanKind::wait);
    ahead_->made.wait();
  }
  auto taken = ahead_ && ahead_->place == place ? take_ahead(since) : options_.make(place, since);
  if (taken && next && !ahead_) prepare(*next);
  return taken;
}

}  // namespace troupe::workers
