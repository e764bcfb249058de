// What the process tests start. The first thing it does is what every host process of Troupe does first.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <string>

#include "workers/node/parent_death.h"
#include "workers/node/process.h"

using namespace troupe::workers;

namespace {

/// Tells the test this process's number through a named pipe.
bool announce(const char* fifo) {
  const int fd = ::open(fifo, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const std::string line = std::to_string(::getpid()) + "\n";
  const bool told = ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  ::close(fd);
  return told;
}

/// Ends by itself after a minute, in case a test that failed left it behind.
[[noreturn]] void linger() {
  ::alarm(60);
  for (;;) ::pause();
}

/// Starts a grandchild through a table of its own and lives on until it is killed.
int be_middle(const char* program, const char* fifo) {
  troupe::workers::ProcessTable table([](const troupe::workers::ProcessExit&) {});
  const auto started = table.start({.name = "grandchild", .argv = {program, "announce", fifo}});
  if (!started) return 3;
  linger();
}

/// Takes memory until the kernel ends it, 2 GiB at most.
int gobble() {
  constexpr std::size_t kStep = std::size_t{16} << 20;
  for (int i = 0; i < 128; ++i) {
    auto* memory = static_cast<volatile char*>(std::malloc(kStep));  // never freed, on purpose
    for (std::size_t at = 0; memory != nullptr && at < kStep; at += 4096) memory[at] = 1;
  }
  return 0;
}

/// Moves itself into the control group whose cgroup.procs is named and starts a child there that takes too much memory.
/// 0: the child's end was reported as one for lack of memory.
int be_node_in(const char* program, const char* procs) {
  std::ofstream(procs) << ::getpid() << std::endl;
  std::promise<ProcessExit> ended;
  ProcessTable table([&ended](const ProcessExit& exit) { ended.set_value(exit); });
  if (!table.start({.name = "gobbler", .argv = {program, "gobble"}})) return 3;
  auto end = ended.get_future();
  if (end.wait_for(std::chrono::seconds(40)) != std::future_status::ready) return 5;
  const ProcessExit exit = end.get();
  std::fprintf(stderr, "code %d signal %d oom %d\n", exit.exit_code, exit.signal, exit.out_of_memory);
  return exit.out_of_memory ? 0 : 1;
}

int print_environment() {
  for (char** entry = environ; *entry != nullptr; ++entry) std::fprintf(stderr, "%s\n", *entry);
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  struct sigaction action {};
  sigaction(SIGPIPE, nullptr, &action);
  std::fprintf(stderr, "usr1 blocked: %d\npipe ignored: %d\nown group: %d\n", sigismember(&mask, SIGUSR1),
               action.sa_handler == SIG_IGN, ::getpgrp() == ::getpid());
  int open_files = 0;
  for (int fd = 3; fd < 256; ++fd) open_files += ::fcntl(fd, F_GETFD) >= 0;
  std::fprintf(stderr, "files above 2: %d\n", open_files);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  troupe::workers::die_with_parent();
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "announce" && argc > 2) return announce(argv[2]) ? (linger(), 0) : 4;
  if (what == "middle" && argc > 2) return be_middle(argv[0], argv[2]);
  if (what == "gobble") return gobble();
  if (what == "node-in" && argc > 2) return be_node_in(argv[0], argv[2]);
  if (what == "environment") return print_environment();
  return 2;
}
