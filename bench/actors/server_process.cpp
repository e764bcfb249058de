#include "bench/actors/server_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zmq.h>

#include <caf/config.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "base/file_descriptor.h"
#include "bench/support/failures.h"

namespace troupe::bench {

void print_exit(const ProcessExit& exit) {
  if (exit.killed_by_us) return;
  fmt::print(stderr, "{} ended with code {}, signal {}: {}\n", exit.name, exit.exit_code, exit.signal,
             exit.stderr_tail);
}

pid_t start_server(ProcessTable& processes, const ScratchFolder& folder, const std::string& kind,
                   const std::vector<std::string>& options) {
  ProcessSpec spec{.name = kind, .argv = {std::filesystem::read_symlink("/proc/self/exe").string(), "--serve", kind}};
  spec.argv.insert(spec.argv.end(), options.begin(), options.end());
  spec.stderr_log = folder / (kind + ".log");
  return must(processes.start(spec));
}

void wait_for_file(const std::string& file, pid_t server) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const FileDescriptor folder(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const FileDescriptor end(static_cast<int>(::syscall(SYS_pidfd_open, server, 0)));  // none: it has ended
  if (::inotify_add_watch(folder.get(), std::filesystem::path(file).parent_path().c_str(), IN_MOVED_TO) < 0)
    throw std::runtime_error(file + ": its folder cannot be watched");
  while (!std::filesystem::exists(file)) {
    pollfd items[] = {{folder.get(), POLLIN, 0}, {end.get(), POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) throw std::runtime_error(file + " has not come within 30 s");
    ::poll(items, 2, static_cast<int>(left.count()));
    if (!end.is_open() || items[1].revents != 0) throw std::runtime_error("the server ended before it wrote " + file);
    char events[4096];
    while (::read(folder.get(), events, sizeof events) > 0) {
    }
  }
}

std::string library_versions() {
  int major = 0, minor = 0, patch = 0;
  zmq_version(&major, &minor, &patch);
  return fmt::format("CAF {}.{}.{}, ZeroMQ {}.{}.{}", CAF_MAJOR_VERSION, CAF_MINOR_VERSION, CAF_PATCH_VERSION, major,
                     minor, patch);
}

}  // namespace troupe::bench
