#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::testing {

/// What goes wrong, or is asked for, at one moment of a simulated job.
struct Fault {
  enum class Kind : std::uint8_t {
    kill_actor,       ///< its process ends as by SIGKILL
    hang_actor,       ///< it does and hears nothing until it is killed
    kill_node,        ///< a node's process and all it hosts; it is started again after `lasts`
    stop_node,        ///< SIGSTOP for `lasts`, with all it hosts
    cut_node,         ///< no message passes either way for `lasts`
    deafen_node,      ///< nothing reaches it for `lasts`; what it sends passes
    silence_node,     ///< nothing of it passes for `lasts`; what is sent to it does
    rival_node,       ///< a second process joins under its name
    stop_controller,  ///< SIGSTOP for `lasts`
    bad_wire,         ///< for `lasts` three in ten messages are lost, one in ten comes twice, all are reordered
    fail_write,       ///< the next writes of a checkpoint fail, as on a full disk
    hang_write,       ///< the next write of a checkpoint never ends
    scale,            ///< the pool is scaled to `target` + 1
    terminate,        ///< SIGTERM
    restart,          ///< the controller's process is killed and the job resumed
  };
  Kind kind = Kind::kill_actor;
  std::chrono::milliseconds at{0}, lasts{0};
  /// Which actor, node or size: taken modulo what there is.
  std::uint32_t target = 0;
};

/// A job of two ranks on node/0, six decoders over three nodes and a checkpointer, and what happens to it. Everything
/// that is random in it follows from the seed.
struct Schedule {
  std::uint64_t seed = 0;
  std::vector<Fault> faults = {};
};

/// Three to six faults within the first two minutes of the job.
Schedule schedule_of(std::uint64_t seed);
/// "seed 7: cut_node 2 at 12.3 s for 20.0 s; ...", for people and for a test of its own.
std::string to_text(const Schedule& schedule);

/// What became of it.
struct Outcome {
  /// Rules that were broken, in words; empty: none.
  std::vector<std::string> breaches;
  /// Events of the job, with its seconds.
  std::vector<std::string> said;
  std::int64_t deliveries = 0;
  int exit_code = -1;
  std::chrono::milliseconds lasted{0};
};

/// Runs the controller, the membership of its nodes, their agents and the delivery of messages (all of them the
/// product's) over a scripted network, clock and disk, on this thread. `folder`: for the run directory; emptied first.
/// Judged are: one instance per rank and epoch; commits grow in (fence, step), and are of the group that stands; every
/// step is trained once in the history that owns it, by all ranks; no producer counts as gone while it can still write
/// to this host; the job ends by itself; nothing that it started is left.
Outcome simulate(const Schedule& schedule, const std::string& folder);

/// The fewest faults of `schedule` that still break a rule.
Schedule shrunk(Schedule schedule, const std::string& folder);

}  // namespace troupe::testing
