#include "workers/bridge/worker_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/blocked_signals.h"
#include "base/event_fd.h"
#include "base/log.h"
#include "env/env_spec_json.h"
#include "workers/bridge/worker_process.h"

namespace troupe::workers {

namespace {

using Clock = std::chrono::steady_clock;
using comm::BridgeHello;
using comm::BridgeHub;

constexpr int kMaxPollMs = 100;
constexpr std::chrono::milliseconds kFirstPause{100}, kLongestPause{30'000};

/// How far a worker has come: started, joined the hub, answered a question.
enum class Progress { started, came, answered };

/// A worker's `--options` and the job's mean the same: a text that is JSON is it, as the worker reads them.
nlohmann::json meaning_of(const std::string& options) {
  auto all = nlohmann::json::parse(options, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object()) return all;
  for (auto& value : all) {
    if (!value.is_string()) continue;
    auto inner = nlohmann::json::parse(value.get<std::string>(), nullptr, /*allow_exceptions=*/false);
    if (!inner.is_discarded()) value = std::move(inner);
  }
  return all;
}

/// One place for a worker, and the process that fills it now.
struct Place {
  /// worker-PLACE.START, no other's.
  std::string name = {};
  std::int64_t starts = 0;
  std::optional<WorkerProcess> process = {};
  Clock::time_point started = {};
  /// How the process ended; the place is cleared next.
  std::optional<WorkerProcess::End> end = {};
  /// Name of the worker that ended last, and why: the hub may notice the end later.
  std::string buried = {}, buried_why = {};
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
                                .why_ended = [this](const std::string& name) { return why_ended(name); },
                                .on_answer = [this](const std::string& name) { note(name, Progress::answered); },
                                .on_gone = [this](const std::string& name, const Error& why) { doom(name, why); }}));
    endpoint_ = hub_->endpoint();
    if (!changed_.is_open())
      return Error{Errc::resource_exhausted, fmt::format("no descriptors left: {}", std::strerror(errno))};
    const BlockedSignals blocked;
    try {
      thread_ = std::thread([this] { run(); });
      pthread_setname_np(thread_.native_handle(), "bridge workers");
    } catch (const std::system_error& e) {
      return Error{Errc::resource_exhausted, fmt::format("the workers' thread cannot be started: {}", e.what())};
    }
    return {};
  }

  BridgeHub& hub() override { return *hub_; }

 private:
  Result<void> accept(const BridgeHello& hello) {
    if (hello.env != setup_.spec.id)
      return invalid_argument(fmt::format("it has {}, the simulator steps {}", hello.env, setup_.spec.id));
    if (meaning_of(hello.options) != meaning_of(setup_.options))
      return invalid_argument(
          fmt::format("its --options are {}, the job's env.options {}", hello.options, setup_.options));
    auto spec = parse_env_spec(hello.spec, "its environment");
    if (!spec) return spec.error();
    spec->max_steps = setup_.spec.max_steps;  // the pool's to enforce
    TROUPE_TRY(check_same_spec(*spec, setup_.spec, "the job"));
    note(hello.name, Progress::came);
    return {};
  }

  void note(const std::string& name, Progress progress) {
    const std::lock_guard lock(progress_mutex_);
    Progress& known = progress_[name];
    known = std::max(known, progress);
  }

  Progress progress_of(const std::string& name) {
    const std::lock_guard lock(progress_mutex_);
    const auto found = progress_.find(name);
    return found == progress_.end() ? Progress::started : found->second;
  }

  std::string why_ended(const std::string& name) {
    const std::lock_guard lock(mutex_);
    for (Place& place : places_) {
      if (place.buried == name) return place.buried_why;
      if (place.name != name || !place.process) continue;
      look_after(place);
      return place.end ? place.end->why : std::string();
    }
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
      look_after(place);
      if (place.end)
        bury(place);
      else if (Clock::now() - place.started > setup_.start_patience && progress_of(place.name) == Progress::started)
        give_up(place);
    }
    if (!place.process && Clock::now() >= place.start_at) start(i);
  }

  static void look_after(Place& place) {
    place.process->take_output();
    if (auto end = place.process->poll_end()) place.end = std::move(end);
  }

  void start(std::size_t i) {
    Place& place = places_[i];
    place.name = fmt::format("worker-{}.{}", i, ++place.starts);
    place.is_doomed = false;
    place.end.reset();
    place.started = Clock::now();
    auto started = WorkerProcess::start(
        setup_.command,
        {"--connect", endpoint_, "--env", setup_.spec.id, "--options", setup_.options, "--name", place.name},
        /*keeps_stdout=*/false);
    if (started)
      place.process.emplace(std::move(*started));
    else
      fail(place, started.error().message());
  }

  void bury(Place& place) {
    const Progress progress = progress_of(place.name);
    const std::string& why = place.end->why;
    place.buried = place.name;
    place.buried_why = why;
    place.process.reset();
    if (progress < Progress::answered)
      return fail(place, !why.empty()                 ? why
                         : progress == Progress::came ? "it ended before it had answered anything"
                                                      : "it ended before it came");
    forget(place);
    log::warn("bridge: {} has ended{}{}; another one is started", place.name, why.empty() ? "" : ": ", why);
    place.pause = std::chrono::milliseconds(0);
    place.start_at = Clock::now();
  }

  void give_up(Place& place) {
    const std::string why =
        fmt::format("it did not come within {:.0f} s: {}", std::chrono::duration<double>(setup_.start_patience).count(),
                    place.process->last_line());
    place.process.reset();
    fail(place, why);
  }

  void forget(const Place& place) {
    const std::lock_guard lock(progress_mutex_);
    progress_.erase(place.name);
  }

  void fail(Place& place, const std::string& why) {
    log::warn("bridge: {} is of no use: {}", place.name, why);
    forget(place);
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
  std::mutex progress_mutex_;                 // of the next, taken last: the hub asks accept() under a lock of its own
  std::map<std::string, Progress> progress_;  // of workers that came and have not been buried
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

}  // namespace troupe::workers
