#pragma once

#include <gtest/gtest.h>
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
    std::error_code busy;
    const bool is_gone = holds_soon([&] {
      std::ifstream left(path_ / "cgroup.procs");
      for (pid_t pid = 0; left >> pid;) ::kill(pid, SIGKILL);
      return std::filesystem::remove(path_, busy);
    });
    EXPECT_TRUE(is_gone) << path_ << ": " << busy.message();
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
    if (!holds_soon([&] { return text_of(*this / "freezer.state") == "FROZEN\n"; }))
      throw std::runtime_error(path_.string() + " does not freeze");
  }
  void thaw() const { write("freezer.state", "THAWED"); }

 private:
  /// The kernel tells nobody when a group is frozen or empty.
  template <class Condition>
  static bool holds_soon(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  const std::filesystem::path path_;
  std::string missing_;
};

}  // namespace troupe::testing
