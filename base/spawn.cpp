#include "base/spawn.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ;

namespace troupe::base {

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& lines) {
  std::vector<char*> pointers;
  pointers.reserve(lines.size() + 1);
  for (std::string& line : lines) pointers.push_back(line.data());
  pointers.push_back(nullptr);
  return pointers;
}

Error spawn_error(int why) {
  const Errc code = why == ENOENT || why == EACCES                    ? Errc::not_found
                    : why == EAGAIN || why == ENOMEM || why == EMFILE ? Errc::resource_exhausted
                                                                      : Errc::unavailable;
  return {code, std::strerror(why)};
}

}  // namespace

SpawnSettings::SpawnSettings() {
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
}

SpawnSettings::~SpawnSettings() {
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
}

Result<SpawnedProcess> spawn_process(std::vector<std::string> words, std::vector<std::string> environment,
                                     SpawnSettings& settings) {
  posix_spawn_file_actions_addclosefrom_np(&settings.actions, 3);
  const auto argv = pointers_to(words), envp = pointers_to(environment);
  SpawnedProcess child;
  if (const int why =
          ::posix_spawnp(&child.pid, argv.front(), &settings.actions, &settings.attributes, argv.data(), envp.data());
      why != 0) {
    return spawn_error(why);
  }
  // the child cannot be gone from the process table before this process waits for it, so the pid is still its own
  child.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  if (child.pidfd.is_open()) return child;
  const int why = errno;
  ::kill(-child.pid, SIGKILL);
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED) != 0 && errno == EINTR) {
  }
  return spawn_error(why);
}

std::vector<std::string> child_environment(const std::map<std::string, std::string>& extra,
                                           const std::function<bool(std::string_view)>& is_inherited) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const std::string_view name = line.substr(0, line.find('='));
    if (name.size() < line.size() && is_inherited(name)) variables[std::string(name)] = line.substr(name.size() + 1);
  }
  for (const auto& [name, value] : extra) variables[name] = value;
  std::vector<std::string> lines;
  lines.reserve(variables.size());
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  return lines;
}

}  // namespace troupe::base
