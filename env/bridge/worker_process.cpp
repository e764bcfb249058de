#include "env/bridge/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/utf8.h"

extern char** environ;

namespace troupe::env {

namespace {

constexpr std::size_t kTailBytes = 65'536, kMostOutput = 16 << 20;
constexpr int kLastWaitMs = 5'000;  // for a process that was killed: one that hangs in the kernel holds up nobody
constexpr int kSaid = 2;            // python/troupe_env/__main__.py: the last line is a sentence for the user

/// The C structs of posix_spawn.
struct SpawnSettings {
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

std::vector<std::string> environment_of(const WorkerCommand& command) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) variables[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  for (const auto& [name, value] : command.variables) variables[name] = value;
  variables["TROUPE_PARENT_PID"] = std::to_string(::getpid());
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> pointers_to(std::vector<std::string>& lines) {
  std::vector<char*> pointers;
  for (std::string& line : lines) pointers.push_back(line.data());
  pointers.push_back(nullptr);
  return pointers;
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
  posix_spawn_file_actions_addopen(&settings.actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&settings.actions, err.write.get(), 2);
  posix_spawn_file_actions_adddup2(&settings.actions, keeps_stdout ? out.write.get() : 2, 1);
  posix_spawn_file_actions_addclosefrom_np(&settings.actions, 3);
  std::vector<std::string> words = command.words, environment = environment_of(command);
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto argv = pointers_to(words), envp = pointers_to(environment);
  if (const int why = ::posix_spawnp(&process.pid_, argv.front(), &settings.actions, &settings.attributes, argv.data(),
                                     envp.data());
      why != 0) {
    const bool missing = why == ENOENT || why == EACCES;
    return Error{missing ? Errc::not_found : Errc::unavailable,
                 fmt::format("{} cannot be started: {}{}", words.front(), std::strerror(why),
                             missing ? "; env.bridge.python names the interpreter" : "")};
  }
  process.process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, process.pid_, 0)));
  if (!process.process_.is_open())
    return Error{Errc::resource_exhausted,
                 fmt::format("a worker cannot be watched, and is ended: {}", std::strerror(errno))};
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
  // without a descriptor of its own its end cannot be waited for with a limit
  pollfd item{process_.get(), POLLIN, 0};
  if (process_.is_open() && ::poll(&item, 1, kLastWaitMs) == 0) {
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
  kill();  // what it left behind: until it is waited for, its number is nobody else's
  wait_for(0);
  is_over_ = true;
  take_output();
  if (info.si_code != CLD_EXITED)
    return End{fmt::format("{} was ended by signal {}: {}", program_, info.si_status, last_line())};
  if (info.si_status == 0) return End{};
  if (info.si_status == kSaid) return End{last_line(), true};
  return End{fmt::format("{} ended with code {}: {}", program_, info.si_status, last_line())};
}

std::string WorkerProcess::last_line() const { return last_line_of(output_.err); }

}  // namespace troupe::env
