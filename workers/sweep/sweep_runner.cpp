#include "workers/sweep/sweep_runner.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/event_fd.h"
#include "workers/node/process.h"

namespace troupe::workers {

namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr int kLookAroundMs = 1'000;
constexpr std::size_t kTailLines = 6;

/// All of this process's variables: a job may read any of them, such as HF_HOME or TROUPE_SET.
std::map<std::string, std::string> whole_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) variables.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return variables;
}

std::string last_lines(const std::string& text) {
  std::size_t begin = text.size();
  while (begin > 0 && text[begin - 1] == '\n') --begin;
  for (std::size_t lines = 0; begin > 0 && lines < kTailLines; ++lines) {
    const std::size_t before = text.rfind('\n', begin - 1);
    if (before == std::string::npos) return text;
    begin = before;
  }
  return text.substr(begin == 0 ? 0 : begin + 1);
}

/// The runs that are under way, on the calling thread; ends come from the process table's.
class Sweep {
 public:
  Sweep(const std::vector<SweptRun>& runs, const SweepOptions& options,
        const std::function<void(const SweepEnd&)>& on_end)
      : runs_(runs), options_(options), on_end_(on_end), environment_(whole_environment()) {}

  bool run(const std::atomic<bool>& interrupted) {
    while (ended_ < runs_.size() && !interrupted) {
      while (begun_ < runs_.size() && under_way_.size() < static_cast<std::size_t>(options_.at_once)) begin(begun_++);
      if (under_way_.empty()) continue;  // none of them could be started
      pollfd told{wake_.get(), POLLIN, 0};
      ::poll(&told, 1, kLookAroundMs);  // a signal ends it early
      wake_.clear();
      take_ends();
    }
    if (ended_ == runs_.size()) return true;
    table_.kill_all(options_.grace);
    return false;
  }

 private:
  struct UnderWay {
    std::size_t index = 0;
    bool is_evaluating = false;
    SteadyClock::time_point since = {};
  };

  std::string log_of(const SweptRun& run) const { return options_.logs + "/" + run.name + ".log"; }

  void begin(std::size_t index) {
    const SweptRun& run = runs_[index];
    std::vector<std::string> argv{options_.program, "run", options_.job, "--resume", "auto"};
    argv.insert(argv.end(), run.overrides.begin(), run.overrides.end());
    under_way_[run.name] = {.index = index, .since = SteadyClock::now()};
    start(run, std::move(argv));
  }

  void start(const SweptRun& run, std::vector<std::string> argv) {
    const auto started =
        table_.start({.name = run.name, .argv = std::move(argv), .env = environment_, .stderr_log = log_of(run)});
    if (!started) end(run.name, started.error().message(), "");
  }

  void take_ends() {
    std::vector<ProcessExit> exits;
    {
      const std::lock_guard lock(mutex_);
      exits.swap(exits_);
    }
    for (const ProcessExit& exit : exits) {
      UnderWay& run = under_way_.at(exit.name);
      if (exit.exit_code != 0 || exit.signal != 0) {
        end(exit.name,
            exit.signal != 0 ? fmt::format("signal {}", exit.signal) : fmt::format("exit code {}", exit.exit_code),
            last_lines(exit.stderr_tail));
      } else if (options_.episodes > 0 && !run.is_evaluating) {
        run.is_evaluating = true;
        start(runs_[run.index], {options_.program, "eval", exit.name, "--episodes", std::to_string(options_.episodes),
                                 "--run-root", options_.run_root});
      } else {
        end(exit.name, "", "");
      }
    }
  }

  void end(const std::string& name, std::string how, std::string tail) {
    const double seconds = std::chrono::duration<double>(SteadyClock::now() - under_way_.at(name).since).count();
    under_way_.erase(name);
    ++ended_;
    const bool is_done = how.empty();
    on_end_({.name = name, .is_done = is_done, .how = std::move(how), .tail = std::move(tail), .seconds = seconds});
  }

  const std::vector<SweptRun>& runs_;
  const SweepOptions& options_;
  const std::function<void(const SweepEnd&)>& on_end_;
  const std::map<std::string, std::string> environment_;
  std::map<std::string, UnderWay> under_way_;
  std::size_t begun_ = 0, ended_ = 0;
  const EventFd wake_;
  std::mutex mutex_;
  std::vector<ProcessExit> exits_;  // guarded by mutex_
  /// Last: its thread uses the members above.
  ProcessTable table_{[this](const ProcessExit& exit) {
    const std::lock_guard lock(mutex_);
    exits_.push_back(exit);
    wake_.raise();
  }};
};

}  // namespace

bool run_sweep(const std::vector<SweptRun>& runs, const SweepOptions& options, const std::atomic<bool>& interrupted,
               const std::function<void(const SweepEnd&)>& on_end) {
  return Sweep(runs, options, on_end).run(interrupted);
}

}  // namespace troupe::workers
