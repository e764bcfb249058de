#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "tests/support/job_process.h"

namespace troupe::testing {

/// What a space sees of the machine.
struct SpaceOptions {
  std::string name;                      ///< its host name
  std::chrono::seconds clock_offset{0};  ///< its monotonic clock is this far ahead of ours
  std::string boot_id{};                 ///< what its kernel says; empty: ours
  std::vector<std::string> hidden{};     ///< folders that are empty there, as on a machine of its own
  std::string preload{};  ///< a library that the loader puts in front of every program there; empty: none
};

/// How to start a program in a space.
struct StartOptions {
  std::map<std::string, std::string> environment{};  ///< added to ours
  std::string cwd{};                                 ///< empty: ours
  int output = -1;        ///< takes stdout and stderr in the place of the log; stays open here
  bool terminal = false;  ///< `output` is a terminal, and becomes the program's controlling one
};

/// A machine of its own, as far as programs see: network, process, mount, IPC, host name and time namespaces under a
/// first process that only waits. Goes with its owner, also when that is killed. Throws std::runtime_error.
class Space {
 public:
  /// Why this process cannot make one (CAP_SYS_ADMIN, /dev/net/tun, a kernel without time namespaces); empty: it can.
  /// Throws std::runtime_error where it cannot and TROUPE_WANT_LAB is set: tests that want one are not to be skipped.
  static std::string missing();

  explicit Space(SpaceOptions options);
  ~Space();
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  const std::string& name() const { return options_.name; }

  /// A TUN device, up, with `address`/24 (host order) and the loopback device up; for a Switch.
  FileDescriptor tun(std::uint32_t address) const;
  /// Calls `work` in a thread that has the space's network: sockets that it makes belong there.
  void in_network(const std::function<void()>& work) const;

  /// `words` with the path of a program first, its output in the file `log`.
  JobProcess start(std::vector<std::string> words, const std::string& log, const StartOptions& options = {}) const;
  /// Its processes but the first, as seen from here.
  std::vector<pid_t> processes() const;
  /// Sockets that somebody listens on or has a connection by: one line each, of tcp and of paths.
  std::vector<std::string> sockets() const;

  /// Power off: every process ends at once, and its devices go.
  void kill();

 private:
  SpaceOptions options_;
  pid_t keeper_ = -1, init_ = -1;  ///< init: the first process, as seen from here
};

/// Starts a program as Space::start does, here.
JobProcess start_program(std::vector<std::string> words, const std::string& log, const StartOptions& options = {});

}  // namespace troupe::testing
