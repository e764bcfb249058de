#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "base/result.h"

namespace troupe::workers {

/// Which sockets a confined process may still open. It never listens.
enum class SandboxSockets : std::uint8_t {
  none,
  /// AF_UNIX: the other processes of its node.
  local,
  /// And tcp: feeds on other machines, found again when a connection breaks.
  network
};
constexpr auto enum_names(SandboxSockets) { return std::array{"none", "local", "network"}; }

/// What a process that reads strangers' bytes needs (docs/processes.md#confined-processes). Paths that do not exist
/// are passed over.
struct SandboxRules {
  /// Files and folders with all below them, beside the system's own (/usr, /lib, /etc, /proc, /sys, ...), the program
  /// and the libraries that it has loaded.
  std::vector<std::string> readable = {};
  /// Folders with all below them: also readable.
  std::vector<std::string> writable = {};
  SandboxSockets sockets = SandboxSockets::none;
};

/// What the kernel enforces.
struct SandboxSupport {
  bool seccomp = false;
  /// 0: no Landlock. From 1 files, from 4 tcp, from 6 signals and abstract sockets are confined.
  int landlock = 0;
};
SandboxSupport sandbox_support();

/// Confines this process for good, with all that it starts: no new privileges, no core dumps, not dumpable; seccomp
/// takes away other programs and processes, debugging, namespaces, mounts, modules, clocks, key rings, BPF, io_uring,
/// signals to others, listening, and sockets beyond rules.sockets; Landlock, where the kernel has it, every file beyond
/// the rules. Call while the process has one thread. Returns what is in force. Errors: failed_precondition (other
/// threads run), internal (the kernel refused a step that it offers).
Result<SandboxSupport> enter_sandbox(const SandboxRules& rules);

/// For a process that holds secret keys: no core dumps, also of what it starts, and no other process of the user may
/// look into its memory. Errors: internal.
Result<void> hide_memory();

/// In words, for logs and `troupe doctor`.
std::string describe(const SandboxSupport& support);

/// The folders outside `root` that links below it lead to, so that a confined process can follow them.
std::vector<std::string> linked_folders(const std::string& root);

}  // namespace troupe::workers
