#include "workers/node/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/file_descriptor.h"
#include "workers/node/syscall_filter.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

// linux/landlock.h of newer kernels than the headers at hand (https://docs.kernel.org/userspace-api/landlock.html)
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr std::uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadDir = 1 << 3;
constexpr std::uint64_t kRemoveDir = 1 << 4, kRemoveFile = 1 << 5, kMakeDir = 1 << 7, kMakeReg = 1 << 8;
constexpr std::uint64_t kMakeSym = 1 << 12, kRefer = 1 << 13, kTruncate = 1 << 14, kIoctlDev = 1 << 15;
constexpr std::uint64_t kAllOfVersion1 = (1 << 13) - 1;
constexpr std::uint64_t kBindTcp = 1 << 0, kConnectTcp = 1 << 1;
constexpr std::uint64_t kScopeAbstractSockets = 1 << 0, kScopeSignals = 1 << 1;
constexpr std::uint64_t kRead = kReadFile | kReadDir;
constexpr std::uint64_t kWrite =
    kRead | kWriteFile | kRemoveDir | kRemoveFile | kMakeDir | kMakeReg | kMakeSym | kRefer | kTruncate;
constexpr std::uint64_t kOfAFile = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev;

struct RulesetAttributes {
  std::uint64_t files = 0, network = 0, scoped = 0;
};
struct [[gnu::packed]] PathRule {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
};

/// What every program of this system reads. Secrets in /etc stay protected by their mode.
constexpr std::array kSystemFolders = {"/usr",  "/lib", "/lib64", "/lib32",      "/bin",         "/sbin",    "/etc",
                                       "/proc", "/sys", "/opt",   "/dev/random", "/dev/urandom", "/dev/zero"};

Error refused(const char* step) {
  return {Errc::internal, fmt::format("the process cannot be confined: {}: {}", step, std::strerror(errno))};
}

/// Of Landlock's version `abi`.
RulesetAttributes handled(int abi, SandboxSockets sockets) {
  RulesetAttributes all{.files = kAllOfVersion1, .network = 0, .scoped = 0};
  if (abi >= 2) all.files |= kRefer;
  if (abi >= 3) all.files |= kTruncate;
  if (abi >= 5) all.files |= kIoctlDev;
  if (abi >= 4) all.network = sockets == SandboxSockets::network ? kBindTcp : kBindTcp | kConnectTcp;
  if (abi >= 6) all.scoped = kScopeAbstractSockets | kScopeSignals;
  return all;
}

/// Folders of the files that are mapped now: the program, its libraries wherever they were found.
std::set<std::string> mapped_folders() {
  std::set<std::string> folders;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto slash = line.find('/');
    if (slash != std::string::npos) folders.insert(fs::path(line.substr(slash)).parent_path());
  }
  folders.erase("/");  // a deleted file, or /memfd:...
  return folders;
}

Result<void> allow(int ruleset, std::uint64_t handled_rights, const std::string& path, std::uint64_t rights) {
  const FileDescriptor place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat info {};
  if (!place.is_open() || ::fstat(place.get(), &info) != 0) return {};  // absent: nothing to allow
  PathRule rule{.allowed = rights & handled_rights, .parent = place.get()};
  if (!S_ISDIR(info.st_mode)) rule.allowed &= kOfAFile;
  constexpr int kPathBeneath = 1;
  if (::syscall(kAddRule, ruleset, kPathBeneath, &rule, 0) != 0) return refused(path.c_str());
  return {};
}

Result<void> confine_files(const SandboxRules& rules, int abi) {
  const RulesetAttributes attributes = handled(abi, rules.sockets);
  const FileDescriptor ruleset(static_cast<int>(::syscall(kCreateRuleset, &attributes, sizeof attributes, 0)));
  if (!ruleset.is_open()) return refused("landlock_create_ruleset");
  const int fd = ruleset.get();
  for (const char* folder : kSystemFolders) TROUPE_TRY(allow(fd, attributes.files, folder, kRead));
  for (const std::string& folder : mapped_folders()) TROUPE_TRY(allow(fd, attributes.files, folder, kRead));
  TROUPE_TRY(allow(fd, attributes.files, "/dev/null", kRead | kWriteFile));
  for (const std::string& path : rules.readable) TROUPE_TRY(allow(fd, attributes.files, path, kRead));
  for (const std::string& path : rules.writable) TROUPE_TRY(allow(fd, attributes.files, path, kWrite));
  if (::syscall(kRestrictSelf, fd, 0) != 0) return refused("landlock_restrict_self");
  return {};
}

Result<void> check_single_thread() {
  std::error_code error;
  const fs::directory_iterator tasks("/proc/self/task", error);
  const auto threads = error ? 1 : std::distance(fs::begin(tasks), fs::end(tasks));
  if (threads == 1) return {};
  return Error{Errc::failed_precondition,
               fmt::format("a process is confined before it starts threads, and this one has {}", threads)};
}

}  // namespace

SandboxSupport sandbox_support() {
  SandboxSupport support;
  constexpr int kAskVersion = 1;
  const long abi = ::syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  support.landlock = abi > 0 ? static_cast<int>(abi) : 0;
  support.seccomp = can_filter_syscalls();
  return support;
}

Result<void> hide_memory() {
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) return refused("setrlimit(RLIMIT_CORE)");
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return refused("PR_SET_DUMPABLE");
  return {};
}

Result<SandboxSupport> enter_sandbox(const SandboxRules& rules) {
  TROUPE_TRY(check_single_thread());
  const SandboxSupport support = sandbox_support();
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return refused("PR_SET_NO_NEW_PRIVS");
  if (support.landlock > 0) TROUPE_TRY(confine_files(rules, support.landlock));
  // After Landlock, which opens what it allows; before the filter, which takes prctl's other uses away.
  TROUPE_TRY(hide_memory());
  if (support.seccomp) {
    if (const int why = filter_syscalls(rules.sockets); why != 0) {
      errno = why;
      return refused("seccomp");
    }
  }
  return support;
}

std::string describe(const SandboxSupport& support) {
  return fmt::format("seccomp {}, Landlock {}", support.seccomp ? "on" : "not offered by this kernel",
                     support.landlock > 0 ? fmt::format("version {}", support.landlock) : "not offered by this kernel");
}

std::vector<std::string> linked_folders(const std::string& root) {
  // Cameras, chunks and years of recordings come long before so many entries.
  constexpr int kMostEntries = 200'000;
  std::set<std::string> found;
  std::error_code error;
  const fs::path top = fs::canonical(root, error);
  if (error) return {};
  int entries = 0;
  fs::recursive_directory_iterator it(top, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && it != end && entries < kMostEntries; it.increment(error), ++entries) {
    if (!it->is_symlink(error)) continue;
    const fs::path target = fs::canonical(it->path(), error);
    if (error) {
      error.clear();  // a link that leads nowhere is the reader's to report
      continue;
    }
    const bool is_inside = target.native().starts_with(top.native() + "/");
    if (!is_inside) found.insert(fs::is_directory(target, error) ? target : target.parent_path());
  }
  return {found.begin(), found.end()};
}

}  // namespace troupe::workers
