#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/namespaces.h"

namespace troupe::configs {

/// How simulators of environments in Python start and find their workers (docs/bridge.md). Belongs to a machine, not to
/// a job's results.
struct BridgeConfig {
  /// Read by workers/bridge.
  std::string python;
  /// Read by workers/bridge.
  std::vector<std::string> path;
  /// Read by workers/bridge.
  /// Not with python.
  std::vector<std::string> command;
  /// 0 to 1024. Read by actors, workers/bridge.
  /// 0 wants bind.
  std::int64_t workers = 1;
  /// Read by workers/bridge.
  std::string bind;
  /// Read by workers/bridge.
  bool shared_memory = true;

  template <class V>
  static void describe(V& v) {
    v.field(
        "python", &BridgeConfig::python,
        "interpreter that has the environment's packages, such as venv/bin/python; empty: the one that the variable "
        "TROUPE_PYTHON names, else python3 of PATH");
    v.field("path", &BridgeConfig::path, "folders in which Python looks for modules before its own");
    v.field("command", &BridgeConfig::command,
            "words that start a worker in place of python -m troupe_env, such as [conda, run, -n, sim, python, -m, "
            "troupe_env]; the worker's arguments follow them");
    v.field("workers", &BridgeConfig::workers,
            "Python processes that each simulator starts and shares its blocks among; 0: none, you start them", "count",
            0, 1024);
    v.field("bind", &BridgeConfig::bind,
            "ipc://PATH or tcp://127.0.0.1:PORT, where workers that you start find the simulator; empty: an address "
            "that only its own know");
    v.field("shared_memory", &BridgeConfig::shared_memory,
            "observations and actions of workers on this machine go through memory; false: in messages, as those of "
            "others");
  }
};

}  // namespace troupe::configs
