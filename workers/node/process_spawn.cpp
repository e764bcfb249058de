#include "workers/node/process_spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/utf8.h"
#include "workers/node/cgroup.h"
#include "workers/node/parent_death.h"

extern char** environ;

namespace troupe::workers {

namespace {

constexpr std::int64_t kTailBytes = 4096;

/// Names that a child inherits; one that ends in '*' is a prefix.
constexpr std::string_view kInherited[] = {"PATH",
                                           "HOME",
                                           "USER",
                                           "LANG",
                                           "LC_*",
                                           "TZ",
                                           "TMPDIR",
                                           "XDG_RUNTIME_DIR",
                                           "XDG_CACHE_HOME",
                                           "HF_HOME",
                                           "HF_HUB_CACHE",
                                           "HF_LEROBOT_HOME",
                                           "HUGGINGFACE_HUB_CACHE",
                                           "LD_LIBRARY_PATH",
                                           "TROUPE_*",
                                           "PYTHONPATH",
                                           "VIRTUAL_ENV",
                                           "DISPLAY",
                                           "XAUTHORITY",
                                           "MUJOCO_*",
                                           "PYOPENGL_PLATFORM",
                                           "SDL_VIDEODRIVER",
                                           "CUDA_*",
                                           "NVIDIA_*",
                                           "NCCL_*",
                                           "GLOO_*",
                                           "OMP_*",
                                           "MKL_*",
                                           "OPENBLAS_*",
                                           "MALLOC_*",
                                           "ASAN_OPTIONS",
                                           "UBSAN_OPTIONS",
                                           "LSAN_OPTIONS",
                                           "TSAN_OPTIONS"};

bool is_inherited(std::string_view name) {
  return std::any_of(std::begin(kInherited), std::end(kInherited), [&](std::string_view allowed) {
    return allowed.ends_with('*') ? name.starts_with(allowed.substr(0, allowed.size() - 1)) : name == allowed;
  });
}

/// The C structs of posix_spawn.
struct SpawnSettings {
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
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

void apply(SpawnSettings& settings, const std::string& log) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setsigdefault(&settings.attributes, &all);
  posix_spawnattr_setpgroup(&settings.attributes, 0);
  posix_spawnattr_setflags(&settings.attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_addopen(&settings.actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&settings.actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&settings.actions, 2, 1);
  posix_spawn_file_actions_addclosefrom_np(&settings.actions, 3);
}

std::vector<char*> pointers_to(std::vector<std::string>& lines) {
  std::vector<char*> pointers;
  pointers.reserve(lines.size() + 1);
  for (auto& line : lines) pointers.push_back(line.data());
  pointers.push_back(nullptr);
  return pointers;
}

Error spawn_error(const ProcessSpec& spec, int why) {
  const Errc code = why == ENOENT || why == EACCES                    ? Errc::not_found
                    : why == EAGAIN || why == ENOMEM || why == EMFILE ? Errc::resource_exhausted
                                                                      : Errc::unavailable;
  return {code, fmt::format("cannot start {} ({}): {}", spec.name, spec.argv.front(), std::strerror(why))};
}

}  // namespace

std::vector<std::string> child_environment(const ProcessSpec& spec) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const std::string_view name = line.substr(0, line.find('='));
    if (name.size() < line.size() && is_inherited(name)) variables[std::string(name)] = line.substr(name.size() + 1);
  }
  for (const auto& [name, value] : spec.env) variables[name] = value;
  variables[kParentPidVariable] = std::to_string(::getpid());
  std::vector<std::string> lines;
  lines.reserve(variables.size());
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  return lines;
}

Result<SpawnedChild> spawn_child(const ProcessSpec& spec) {
  const std::string log = spec.stderr_log.empty() ? "/dev/null" : spec.stderr_log;
  SpawnedChild child;
  {
    // opened here once, so that a bad path is an error of its own and not exit code 127
    std::error_code ignored;  // open() says it better
    std::filesystem::create_directories(std::filesystem::path(log).parent_path(), ignored);
    const FileDescriptor file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    struct stat info {};
    if (!file.is_open() || ::fstat(file.get(), &info) != 0) {
      return Error{Errc::unavailable,
                   fmt::format("cannot open the log {} of {}: {}", log, spec.name, std::strerror(errno))};
    }
    child.log_begin = info.st_size;
  }
  SpawnSettings settings;
  apply(settings, log);
  std::vector<std::string> arguments = spec.argv, environment = child_environment(spec);
  const auto argv = pointers_to(arguments), envp = pointers_to(environment);
  if (const int why =
          ::posix_spawn(&child.pid, argv.front(), &settings.actions, &settings.attributes, argv.data(), envp.data());
      why != 0) {
    return spawn_error(spec, why);
  }
  // the child cannot be gone from the process table before we wait for it, so the pid is still its own
  child.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  if (!child.pidfd.is_open()) {
    const int why = errno;
    ::kill(-child.pid, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED);
    return spawn_error(spec, why);
  }
  return child;
}

std::string read_tail(const std::string& file, std::int64_t begin) {
  const FileDescriptor log(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!log.is_open() || ::fstat(log.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  // a rotated or truncated file is shorter than it was
  const std::int64_t size = info.st_size, from = std::max(size < begin ? 0 : begin, size - kTailBytes);
  std::string text(static_cast<std::size_t>(std::max<std::int64_t>(0, size - from)), '\0');
  const ssize_t got = ::pread(log.get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return to_utf8(text);
}

std::uint64_t count_oom_kills() { return read_oom_kills("/sys/fs/cgroup", own_cgroups()); }

}  // namespace troupe::workers
