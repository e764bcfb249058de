#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/seconds.h"

namespace troupe::configs {

/// A named set of nodes that placement strings count resources in.
struct NodeGroupConfig {
  /// Read by placement.
  /// Matches [a-z0-9][a-z0-9._-]{0,63}; each label once.
  std::string label;
  /// "0", "0-3" or "0,2": ranks of the nodes in this group.
  /// Read by placement.
  std::string node_ranks = "0";
  /// Count nodes, not devices, as resources.
  /// Read by placement.
  bool ignore_hardware = false;
  /// The later group wins where two name one variable.
  std::map<std::string, std::string> env;

  template <class V>
  static void describe(V& v) {
    v.field("label", &NodeGroupConfig::label, "name used by component_placement; `cluster` and `node` are reserved");
    v.field("node_ranks", &NodeGroupConfig::node_ranks,
            "ranks of the member nodes: a number, a range a-b or a comma list");
    v.field("ignore_hardware", &NodeGroupConfig::ignore_hardware, "count one resource per node instead of its devices");
    v.map("env", &NodeGroupConfig::env, "environment variables of host processes on these nodes");
  }
};

/// Where the actors of one role go, in RLinf's placement grammar (docs/placement.md#from-strings-to-seats).
/// A bare string in YAML is the `placement` with the default node group.
struct PlacementConfig {
  /// Read by placement.
  std::string node_group = "cluster";
  /// Read by placement.
  std::string placement = "all";

  template <class V>
  static void describe(V& v) {
    v.shorthand("placement");
    v.field("node_group", &PlacementConfig::node_group,
            "label of the node group; `cluster` counts devices (CPU nodes count as one), `node` counts nodes");
    v.field("placement", &PlacementConfig::placement,
            "resource_ranks[:process_ranks], comma separated; `all` for every resource");
  }
};

/// Bounds of an elastic pool.
struct ElasticConfig {
  /// 0 to 65536. Read by placement.
  std::int64_t min = 1;
  /// 1 to 65536. Read by placement.
  std::int64_t max = 64;
  /// `troupe scale` is the only one that changes a size.
  std::string policy = "manual";

  template <class V>
  static void describe(V& v) {
    v.field("min", &ElasticConfig::min, "fewest actors; scaling below is refused", "count", 0, 65536);
    v.field("max", &ElasticConfig::max, "most actors; scaling above is refused", "count", 1, 65536);
    v.choice("policy", &ElasticConfig::policy, "who changes the size", {"manual"});
  }
};

/// How often a dead host process is started again before the job gives up.
struct RestartConfig {
  /// 0 to 1000. Read by workers/node.
  std::int64_t budget = 5;
  /// 0 to 10000. Read by workers/node.
  std::int64_t component_budget = 20;
  /// Seconds, 1 to 86400. Read by workers/node.
  Seconds window{300};
  /// Seconds, 0 to 3600. Read by workers/node.
  Seconds backoff_initial{0.5};
  /// Seconds, 0 to 3600. Read by workers/node.
  Seconds backoff_max{30};

  template <class V>
  static void describe(V& v) {
    v.field("budget", &RestartConfig::budget, "restarts of one actor within the window", "count", 0, 1000);
    v.field("component_budget", &RestartConfig::component_budget, "restarts of all actors of a role within the window",
            "count", 0, 10000);
    v.field("window_s", &RestartConfig::window, "length of the window that restarts are counted in", "seconds", 1,
            86400);
    v.field("backoff_initial_s", &RestartConfig::backoff_initial,
            "pause before the second restart in a window; doubles each time", "seconds", 0, 3600);
    v.field("backoff_max_s", &RestartConfig::backoff_max, "longest pause before a restart", "seconds", 0, 3600);
  }
};

/// Threads of actors that compute.
struct ThreadsConfig {
  /// 0 to 1024. Read by placement. Neither number of threads changes a bit of a result.
  std::int64_t learner = 0;
  /// 1 to 1024. Read by placement, workers/pipeline, actors.
  std::int64_t encoder = 1;

  template <class V>
  static void describe(V& v) {
    v.field("learner", &ThreadsConfig::learner,
            "threads that one learner rank computes on; 0: on nodes without devices the cores that feeders leave, "
            "beside a device 2",
            "count", 0, 1024);
    v.field("encoder", &ThreadsConfig::encoder,
            "threads of one encoder (data.features.encode encoder), which share its copy of the frozen networks; each "
            "makes a sample by itself",
            "count", 1, 1024);
  }
};

/// Nodes, who runs where, in threads or processes, and how failures are met.
struct ClusterConfig {
  /// 1 to 4096. Read by placement, actors, app.
  std::int64_t num_nodes = 1;
  /// Read by workers/controller, placement.
  std::vector<NodeGroupConfig> node_groups;
  std::map<std::string, PlacementConfig> component_placement;
  /// placement knows no `auto`: app settles it before a job is planned (app/env_isolation.h).
  std::map<std::string, std::string> isolation;
  /// learner, evaluator and checkpointer are refused: their size is fixed for the run.
  std::map<std::string, ElasticConfig> elastic;
  ThreadsConfig threads;
  RestartConfig restart;
  /// Seconds, 1 to 3600. Read by workers/controller, app.
  /// The node's heartbeats come every second.
  Seconds lease{10};
  /// Seconds, 0 to 86400. Read by workers/controller, app.
  Seconds orphan{60};
  /// Seconds, 1 to 3600. Read by workers/controller, app.
  Seconds start_timeout{120};
  /// Read by app.
  std::string allow;
  /// Read by app, actors.
  std::string advertise;
  /// Read by actors.
  std::string ports;

  template <class V>
  static void describe(V& v) {
    v.field("num_nodes", &ClusterConfig::num_nodes, "nodes to wait for before planning", "count", 1, 4096);
    v.list("node_groups", &ClusterConfig::node_groups, "named groups of nodes");
    v.map("component_placement", &ClusterConfig::component_placement,
          "placement of each role: learner, decoder (or encoder, with data.features.encode encoder; with job.kind rl "
          "env, rollout and evaluator), checkpointer");
    v.map(
        "isolation", &ClusterConfig::isolation,
        "per role: process (own OS process; where nothing is said) or thread (inside the node's process). env: also "
        "inline "
        "(stepped by the rollout workers, without simulators) and auto (inline or process; where nothing is said): the "
        "plan says which and why (docs/rl.md)",
        {"process", "thread", "inline", "auto"});
    v.map("elastic", &ClusterConfig::elastic, "bounds of elastic pools (decoder, encoder, env, rollout)");
    v.group("threads", &ClusterConfig::threads, "threads of actors that compute");
    v.group("restart", &ClusterConfig::restart, "restart budget of host processes");
    v.field("lease_s", &ClusterConfig::lease, "silence after which a node counts as lost", "seconds", 1, 3600);
    v.field("orphan_s", &ClusterConfig::orphan,
            "how long a node that is out of the controller's reach keeps what it hosts and asks to join again",
            "seconds", 0, 86400);
    v.field("start_timeout_s", &ClusterConfig::start_timeout, "longest wait for nodes and actors to come up", "seconds",
            1, 3600);
    v.field("allow", &ClusterConfig::allow,
            "file of public keys that may connect, beside RUN/keys/allow (docs/security.md)");
    v.field("advertise", &ClusterConfig::advertise,
            "host that other machines reach this one by; wanted when --listen is every address (0.0.0.0, ::)");
    v.field("ports", &ClusterConfig::ports,
            "first-last: tcp ports that feeds may listen on for other machines; empty: any free one");
  }
};

}  // namespace troupe::configs
