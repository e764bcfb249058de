#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/bridge_config.h"

namespace troupe::workers {

/// How a worker is started: the words in front of its own arguments, and variables beside this process's.
struct WorkerCommand {
  std::vector<std::string> words;
  std::map<std::string, std::string> variables;
};

/// env.bridge.command, or the interpreter with the folder of the package troupe_env, so that nothing of the working
/// folder is run; PYTHONPATH leads to the package, then to env.bridge.path. The package is looked for in
/// share/troupe/python and python of the six folders above the program; the variable TROUPE_PYTHON_FOLDER names
/// another place. Errors:
/// invalid_argument (command and python), not_found (no package).
Result<WorkerCommand> worker_command(const configs::BridgeConfig& bridge);

}  // namespace troupe::workers
