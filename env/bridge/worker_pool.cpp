#include "env/bridge/worker_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/blocked_signals.h"
#include "base/event_fd.h"
#include "base/log.h"
#include "env/bridge/worker_process.h"
#include "env/env_spec_json.h"

namespace troupe::env {

namespace {

using Clock = std::chrono::steady_clock;
using comm::BridgeHello;
using comm::BridgeHub;

constexpr int kMaxPollMs = 100;
constexpr std::chrono::milliseconds kFirstPause{100}, kLongestPause{30'000};

/// One place for a worker, and the process that fills it now.
struct Place {
  /// worker-PLACE.START, no other's.
  std::string name = {};
  std::int64_t starts = 0;
  std::optional<WorkerProcess> process = {};
  /// It was given up and is to be killed.
  bool is_doomed = false;
  /// The pause before the next start, and its end.
  std::chrono::milliseconds pause{0};
  Clock::time_point start_at = {};
};

class StartedPool final : public WorkerPool {
 public:
  explicit StartedPool(Setup setup) : setup_(std::move(setup)) {}
  ~StartedPool() override {
    {
      const std::lock_guard lock(mutex_);
      is_closing_ = true;
    }
    hub_.reset();
    stopping_ = true;
    changed_.raise();
    if (thread_.joinable()) thread_.join();
  }

  Result<void> open() {
    places_.resize(static_cast<std::size_t>(setup_.bridge.workers));
    TROUPE_ASSIGN(
        hub_, BridgeHub::start({.bind = setup_.bridge.bind,
                                .max_message_bytes = setup_.max_message_bytes,
                                .awaited = places_.size(),
                                .accept = [this](const BridgeHello& hello) { return accept(hello); },
                                .on_gone = [this](const std::string& name, const Error& why) { doom(name, why); }}));
    endpoint_ = hub_->endpoint();
    const BlockedSignals blocked;
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "bridge workers");
    return {};
  }

  BridgeHub& hub() override { return *hub_; }

 private:
  Result<void> accept(const BridgeHello& hello) {
    if (hello.env != setup_.spec.id)
      return invalid_argument(fmt::format("it has {}, the simulator steps {}", hello.env, setup_.spec.id));
    const auto theirs = nlohmann::json::parse(hello.options, nullptr, /*allow_exceptions=*/false);
    if (theirs != nlohmann::json::parse(setup_.options))
      return invalid_argument(
          fmt::format("its --options are {}, the job's env.options {}", hello.options, setup_.options));
    auto spec = parse_env_spec(hello.spec, "its environment");
    if (!spec) return spec.error();
    spec->max_steps = setup_.spec.max_steps;  // the pool's to enforce
    TROUPE_TRY(check_same_spec(*spec, setup_.spec, "the job"));
    const std::lock_guard lock(come_mutex_);
    come_.insert(hello.name);
    return {};
  }

  void doom(const std::string& name, const Error& why) {
    const std::lock_guard lock(mutex_);
    if (is_closing_) return;
    log::warn("bridge: {}", why.message());
    for (Place& place : places_) place.is_doomed |= place.name == name;
    changed_.raise();
  }

  /// The thread that workers die with.
  void run() {
    while (!stopping_) {
      std::vector<pollfd> items{{changed_.get(), POLLIN, 0}};
      {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < places_.size() && !is_closing_; ++i) tend(i);
        for (const Place& place : places_) {
          if (!place.process) continue;
          items.push_back({place.process->ended(), POLLIN, 0});
          items.push_back({place.process->err(), POLLIN, 0});
        }
      }
      ::poll(items.data(), items.size(), kMaxPollMs);
      changed_.clear();
    }
    const std::lock_guard lock(mutex_);
    places_.clear();
  }

  void tend(std::size_t i) {
    Place& place = places_[i];
    if (place.process) {
      if (place.is_doomed) place.process->kill();
      place.is_doomed = false;
      place.process->take_output();
      if (const auto end = place.process->poll_end()) bury(place, *end);
    }
    if (!place.process && Clock::now() >= place.start_at) start(i);
  }

  bool has_come(const std::string& name) {
    const std::lock_guard lock(come_mutex_);
    return come_.erase(name) > 0;
  }

  void start(std::size_t i) {
    Place& place = places_[i];
    place.name = fmt::format("worker-{}.{}", i, ++place.starts);
    place.is_doomed = false;
    auto started = WorkerProcess::start(
        setup_.command,
        {"--connect", endpoint_, "--env", setup_.spec.id, "--options", setup_.options, "--name", place.name},
        /*keeps_stdout=*/false);
    if (started)
      place.process.emplace(std::move(*started));
    else
      fail(place, started.error().message());
  }

  void bury(Place& place, const WorkerProcess::End& end) {
    place.process.reset();
    if (has_come(place.name)) {
      place.pause = std::chrono::milliseconds(0);
      place.start_at = Clock::now();
      return;
    }
    fail(place, end.why.empty() ? "it ended before it came" : end.why);
  }

  void fail(Place& place, const std::string& why) {
    log::warn("bridge: {} did not come: {}", place.name, why);
    place.pause = std::clamp(2 * place.pause, kFirstPause, kLongestPause);
    place.start_at = Clock::now() + place.pause;
    hub_->announce_outage({Errc::unavailable, why});
  }

  const Setup setup_;
  std::unique_ptr<BridgeHub> hub_;
  std::string endpoint_;
  EventFd changed_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  bool is_closing_ = false;  // guarded by mutex_, as the next
  std::vector<Place> places_;
  std::mutex come_mutex_;       // of the next, taken last: the hub asks accept() under a lock of its own
  std::set<std::string> come_;  // names of workers that came and have not been buried
  std::thread thread_;
};

}  // namespace

Result<std::shared_ptr<WorkerPool>> WorkerPool::start(Setup setup) {
  if (setup.bridge.workers == 0 && setup.bridge.bind.empty())
    return invalid_argument(
        "env.bridge.workers is 0 and env.bridge.bind is empty: nobody could come; name an address for the workers that "
        "you start");
  auto pool = std::make_shared<StartedPool>(std::move(setup));
  TROUPE_TRY(pool->open());
  return std::shared_ptr<WorkerPool>(std::move(pool));
}

}  // namespace troupe::env
