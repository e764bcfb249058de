#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "base/file_descriptor.h"
#include "tests/support/folder_files.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// A control group of version 1, one of a controller in a process at a time. It goes away at the end of its scope, and
/// what is left in it is killed. Throws std::runtime_error for what a machine with such groups refuses.
class ControlGroup {
 public:
  /// `controller` is "freezer" or "memory".
  explicit ControlGroup(const std::string& controller)
      : path_("/sys/fs/cgroup/" + controller + "/troupe-test-" + std::to_string(::getpid())) {
    std::error_code error;
    if (!std::filesystem::exists(path_.parent_path() / "cgroup.procs", error)) {
      missing_ = "no control groups of version 1 for " + controller;
      return;
    }
    std::filesystem::create_directory(path_, error);
    if (!error) return;
    const std::string why = path_.string() + ": " + error.message();
    if (error.value() != EACCES && error.value() != EROFS) throw std::runtime_error(why);
    missing_ = why;
  }
  ~ControlGroup() {
    if (!missing_.empty()) return;
    // only a freezer's group has this file
    if (std::filesystem::exists(path_ / "freezer.state"))
      std::ofstream(path_ / "freezer.state") << "THAWED" << std::endl;
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (end_those_left(until)) {  // one of them may have forked meanwhile
    }
    std::error_code error;
    EXPECT_TRUE(std::filesystem::remove(path_, error)) << path_ << ": " << error.message();
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  /// Why there is none: this machine has no such groups, or they are closed to this user. Empty: there is one.
  const std::string& missing() const { return missing_; }

  /// A file of the group, such as "cgroup.procs".
  std::string operator/(const std::string& file) const { return path_ / file; }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream out(path_ / file);
    if (!(out << text << std::endl)) throw std::runtime_error(*this / file + " does not take " + text);
  }
  void add(pid_t pid) const { write("cgroup.procs", std::to_string(pid)); }

  /// Its processes stand still, and not even SIGKILL ends them before they go on: what a hung disk does to them.
  void freeze() const {
    write("freezer.state", "FROZEN");
    // polled: cgroup version 1 has no event for this state
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (text_of(*this / "freezer.state") != "FROZEN\n") {
      if (std::chrono::steady_clock::now() > until) throw std::runtime_error(path_.string() + " does not freeze");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  void thaw() const { write("freezer.state", "THAWED"); }

 private:
  static constexpr std::chrono::seconds kPatience{20};

  /// Kills the processes of the group and waits for their ends. False: there were none, or `until` has passed.
  bool end_those_left(std::chrono::steady_clock::time_point until) const {
    bool were_some = false;
    std::ifstream left(path_ / "cgroup.procs");
    for (pid_t pid = 0; left >> pid; were_some = true) {
      const FileDescriptor end(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
      if (!end.is_open()) continue;  // it has gone
      ::syscall(SYS_pidfd_send_signal, end.get(), SIGKILL, nullptr, 0);
      const auto patience = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      pollfd item{end.get(), POLLIN, 0};
      if (patience.count() <= 0 || ::poll(&item, 1, static_cast<int>(patience.count())) != 1) return false;
    }
    return were_some;
  }

  const std::filesystem::path path_;
  std::string missing_;
};

}  // namespace troupe::testing
