#include "tests/support/program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "tests/support/program_words.h"
#include "tests/support/visible.h"

namespace troupe::testing {

namespace {

void check(int code, const char* what) {
  if (code != 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(code));
}

}  // namespace

std::string ProgramEnd::text() const {
  std::string ending = timed_out ? "ran past its deadline" : "exit code " + std::to_string(exit_code);
  if (signal != 0) ending += ", signal " + std::to_string(signal);
  return ending + "\n--- stdout\n" + out + "--- stderr\n" + err;
}

void expect_end(const ProgramEnd& end, int code, const std::vector<std::string>& out,
                const std::vector<std::string>& err) {
  EXPECT_EQ(end.exit_code, code) << end.text();
  for (const std::string& part : out)
    EXPECT_NE(end.out.find(part), std::string::npos) << "stdout lacks: " << part << "\n" << end.text();
  for (const std::string& part : err)
    EXPECT_NE(end.err.find(part), std::string::npos) << "stderr lacks: " << part << "\n" << end.text();
}

Program::Program(const std::vector<std::string>& arguments, ProgramOptions options)
    : until_(std::chrono::steady_clock::now() + options.deadline) {
  const char* binary = options.program.empty() ? std::getenv("TROUPE_BINARY") : options.program.c_str();
  if (binary == nullptr) throw std::runtime_error("TROUPE_BINARY is not set; run this test with ctest");
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) check(errno, "pipe2");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  if (!options.cwd.empty()) posix_spawn_file_actions_addchdir_np(&actions, options.cwd.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words{binary};
  // A test says all that its job says.
  std::vector<std::string> environment = variables_with(options.env, {"TROUPE_SET", "TROUPE_FAULT"});
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto argv = pointers_to(words), envp = pointers_to(environment);
  const int spawned = ::posix_spawn(&pid_, binary, &actions, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
  check(spawned, binary);
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd_ < 0) check(errno, "pidfd_open");
  for (const int fd : {out_, err_}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
}

Program::~Program() {
  if (!reaped_) {
    ::kill(-pid_, SIGKILL);
    reap();
  }
  for (const int fd : {pidfd_, out_, err_}) ::close(fd);
}

bool Program::drain(int fd, std::string& text) const {
  char buffer[4096];
  bool any = false;
  while (true) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n > 0) {
      text.append(buffer, static_cast<std::size_t>(n));
      any = true;
    } else if (n == 0 || errno != EINTR) {
      return any;
    }
  }
}

void Program::reap() {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0 && errno == EINTR) continue;
  reaped_ = true;
  if (info.si_code == CLD_EXITED) {
    end_.exit_code = info.si_status;
  } else {
    end_.signal = info.si_status;
  }
}

Program::Event Program::next_event() {
  // A reader that a pipe's end has left keeps polling as readable; the pidfd then says that the program has ended.
  pollfd fds[] = {{pidfd_, POLLIN, 0}, {out_, POLLIN, 0}, {err_, POLLIN, 0}};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now());
  if (left.count() <= 0) return Event::deadline;
  const int ready = ::poll(fds, 3, static_cast<int>(left.count()));
  if (ready == 0) return Event::deadline;
  drain(out_, end_.out);
  drain(err_, end_.err);
  return (fds[0].revents & POLLIN) != 0 ? Event::ended : Event::output;
}

bool Program::wait_for_text(const std::string& text) {
  const auto found = [&] {
    return end_.out.find(text) != std::string::npos || end_.err.find(text) != std::string::npos;
  };
  while (!found()) {
    if (reaped_ || next_event() != Event::output) return found();
  }
  return true;
}

void Program::send_signal(int signal) const {
  if (!reaped_) ::kill(pid_, signal);
}

ProgramEnd Program::wait() {
  if (reaped_) return end_;
  Event event = Event::output;
  while (event == Event::output) event = next_event();
  if (event == Event::deadline) {
    end_.timed_out = true;
    ::kill(-pid_, SIGKILL);
  }
  reap();
  drain(out_, end_.out);
  drain(err_, end_.err);
  return end_;
}

ProgramEnd run_program(const std::vector<std::string>& arguments, ProgramOptions options) {
  return Program(arguments, std::move(options)).wait();
}

}  // namespace troupe::testing
