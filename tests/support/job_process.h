#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "tests/support/folder_files.h"
#include "tests/support/program_words.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// The `troupe` program in a process of its own, its output in a file. Killed and waited for by the destructor; its
/// children go with it by their parent-death signal.
class JobProcess {
 public:
  using Milliseconds = std::chrono::milliseconds;

  JobProcess(std::vector<std::string> arguments, std::string log,
             const std::map<std::string, std::string>& environment = {})
      : log_(std::move(log)) {
    const char* binary = std::getenv("TROUPE_BINARY");
    if (!binary) throw std::runtime_error("TROUPE_BINARY does not name the program; run the test through ctest");
    arguments.insert(arguments.begin(), binary);
    std::vector<std::string> variables = variables_with(environment);
    auto argv = pointers_to(arguments), envp = pointers_to(variables);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    const int failed = posix_spawn(&pid_, binary, &files, nullptr, argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&files);
    if (failed != 0) throw std::runtime_error(std::string(binary) + " cannot be started");
    child_ = pid_;
    open_pidfds();
  }
  /// A program that runs already, its output in `log`: `child` is this process's child and ends as it does, with 128 +
  /// signal as the exit code of a killed one.
  JobProcess(pid_t child, pid_t program, std::string log) : log_(std::move(log)), pid_(program), child_(child) {
    open_pidfds();
  }
  ~JobProcess() {
    if (!exit_code_) {
      kill(SIGKILL);
      wait(Milliseconds(10'000));
    }
  }
  JobProcess(const JobProcess&) = delete;
  JobProcess& operator=(const JobProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Nothing where it has ended: a program under a waiter may be gone, and its pid another's, before wait() says so.
  void kill(int signal) const {
    if (program_end_.is_open()) syscall(SYS_pidfd_send_signal, program_end_.get(), signal, nullptr, 0);
  }
  std::string output() const { return text_of(log_); }

  /// The exit code, or 128 + signal; nothing if it still runs after `deadline`.
  std::optional<int> wait(Milliseconds deadline) {
    if (exit_code_) return exit_code_;
    pollfd ended{child_end_.get(), POLLIN, 0};
    if (::poll(&ended, 1, static_cast<int>(deadline.count())) != 1) return std::nullopt;
    int status = 0;
    if (::waitpid(child_, &status, 0) != child_)
      throw std::runtime_error("the program was waited for by somebody else");
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return exit_code_;
  }

  /// Waits until the condition holds; false if it does not by `deadline`, or when the program ends without it.
  template <class Condition>
  bool wait_until(Condition condition, Milliseconds deadline) {
    const auto until = std::chrono::steady_clock::now() + deadline;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      if (wait(Milliseconds(20))) return condition();
    }
    return true;
  }
  bool wait_output(const std::string& pattern, Milliseconds deadline = Milliseconds(60'000)) {
    const std::regex wanted(pattern);
    return wait_until([&] { return std::regex_search(output(), wanted); }, deadline);
  }

  /// Its host processes by instance: "decoder/0#1" -> pid.
  std::map<std::string, pid_t> hosts() const {
    std::map<std::string, pid_t> found;
    std::error_code gone;  // processes end while the folder is read
    for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string stat = text_of(entry.path() / "stat");
      const std::size_t after_name = stat.rfind(") ");
      if (after_name == std::string::npos) continue;
      char state = 0;
      pid_t parent = 0;
      std::istringstream(stat.substr(after_name + 2)) >> state >> parent;
      if (parent != pid_ || state == 'Z') continue;
      const auto words = split(text_of(entry.path() / "cmdline"));
      const std::string actor = after(words, "--actor"), incarnation = after(words, "--incarnation");
      if (!actor.empty()) found[actor + "#" + incarnation] = std::stoi(name);
    }
    return found;
  }
  /// Pid of the actor's newest process; nothing if it has none.
  std::optional<pid_t> host(const std::string& actor) const { return newest(hosts(), actor); }
  /// The same of hosts() of one job or of several.
  static std::optional<pid_t> newest(const std::map<std::string, pid_t>& hosts, const std::string& actor) {
    std::optional<pid_t> found;
    int incarnation = -1;
    for (const auto& [instance, pid] : hosts) {
      if (!instance.starts_with(actor + "#")) continue;
      const int mark = std::stoi(instance.substr(actor.size() + 1));
      if (mark > incarnation) incarnation = mark, found = pid;
    }
    return found;
  }
  /// Sends `signal` to the actor's newest process, which is waited for. Throws when none comes within 30 s.
  pid_t strike(const std::string& actor, int signal) {
    if (!wait_until([&] { return host(actor).has_value(); }, Milliseconds(30'000)))
      throw std::runtime_error(actor + " has no process\n" + output());
    const pid_t struck = host(actor).value_or(0);
    if (struck != 0) ::kill(struck, signal);
    return struck;
  }

  /// False for a process that has ended, also when nobody has waited for it yet.
  static bool is_running(pid_t pid) {
    const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t after_name = stat.rfind(") ");
    return after_name != std::string::npos && stat[after_name + 2] != 'Z' && stat[after_name + 2] != 'X';
  }

 private:
  void open_pidfds() {
    child_end_.reset(static_cast<int>(syscall(SYS_pidfd_open, child_, 0)));
    if (!child_end_.is_open()) throw std::runtime_error("pidfd_open failed");
    program_end_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));  // none where its waiter was faster
  }
  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> words;
    std::istringstream stream(text);
    for (std::string word; std::getline(stream, word, '\0');) words.push_back(word);
    return words;
  }
  static std::string after(const std::vector<std::string>& words, const std::string& flag) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == flag) return words[i + 1];
    }
    return {};
  }

  const std::string log_;
  pid_t pid_ = 0, child_ = 0;
  FileDescriptor child_end_, program_end_;  ///< pidfds
  std::optional<int> exit_code_;
};

}  // namespace troupe::testing
