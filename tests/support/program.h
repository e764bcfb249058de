#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/scratch_folder.h"

namespace troupe::testing {

/// How a program ended and what it said.
struct ProgramEnd {
  int exit_code = -1;      ///< -1: it did not exit by itself
  int signal = 0;          ///< it was killed by this one
  bool timed_out = false;  ///< it overran its deadline and was killed by us
  std::string out, err;

  /// Everything, for a failed expectation's message.
  std::string text() const;
};

/// For EXPECT_TRUE and ASSERT_TRUE: it ended with exit code 0; else all that it said.
inline ::testing::AssertionResult succeeded(const ProgramEnd& end) {
  return end.exit_code == 0 ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << end.text();
}

/// Expects that it ended with this exit code, and wrote each of `out` to stdout and each of `err` to stderr.
void expect_end(const ProgramEnd& end, int code, const std::vector<std::string>& out = {},
                const std::vector<std::string>& err = {});

/// How to start a program.
struct ProgramOptions {
  std::string program{};                   ///< path of what is run; empty: TROUPE_BINARY
  std::string cwd;                         ///< working directory
  std::map<std::string, std::string> env;  ///< added to this process's environment
  std::chrono::seconds deadline{50};       ///< from its start; then it is killed
};

/// A program that runs beside the test: TROUPE_BINARY with arguments. Its output is collected while the test waits
/// for it; a program that writes more than a pipe holds in between waits too. Killed at the end if it still runs. One
/// thread.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments, ProgramOptions options = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  /// True once `text` stands in stdout or stderr; false when the program ended or its deadline passed before.
  bool wait_for_text(const std::string& text);
  void send_signal(int signal) const;
  /// Waits for the end, until the deadline.
  ProgramEnd wait();
  /// What it has said so far.
  const ProgramEnd& so_far() const { return end_; }

 private:
  enum class Event { output, ended, deadline };
  Event next_event();
  bool drain(int fd, std::string& text) const;
  void reap();

  const std::chrono::steady_clock::time_point until_;
  pid_t pid_ = -1;
  int pidfd_ = -1, out_ = -1, err_ = -1;
  bool reaped_ = false;
  ProgramEnd end_;
};

/// Runs `troupe ARGUMENTS` to its end.
ProgramEnd run_program(const std::vector<std::string>& arguments, ProgramOptions options = {});

}  // namespace troupe::testing
