#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/actor_catalogue.h"

namespace troupe::testing {

/// What goes wrong, or is asked for, at one moment of a simulated job.
struct Fault {
  enum class Kind : std::uint8_t {
    kill_actor,       ///< its process ends by SIGKILL, or of an error, or with 75 (it may be tried again)
    hang_actor,       ///< it neither works nor hears until it is killed
    kill_node,        ///< a node's process and all it hosts; it is started again after `lasts`
    stop_node,        ///< SIGSTOP for `lasts`, with all it hosts
    cut_node,         ///< no message passes either way for `lasts`
    deafen_node,      ///< no message reaches the node for `lasts`; those that it sends pass
    silence_node,     ///< no message of the node passes for `lasts`; those that are sent to it do
    rival_node,       ///< a second process joins under its name; the first one may be stopped and wake behind it
    stop_controller,  ///< SIGSTOP for `lasts`
    bad_wire,         ///< for `lasts` three in ten messages are lost, one in ten comes twice, all are reordered
    fail_write,       ///< the next writes of a checkpoint fail, as on a full disk
    hang_write,       ///< the next write of a checkpoint never ends
    scale,            ///< the pool is scaled to `target` + 1
    late_message,     ///< what an actor sends, from its next message of one kind on, is held for `lasts`
    hang_start,       ///< the next start of an actor never comes up
    slow_end,         ///< for `lasts` actors that are told to end take long, until they are killed
    unkillable,       ///< an actor survives SIGKILL for `lasts`
    stranger,         ///< a node of another build, of another key or of no right name asks to join
    new_node,         ///< a further node joins
    ask,              ///< the command line asks, or wants to see what a scale would do
    terminate,        ///< SIGTERM, SIGINT or `status --stop`
    restart,          ///< the controller's process is killed and the job resumed
    fatal,            ///< a learner says that the job cannot go on
    damage,           ///< a byte of the newest of several checkpoints changes, and a rank dies
  };
  Kind kind = Kind::kill_actor;
  std::chrono::milliseconds at{0}, lasts{0};
  /// Which actor, node or size: taken modulo what there is.
  std::uint32_t target = 0;

  /// The controller's own disk is full and slow (fail_write), or hangs (hang_write): that may end the job.
  bool is_of_the_whole_disk() const {
    return kind == Kind::fail_write ? target / 4 % 2 != 0 : kind == Kind::hang_write && target % 8 == 0;
  }
};

/// A job of two ranks on node/0, six makers of samples over three nodes and a checkpointer, and what happens to it.
/// Everything that is random in it follows from the seed.
struct Schedule {
  enum class Makers : std::uint8_t { decoders, encoders, simulators };
  std::uint64_t seed = 0;
  std::vector<Fault> faults = {};
  /// Simulators come with rollout workers, three of each.
  Makers makers = Makers::decoders;
  /// Of training, and between two checkpoints.
  std::int64_t steps = 60, every = 5;
  /// A step takes from 70 to 130 % of it, the controller looks at its clock every `tick`.
  std::chrono::milliseconds step{1000}, tick{250};
  /// state.db is a file, and the run directory is read at the end as commands read it.
  bool is_on_disk = false;
};

/// Four to eight faults within the first two minutes of the job. What may end it comes last: behind three others, and
/// after 40 s.
Schedule schedule_of(std::uint64_t seed);
/// One job that trains for so long, with a fault every ten minutes.
Schedule long_schedule(std::uint64_t seed, std::chrono::hours lasts);
/// "seed 7: cut_node 2 at 12.3 s for 20.0 s; ...", for people and for a test of its own.
std::string to_text(const Schedule& schedule);

/// Which messages of the rights table (actors::kActors) reached their addressees, by row and place in its list.
struct SeenRights {
  static constexpr std::size_t kMost = 24;
  std::array<std::array<bool, kMost>, actors::kActors.size()> sent{}, taken{};
  void add(const SeenRights& other);
  /// Rights that were not used: "decoder/N sends producer_times".
  std::vector<std::string> missing() const;
};

/// What became of it.
struct Outcome {
  /// Rules that were broken, in words; empty: none.
  std::vector<std::string> breaches;
  /// Events of the job, with its seconds.
  std::vector<std::string> said;
  SeenRights rights;
  std::int64_t deliveries = 0;
  /// That have struck before its end.
  std::int64_t faults = 0;
  int exit_code = -1;
  std::chrono::milliseconds lasted{0};
};

/// Runs the controller, the membership of its nodes, their agents and the delivery of messages (all of them the
/// product's) over a scripted network, clock and disk, on this thread. `folder`: for the run directory; emptied first.
///
/// Rules, by the file that judges them. All look at messages, at the controller's tables and at the disk only:
/// - wire.cpp (SimWire): each message arrives once, in order, and within 15 s where the way is free; none arrives of a
///   name that was forgotten.
/// - membership_judge.cpp (MembershipJudge): the newest process of a name alone renews its lease, which ends on time;
///   an older process is refused. (NodeJudge): how long a node heard nothing decides whether it is member, apart or
///   orphaned.
/// - group_judge.cpp (GroupJudge): fences grow and are in state.db first; a group stands when all its ranks say so; a
///   checkpoint is made of the snapshots of one step and fence; it begins, is tried again and is given up on time.
/// - actor_judge.cpp (ActorJudge): a start is new and has one owner; none is on a lost node; an actor that ended starts
///   again when its pause is over; its slots and memory are free once its end is known; plan and table agree.
/// - judge.cpp (Judge): a message of an older start or another fence changes nothing.
/// - controller.cpp, in World::note(): the rights table allows each message; in look(): commits grow in (fence, step)
///   and are of the group that stands; only behind a damaged checkpoint the committed step becomes an older one.
/// - nodes.cpp: agents report no end of an actor that lives, and list what they host. actors.cpp: no start happens
///   twice; an actor that counts as gone cannot write. learners.cpp: a group has one instance a rank and begins at the
///   step that it is told.
/// - ending.cpp, in World::watch(): actors on nodes in contact are those of the controller's table, within 45 s; the
///   job moves within 4.5 minutes. In judge_end(): the job ends as it was told to and leaves no process; each step on
///   disk was trained by the group that owned it; state.db and the run directory say what the disk holds.
Outcome simulate(const Schedule& schedule, const std::string& folder);

/// The fewest faults of `schedule` that still break a rule.
Schedule shrunk(Schedule schedule, const std::string& folder);

}  // namespace troupe::testing
