#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "base/blocked_signals.h"
#include "base/check.h"
#include "base/event_fd.h"
#include "base/log.h"
#include "workers/node/process.h"
#include "workers/node/process_spawn.h"

namespace troupe::workers {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr milliseconds kStartDeadline{10'000};
constexpr milliseconds kAfterKill{5'000};
constexpr milliseconds kDestructorGrace{2'000};
constexpr milliseconds kMaxPoll{1'000};

/// Answer of the table's thread to start().
struct StartAnswer {
  std::mutex mutex;
  std::condition_variable arrived;
  std::optional<Result<pid_t>> result;
};

}  // namespace

class ProcessTable::Impl {
 public:
  Impl(OnExit on_exit, milliseconds unkillable_after)
      : on_exit_(std::move(on_exit)), unkillable_after_(unkillable_after) {
    TROUPE_CHECK(posted_.is_open(), "a process has descriptors left when it begins to supervise");
    {
      const BlockedSignals blocked;
      thread_ = std::thread([this] { run(); });
    }
    pthread_setname_np(thread_.native_handle(), "children");
  }

  ~Impl() {
    kill_all(kDestructorGrace);
    post([this] { stopping_ = true; });
    thread_.join();
  }

  Result<pid_t> start(const ProcessSpec& spec) {
    if (spec.argv.empty() || spec.name.empty())
      return Error{Errc::invalid_argument, "a process needs a name and a program"};
    if (std::this_thread::get_id() == thread_id_.load()) return start_here(spec);
    auto answer = std::make_shared<StartAnswer>();
    post([this, spec, answer] {
      auto result = start_here(spec);
      const std::lock_guard lock(answer->mutex);
      answer->result.emplace(std::move(result));
      answer->arrived.notify_all();
    });
    std::unique_lock lock(answer->mutex);
    if (!answer->arrived.wait_for(lock, kStartDeadline, [&] { return answer->result.has_value(); })) {
      return Error{Errc::deadline_exceeded,
                   fmt::format("{} was not started within {} ms", spec.name, kStartDeadline.count())};
    }
    return std::move(*answer->result);
  }

  bool kill(const std::string& name, milliseconds grace) {
    {
      const std::lock_guard lock(mutex_);
      const auto it = children_.find(name);
      if (it == children_.end()) return false;
      stop(it->second, grace);
    }
    posted_.raise();
    return true;
  }

  void kill_all(milliseconds grace) {
    TROUPE_CHECK(std::this_thread::get_id() != thread_id_.load(), "on_exit does not end the table that calls it");
    std::unique_lock lock(mutex_);
    closing_ = true;
    for (auto& [name, child] : children_) stop(child, grace);
    posted_.raise();
    if (!emptied_.wait_for(lock, grace + kAfterKill, [&] { return children_.empty() && reporting_ == 0; })) {
      for (const auto& [name, child] : children_)
        log::error("{} (pid {}) does not end after SIGKILL; it hangs in the kernel", name, child.pid);
    }
  }

  std::size_t num_running() const {
    const std::lock_guard lock(mutex_);
    return children_.size();
  }

 private:
  struct Child {
    pid_t pid = 0;
    FileDescriptor pidfd;
    std::string log;
    std::int64_t log_begin = 0;
    std::uint64_t oom_kills = 0;
    bool asked_to_end = false;
    std::optional<Clock::time_point> kill_at;
    /// When SIGKILL was sent.
    std::optional<Clock::time_point> killed_at;
  };

  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    posted_.raise();
  }

  Result<pid_t> start_here(const ProcessSpec& spec) {
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return Error{Errc::cancelled, fmt::format("{} was not started: the node is closing", spec.name)};
      if (children_.contains(spec.name) || unkillable_.contains(spec.name))
        return Error{Errc::invalid_argument, fmt::format("{} runs already", spec.name)};
    }
    const std::uint64_t oom_kills = count_oom_kills();
    TROUPE_ASSIGN(SpawnedChild spawned, spawn_child(spec));
    const pid_t pid = spawned.pid;
    const std::lock_guard lock(mutex_);
    Child& child = children_[spec.name];
    child = Child{.pid = pid,
                  .pidfd = std::move(spawned.pidfd),
                  .log = spec.stderr_log,
                  .log_begin = spawned.log_begin,
                  .oom_kills = oom_kills,
                  .kill_at = {},
                  .killed_at = {}};
    if (closing_) stop(child, milliseconds(0));  // kill_all came in between
    return pid;
  }

  /// With mutex_ held. The process is ours and not waited for, so its group's number cannot belong to anybody else.
  void stop(Child& child, milliseconds grace) {
    const auto at = Clock::now() + grace;
    if (!child.kill_at || at < *child.kill_at) child.kill_at = at;
    if (!child.asked_to_end && grace > milliseconds(0)) ::kill(-child.pid, SIGTERM);
    child.asked_to_end = true;
    kill_if_due(child, Clock::now());
  }

  static void kill_if_due(Child& child, Clock::time_point now) {
    if (child.killed_at || !child.kill_at || *child.kill_at > now) return;
    ::kill(-child.pid, SIGKILL);
    child.killed_at = now;
  }

  void run() {
    thread_id_.store(std::this_thread::get_id());
    while (!stopping_) turn();
  }

  void turn() {
    std::vector<pollfd> fds{{posted_.get(), POLLIN, 0}};
    std::vector<std::string> names, given_up;
    milliseconds timeout = kMaxPoll;
    {
      const std::lock_guard lock(mutex_);
      const auto now = Clock::now();
      for (auto& [name, child] : children_) {
        kill_if_due(child, now);
        const auto due = child.killed_at ? *child.killed_at + unkillable_after_ : child.kill_at;
        if (due) timeout = std::min(timeout, std::max(milliseconds(0), std::chrono::ceil<milliseconds>(*due - now)));
        if (child.killed_at && *due <= now) given_up.push_back(name);
        fds.push_back({child.pidfd.get(), POLLIN, 0});
        names.push_back(name);
      }
      for (const auto& [name, child] : unkillable_) {
        fds.push_back({child.pidfd.get(), POLLIN, 0});
        names.push_back(name);
      }
    }
    if (::poll(fds.data(), fds.size(), static_cast<int>(timeout.count())) < 0) {
      TROUPE_CHECK(errno == EINTR || errno == ENOMEM, "poll() of pidfds takes them");
      return;
    }
    for (std::size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents != 0) {
        report(names[i - 1]);
        std::erase(given_up, names[i - 1]);
      }
    }
    for (const std::string& name : given_up) give_up(name);
    if (fds[0].revents != 0) run_tasks();
  }

  void run_tasks() {
    posted_.clear();
    std::vector<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (auto& task : tasks) task();
  }

  /// SIGKILL did nothing. From here on nobody waits for it, but its end is still noticed.
  void give_up(const std::string& name) {
    ProcessExit exit{.name = name, .killed_by_us = true, .unkillable = true, .stderr_tail = {}};
    {
      const std::lock_guard lock(mutex_);
      auto node = children_.extract(name);
      const Child& child = node.mapped();
      exit.pid = child.pid;
      if (!child.log.empty()) exit.stderr_tail = read_tail(child.log, child.log_begin);
      unkillable_.insert(std::move(node));
      ++reporting_;
    }
    log::error("{} (pid {}) does not end after SIGKILL; a thread of it waits in the kernel", name, exit.pid);
    tell(exit);
  }

  /// Waits for an ended child, takes it out of the table at once and tells about it.
  void report(const std::string& name) {
    ProcessExit exit;
    exit.name = name;
    Child child;
    {
      const std::lock_guard lock(mutex_);
      auto node = children_.contains(name) ? children_.extract(name) : unkillable_.extract(name);
      child = std::move(node.mapped());
      ++reporting_;
    }
    exit.pid = child.pid;
    exit.killed_by_us = child.asked_to_end;
    ::kill(-child.pid, SIGKILL);  // what it left behind; before waitid, while the group's number is surely its own
    wait_for(child, exit);
    exit.out_of_memory = exit.signal == SIGKILL && !child.killed_at && count_oom_kills() > child.oom_kills;
    if (!child.log.empty()) exit.stderr_tail = read_tail(child.log, child.log_begin);
    tell(exit);
  }

  void tell(const ProcessExit& exit) {
    try {
      on_exit_(exit);
    } catch (const std::exception& e) {
      log::error("the report of {}'s end threw: {}", exit.name, e.what());
    }
    const std::lock_guard lock(mutex_);
    --reporting_;
    emptied_.notify_all();
  }

  static void wait_for(const Child& child, ProcessExit& exit) {
    siginfo_t info{};
    int rc = -1;
    do {
      rc = ::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) {
      // somebody else waited for it, or SIGCHLD is ignored: it is gone, but how is not known
      log::error("the exit status of {} (pid {}) was lost: {}", exit.name, child.pid, std::strerror(errno));
      exit.exit_code = -1;
    } else if (info.si_code == CLD_EXITED) {
      exit.exit_code = info.si_status;
    } else {
      exit.signal = info.si_status;
    }
  }

  const OnExit on_exit_;
  const milliseconds unkillable_after_;
  const EventFd posted_;
  mutable std::mutex mutex_;
  std::condition_variable emptied_;
  std::map<std::string, Child> children_;
  std::map<std::string, Child> unkillable_;
  std::vector<std::function<void()>> tasks_;
  int reporting_ = 0;  ///< ends that were noticed and are being told
  bool closing_ = false;
  bool stopping_ = false;  ///< table's thread only
  std::atomic<std::thread::id> thread_id_{};
  std::thread thread_;
};

ProcessTable::ProcessTable(OnExit on_exit, milliseconds unkillable_after)
    : impl_(std::make_unique<Impl>(std::move(on_exit), unkillable_after)) {}
ProcessTable::~ProcessTable() = default;
Result<pid_t> ProcessTable::start(const ProcessSpec& spec) { return impl_->start(spec); }
bool ProcessTable::kill(const std::string& name, milliseconds grace) { return impl_->kill(name, grace); }
void ProcessTable::kill_all(milliseconds grace) { impl_->kill_all(grace); }
std::size_t ProcessTable::num_running() const { return impl_->num_running(); }

}  // namespace troupe::workers
