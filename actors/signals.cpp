#include "actors/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <memory>

#include "base/file_descriptor.h"
#include "base/log.h"

namespace troupe::actors {

namespace {

sigset_t handled() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) sigaddset(&set, signal);
  struct sigaction hangup {};
  const bool is_under_nohup = ::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
  if (!is_under_nohup) sigaddset(&set, SIGHUP);
  return set;
}

/// Calls `on_signal` for each, with what the kernel says of it.
void watch(IoLoop& loop, std::function<void(const signalfd_siginfo& info)> on_signal) {
  const sigset_t set = handled();
  const auto fd = std::make_shared<FileDescriptor>(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd->is_open()) {
    log::error("signals cannot be watched: signalfd failed");
    return;
  }
  loop.watch(fd->get(), [fd, on_signal = std::move(on_signal)] {
    signalfd_siginfo info{};
    while (::read(fd->get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) on_signal(info);
    return true;
  });
}

}  // namespace

void block_signals() {
  const sigset_t set = handled();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

void watch_signals(IoLoop& loop, std::function<void(int signal)> on_signal) {
  watch(loop, [on_signal = std::move(on_signal)](const signalfd_siginfo& info) {
    on_signal(static_cast<int>(info.ssi_signo));
  });
}

void watch_signals_of(IoLoop& loop, pid_t master, std::function<void(int signal)> on_signal) {
  watch(loop, [master, on_signal = std::move(on_signal)](const signalfd_siginfo& info) {
    if (info.ssi_signo == SIGTERM && static_cast<pid_t>(info.ssi_pid) != master) {
      log::warn("SIGTERM of process {} is ignored: this process ends when its node says so", info.ssi_pid);
      return;
    }
    on_signal(static_cast<int>(info.ssi_signo));
  });
}

}  // namespace troupe::actors
