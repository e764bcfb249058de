#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace troupe::testing {

/// TROUPE_BINARY on a pseudo-terminal, as a person runs it: what it writes is what a terminal would get,
/// and what is typed reaches it through the terminal (Ctrl-C is a SIGINT). Killed at the end if it still runs.
class PtyProgram {
 public:
  static constexpr int kColumns = 100, kRows = 40;
  PtyProgram(const std::vector<std::string>& words, const std::string& cwd, std::map<std::string, std::string> env,
             std::chrono::seconds deadline = std::chrono::seconds(60), int columns = kColumns, int rows = kRows);
  ~PtyProgram();
  PtyProgram(const PtyProgram&) = delete;
  PtyProgram& operator=(const PtyProgram&) = delete;

  /// False when the program ended or its deadline passed before.
  bool wait_for_text(const std::string& text);
  void type(const std::string& keys) const;
  /// The exit code; -1: it was killed, or overran its deadline.
  int wait();
  /// Every byte it wrote.
  const std::string& bytes() const { return bytes_; }
  /// The lines that a terminal shows after them: carriage returns go back, escape sequences act, and what is
  /// longer than a row goes on in the next.
  std::vector<std::string> screen() const;
  pid_t pid() const { return pid_; }

 private:
  /// Reads what there is; false at the end of the output or the deadline.
  bool read_more();

  const std::chrono::steady_clock::time_point until_;
  const int columns_;
  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string bytes_;
};

}  // namespace troupe::testing
