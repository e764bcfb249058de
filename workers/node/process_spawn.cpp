#include "workers/node/process_spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/spawn.h"
#include "base/utf8.h"
#include "workers/node/cgroup.h"
#include "workers/node/parent_death.h"

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

}  // namespace

std::vector<std::string> environment_of(const ProcessSpec& spec) {
  auto variables = spec.env;
  variables[kParentPidVariable] = std::to_string(::getpid());
  return child_environment(variables, is_inherited);
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
  posix_spawn_file_actions_addopen(&settings.actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&settings.actions, 2, 1);
  auto spawned = spawn_process(spec.argv, environment_of(spec), settings);
  if (!spawned) return spawned.error().with(fmt::format("cannot start {} ({})", spec.name, spec.argv.front()));
  child.pid = spawned->pid;
  child.pidfd = std::move(spawned->pidfd);
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
