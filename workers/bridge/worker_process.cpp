#include "workers/bridge/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/spawn.h"
#include "base/utf8.h"
#include "workers/node/parent_death.h"

namespace troupe::workers {

namespace {

constexpr std::size_t kTailBytes = 65'536, kMostOutput = 16 << 20;
constexpr int kLastWaitMs = 5'000;  // for a killed process; one that hangs in the kernel is left behind
constexpr int kUserErrorExit = 2;   // python/troupe_env/__main__.py: the last line is a sentence for the user

std::vector<std::string> environment_of(const WorkerCommand& command) {
  auto variables = command.variables;
  variables[kParentPidVariable] = std::to_string(::getpid());
  return child_environment(variables, [](std::string_view) { return true; });
}

struct Pipe {
  base::FileDescriptor read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Error{Errc::resource_exhausted, fmt::format("no pipe for a worker: {}", std::strerror(errno))};
  Pipe pipe{base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return pipe;
}

/// Appends what can be read now; the stream's end closes it.
void take(base::FileDescriptor& from, std::string& to, std::size_t most) {
  char buffer[16'384];
  while (from.is_open()) {
    const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return from.reset();
    to.append(buffer, static_cast<std::size_t>(got));
    if (to.size() > 2 * most) to.erase(0, to.size() - most);
  }
}

std::string last_line_of(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return "it said nothing";
  const std::size_t begin = text.rfind('\n', end);
  return base::to_utf8(text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin + 1) + 1));
}

}  // namespace

Result<WorkerProcess> WorkerProcess::start(const WorkerCommand& command, const std::vector<std::string>& arguments,
                                           bool keeps_stdout) {
  WorkerProcess process;
  process.program_ = command.words.front();
  TROUPE_ASSIGN(Pipe out, make_pipe());
  TROUPE_ASSIGN(Pipe err, make_pipe());
  SpawnSettings settings;
  posix_spawn_file_actions_adddup2(&settings.actions, err.write.get(), 2);
  posix_spawn_file_actions_adddup2(&settings.actions, keeps_stdout ? out.write.get() : 2, 1);
  std::vector<std::string> words = command.words;
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto spawned = spawn_process(std::move(words), environment_of(command), settings);
  if (!spawned) {
    const bool is_missing = spawned.error().code() == Errc::not_found;
    return Error{spawned.error().code(),
                 fmt::format("{} cannot be started: {}{}", process.program_, spawned.error().message(),
                             is_missing ? "; env.bridge.python names the interpreter" : "")};
  }
  process.pid_ = spawned->pid;
  process.process_ = std::move(spawned->pidfd);
  if (keeps_stdout) process.out_ = std::move(out.read);
  process.err_ = std::move(err.read);
  process.passes_on_ = !keeps_stdout;
  return process;
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : program_(std::move(other.program_)),
      pid_(std::exchange(other.pid_, 0)),
      is_over_(other.is_over_),
      passes_on_(other.passes_on_),
      process_(std::move(other.process_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      output_(std::move(other.output_)) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ == 0 || is_over_) return;
  kill();
  pollfd item{process_.get(), POLLIN, 0};
  if (::poll(&item, 1, kLastWaitMs) == 0) {
    log::error("bridge: process {} of {} hangs in the kernel; it was killed and is left behind", pid_, program_);
    return;
  }
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0 && errno == EINTR) {
  }
}

void WorkerProcess::kill() {
  if (is_over_) return;
  // its own children too; it alone where it has left its group
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
}

void WorkerProcess::take_output() {
  take(out_, output_.out, kMostOutput);
  std::string said;
  take(err_, said, kTailBytes);
  if (passes_on_ && !said.empty()) std::ignore = ::write(STDERR_FILENO, said.data(), said.size());
  output_.err += said;
  if (output_.err.size() > 2 * kTailBytes) output_.err.erase(0, output_.err.size() - kTailBytes);
}

std::optional<WorkerProcess::End> WorkerProcess::poll_end() {
  siginfo_t info{};
  const auto wait_for = [&](int flags) {
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | flags) == 0 && info.si_pid != 0;
  };
  if (is_over_ || !wait_for(WNOWAIT)) return std::nullopt;
  kill();  // kill the rest of its process group; the process id is not reused before waitid() reaps it
  wait_for(0);
  is_over_ = true;
  take_output();
  if (info.si_code != CLD_EXITED)
    return End{fmt::format("{} was ended by signal {}: {}", program_, info.si_status, last_line())};
  if (info.si_status == 0) return End{};
  if (info.si_status == kUserErrorExit) return End{last_line(), true};
  return End{fmt::format("{} ended with code {}: {}", program_, info.si_status, last_line())};
}

std::string WorkerProcess::last_line() const { return last_line_of(output_.err); }

}  // namespace troupe::workers
