#include "data/video/read_thread.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/blocked_signals.h"

namespace troupe::data {

namespace {

/// Beyond this many calls that never came back, the file system is taken for dead: more threads would not help.
constexpr int kMaxStuck = 32;
std::atomic<int> stuck_threads{0};

}  // namespace

class ReadThread::Job {
 public:
  explicit Job(std::function<void()> work) : work_(std::move(work)) {}

 private:
  friend class ReadThread;
  friend struct ReadThread::State;
  std::function<void()> work_;
  bool done_ = false;  // guarded by State::mutex
};

struct ReadThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> queue;
  bool busy = false, stopping = false, abandoned = false;
  std::thread thread;

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stopping || abandoned || !queue.empty(); });
      if (stopping || abandoned) break;
      const std::shared_ptr<Job> job = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      job->work_();
      job->work_ = nullptr;  // releases what the work owned, here and not under the lock
      lock.lock();
      busy = false;
      job->done_ = true;
      changed.notify_all();
    }
    if (abandoned) --stuck_threads;
  }
};

ReadThread::ReadThread() = default;

ReadThread::~ReadThread() {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  state_->queue.clear();
  if (state_->busy) {
    state_->abandoned = true;
    ++stuck_threads;
    state_->thread.detach();
    return;
  }
  state_->stopping = true;
  state_->changed.notify_all();
  lock.unlock();
  state_->thread.join();
}

Result<std::shared_ptr<ReadThread::Job>> ReadThread::start(std::function<void()> work) {
  if (!state_) {
    if (stuck() >= kMaxStuck) {
      return Error{
          Errc::unavailable,
          fmt::format("{} reads have not come back after their deadline; the file system does not answer", stuck())};
    }
    const BlockedSignals blocked;
    state_ = std::make_shared<State>();
    state_->thread = std::thread([state = state_] { state->run(); });
  }
  auto job = std::make_shared<Job>(std::move(work));
  const std::lock_guard lock(state_->mutex);
  state_->queue.push_back(job);
  state_->changed.notify_all();
  return job;
}

bool ReadThread::wait(const std::shared_ptr<Job>& job, Clock::time_point deadline) {
  if (!state_) return false;  // it was abandoned together with this job
  std::unique_lock lock(state_->mutex);
  if (state_->changed.wait_until(lock, deadline, [&] { return job->done_; })) return true;
  state_->queue.clear();
  state_->abandoned = true;
  ++stuck_threads;
  state_->changed.notify_all();
  state_->thread.detach();
  lock.unlock();
  state_.reset();
  return false;
}

Error ReadThread::out_of_time(const std::string& path, const char* doing) {
  return {Errc::deadline_exceeded, fmt::format("{}: the deadline passed while {}", path, doing)};
}

int ReadThread::stuck() { return stuck_threads.load(); }

}  // namespace troupe::data
