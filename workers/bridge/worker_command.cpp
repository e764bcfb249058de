#include "workers/bridge/worker_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

constexpr int kMostAbove = 6;  // build/release/tests/workers/bridge is five folders deep

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<std::string> package_folder() {
  const std::string given = variable("TROUPE_PYTHON_FOLDER");
  std::error_code ignored;  // the error below says it
  const auto holds = [&](const fs::path& folder) { return fs::exists(folder / "troupe_env" / "__main__.py", ignored); };
  if (!given.empty() && holds(given)) return given;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (given.empty()) {
    fs::path above = program.parent_path();
    for (int i = 0; i < kMostAbove && above.has_relative_path(); ++i, above = above.parent_path()) {
      for (const char* place : {"share/troupe/python", "python"}) {
        if (holds(above / place)) return (above / place).string();
      }
    }
  }
  return Error{Errc::not_found,
               fmt::format("there is no Python package troupe_env {}; let the variable TROUPE_PYTHON_FOLDER name the "
                           "folder that holds it (python/ of the source tree)",
                           given.empty() ? "above " + program.string() : "in " + given)};
}

}  // namespace

Result<WorkerCommand> worker_command(const configs::BridgeConfig& bridge) {
  TROUPE_ASSIGN(const std::string package, package_folder());
  WorkerCommand command{.words = bridge.command, .variables = {}};
  if (!bridge.command.empty() && !bridge.python.empty())
    return invalid_argument("env.bridge has command and python; the command names its own interpreter: remove one");
  if (command.words.empty()) {
    const std::string named = variable("TROUPE_PYTHON");
    command.words = {!bridge.python.empty() ? bridge.python
                     : !named.empty()       ? named
                                            : "python3",
                     package + "/troupe_env"};
  }
  std::vector<std::string> path{package};
  path.insert(path.end(), bridge.path.begin(), bridge.path.end());
  if (const std::string own = variable("PYTHONPATH"); !own.empty()) path.push_back(own);
  command.variables["PYTHONPATH"] = fmt::format("{}", fmt::join(path, ":"));
  command.variables["PYTHONUNBUFFERED"] = "1";
  // workers share the cores: a pool of threads for every small product takes them from each other
  if (variable("OMP_NUM_THREADS").empty()) command.variables["OMP_NUM_THREADS"] = "1";
  return command;
}

}  // namespace troupe::workers
