#include "workers/controller/background.h"

#include <pthread.h>

#include <exception>
#include <utility>

#include "base/blocked_signals.h"

namespace troupe::workers {

namespace {

Result<void> guarded(const Background::Work& work) {
  try {
    return work();
  } catch (const std::exception& e) {
    return Error{Errc::internal, e.what()};
  }
}

}  // namespace

BackgroundThread::BackgroundThread() {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { serve(); });
  pthread_setname_np(thread_.native_handle(), "run files");
}

BackgroundThread::~BackgroundThread() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void BackgroundThread::run(Work work, Then then) {
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back({.work = std::move(work), .then = std::move(then)});
  }
  changed_.notify_one();
}

void BackgroundThread::collect() {
  std::deque<Piece> done;
  {
    std::lock_guard lock(mutex_);
    done.swap(done_);
  }
  for (const Piece& piece : done) {
    if (piece.then) piece.then(piece.result);
  }
}

bool BackgroundThread::wait_idle(std::chrono::milliseconds deadline) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, deadline, [this] { return waiting_.empty() && !is_working_; });
}

std::size_t BackgroundThread::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_.size() + (is_working_ ? 1 : 0);
}

void BackgroundThread::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Piece piece = std::move(waiting_.front());
    waiting_.pop_front();
    is_working_ = true;
    lock.unlock();
    piece.result = guarded(piece.work);
    piece.work = {};
    lock.lock();
    is_working_ = false;
    if (piece.then) done_.push_back(std::move(piece));
    if (waiting_.empty()) idle_.notify_all();
  }
}

}  // namespace troupe::workers
