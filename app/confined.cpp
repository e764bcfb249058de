#include "app/confined.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "actors/feed_keys.h"
#include "app/commands.h"
#include "base/file_io.h"
#include "base/hugging_face.h"
#include "base/leave.h"
#include "base/log.h"
#include "configs/loader.h"
#include "data/index/index_folder.h"
#include "data/lerobot/dataset_location.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::app {

namespace {

namespace fs = std::filesystem;

/// A folder that the process may write needs to be there before it is confined.
void allow_writing(SandboxRules& rules, const std::string& folder) {
  if (folder.empty()) return;
  // where it cannot be made, who writes there says so better
  if (const auto made = make_folders(folder); made) rules.writable.push_back(folder);
}

[[noreturn]] void be_child(pid_t parent, const sigset_t& mask, const SandboxRules& rules,
                           const std::function<int()>& command) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kFailed);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  int code = kFailed;
  if (const auto entered = enter_sandbox(rules); !entered) {
    fmt::print(stderr, "error: {}\n", entered.error().message());
  } else {
    code = command();
  }
  leave(code);
}

/// The scalar of a line of YAML: what follows "key: " or "- ".
std::string scalar_of(std::string line) {
  line = line.substr(0, line.find(" #"));
  if (const auto colon = line.find(": "); colon != std::string::npos) {
    line = line.substr(colon + 2);
  } else if (const auto dash = line.find("- "); dash != std::string::npos) {
    line = line.substr(dash + 2);
  }
  const auto begin = line.find_first_not_of(" \"'"), end = line.find_last_not_of(" \"'\r");
  return begin == std::string::npos ? std::string() : line.substr(begin, end - begin + 1);
}

}  // namespace

int run_confined(const std::string& subject, const SandboxRules& rules, const std::function<int()>& command) {
  std::fflush(stdout);
  std::fflush(stderr);
  sigset_t watched, before;
  sigemptyset(&watched);
  for (const int signal : {SIGCHLD, SIGTERM, SIGHUP, SIGINT}) sigaddset(&watched, signal);
  ::sigprocmask(SIG_BLOCK, &watched, &before);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) {
    fmt::print(stderr, "error: no process could be made: {}\n", std::strerror(errno));
    return kFailed;
  }
  if (child == 0) be_child(parent, before, rules, command);
  int status = 0;
  for (;;) {
    siginfo_t info{};
    if (::sigwaitinfo(&watched, &info) < 0) continue;
    if (info.si_signo == SIGCHLD) {
      if (::waitpid(child, &status, WNOHANG) == child) break;
    } else if (info.si_signo != SIGINT || info.si_code == SI_USER) {
      ::kill(child, info.si_signo);  // the terminal has sent its SIGINT to the child as well
    }
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGKILL) {
    // as if this process had not left the work to another one
    std::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  fmt::print(stderr,
             "error: the confined process that read {} was ended by signal {} ({}); a file of it is damaged or "
             "hostile\n",
             subject, signal, ::strsignal(signal));
  return kFailed;
}

void allow_dataset(SandboxRules& rules, const std::string& path_or_repo_id) {
  const auto found = find_dataset(path_or_repo_id);
  if (!found) return;  // who opens it says why
  rules.readable.push_back(*found);
  for (std::string& folder : linked_folders(*found)) rules.readable.push_back(std::move(folder));
  const IndexFolders index = index_folders(*found, {});
  allow_writing(rules, index.write);
  allow_writing(rules, index.times.empty() ? "" : fs::path(index.times).parent_path().string());
}

void allow_named(SandboxRules& rules, const std::string& yaml) {
  std::istringstream lines(yaml);
  bool is_read = false;  // run_root, say, is not: tokens and keys lie below it
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != ' ' && line[0] != '#' && line[0] != '-')
      is_read = line.starts_with("data:") || line.starts_with("model:");
    const std::string scalar = scalar_of(line);
    if (!is_read || scalar.empty() || scalar == "/" || scalar == ".") continue;
    std::error_code error;
    if (fs::exists(scalar, error)) {
      rules.readable.push_back(scalar);
      for (std::string& folder : linked_folders(scalar)) rules.readable.push_back(std::move(folder));
    }
  }
  const HubFolders hub = hub_folders();
  for (const std::string& folder : {hub.hub, hub.lerobot}) {
    if (!folder.empty()) rules.readable.push_back(folder);
  }
}

SandboxRules rules_of_host(const RoleContext& context) {
  SandboxRules rules;
  allow_named(rules, to_yaml(context.config));
  for (const DataSetConfig& set : context.config.data.sets) allow_dataset(rules, set.path);
  const IndexConfig& index = context.config.data.index;
  if (!index.path.empty() && index.path != "beside") allow_writing(rules, index.path);
  if (!context.config.data.features.cache.empty()) allow_writing(rules, context.config.data.features.cache);
  const RunDirectory run(context.run_dir);
  rules.writable.push_back(run.logs());
  rules.writable.push_back(run.path("profile"));
  // on a further node feeds are on another machine, and this names the keys to them
  rules.readable.push_back(context.runtime_dir + "/feed-client.json");
  const auto keys = read_feed_client(context.runtime_dir);
  rules.sockets = keys && *keys ? SandboxSockets::network : SandboxSockets::local;
  return rules;
}

}  // namespace troupe::app
