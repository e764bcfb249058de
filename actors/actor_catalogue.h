#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/enum_names.h"
#include "comm/control/message_codec.h"

namespace troupe::actors {

/// Types of control messages by their wire numbers.
using MessageTypes = std::span<const std::uint16_t>;

/// The list of these messages, such as kTypes<Spawn, Stop>.
template <class... M>
inline constexpr std::array<std::uint16_t, sizeof...(M)> kTypes{M::kType...};

/// Whether the message is of one of these types.
inline bool contains(MessageTypes types, const Message& message) {
  return std::find(types.begin(), types.end(), type_of(message)) != types.end();
}

/// Who a control message is from or for, as its receiver knows it: the rows of kActors, and everybody else.
enum class Party : std::uint8_t {
  controller,
  /// "node/N".
  agent,
  learner,
  decoder,
  encoder,
  env,
  rollout,
  evaluator,
  checkpointer,
  /// The name that a further node joined with.
  session,
  /// The command line of the run's owner, or of an operator's key.
  owner,
  /// The command line with a viewer's key.
  viewer,
  /// Has no row in the table: it may send and take no message.
  unknown,
};
constexpr auto enum_names(Party) {
  return std::array{"controller", "agent",        "learner", "decoder", "encoder", "env",    "rollout",
                    "evaluator",  "checkpointer", "session", "owner",   "viewer",  "unknown"};
}

/// One kind of actor. The texts are those of docs/actors.md.
struct ActorRow {
  Party party = Party::unknown;
  /// Its name in control messages; N and R stand for numbers.
  std::string_view actor;
  /// The plain class that does the work, and its folder.
  std::string_view worker;
  /// The file of the CAF actor around it.
  std::string_view shell;
  std::string_view thread, process, supervisor;
  /// What reaches the worker: role_actor drops other control messages with a warning.
  MessageTypes takes;
  MessageTypes sends;
  /// The name up to the slash: "decoder".
  constexpr std::string_view role() const { return actor.substr(0, actor.find('/')); }
};

/// A row of an actor that a plan places: a node starts it, and the controller decides whether it is started again.
constexpr ActorRow planned_actor(Party party, std::string_view actor, std::string_view worker, std::string_view thread,
                                 MessageTypes takes, MessageTypes sends) {
  return {.party = party,
          .actor = actor,
          .worker = worker,
          .shell = "`actors/role_actor`",
          .thread = thread,
          .process = "a host process, or its node's",
          .supervisor = "its node, the controller",
          .takes = takes,
          .sends = sends};
}

/// Every actor of a job, and the command line, which sends control messages too. The tables of docs/actors.md are made
/// from it; the shells look up what an actor takes.
inline constexpr std::array kActors{
    ActorRow{.party = Party::controller,
             .actor = "controller",
             .worker = "`ControllerService` with `JobController` (`workers/controller`)",
             .shell = "`actors/controller_actor`",
             .thread = "its own",
             .process = "`troupe run`",
             .supervisor = "`troupe run`",
             .takes = kTypes<Join, Heartbeat, ActorUp, ActorExited, GroupUp, GroupAbort, StepReport, EvalBegun,
                             EvalReport, Event, ProducerTimes, BadClip, StuckProducer, Quarantined, Fatal,
                             SnapshotReady, CheckpointDone, Finished, Scale, StatusQuery, StopJob>,
             .sends = kTypes<Joined, HeartbeatAck, Reply, Spawn, Stop, Peers, GroupPlan, GroupAbort, CheckpointBegin,
                             CheckpointCommitted, Finish>},
    ActorRow{.party = Party::agent,
             .actor = "node/N",
             .worker = "`NodeRole` (`workers/node`)",
             .shell = "`actors/role_actor`",
             .thread = "its own, `ProcessTable`'s",
             .process = "`troupe run` for `node/0`, else `troupe node`",
             .supervisor = "its process",
             .takes = kTypes<Spawn, Stop>,
             .sends = kTypes<ActorExited>},
    planned_actor(Party::learner, "learner/R", "`LearnerRole` with `Feed` and `LearnerRank` (`workers/learner`)",
                  "its own, the rank's", kTypes<Peers, GroupPlan, GroupAbort, CheckpointCommitted, Finish>,
                  kTypes<ActorUp, GroupUp, GroupAbort, StepReport, EvalReport, SnapshotReady, Event, BadClip,
                         StuckProducer, Quarantined, Fatal, Finished>),
    planned_actor(Party::decoder, "decoder/N", "`DecoderRole` (`workers/decoder`)", "its own, one per feed",
                  kTypes<Peers>, kTypes<ActorUp, ProducerTimes>),
    planned_actor(Party::encoder, "encoder/N", "`DecoderRole` over `EncodedSampleBuilder` (`workers/encoder`)",
                  "its own, `cluster.threads.encoder` per feed", kTypes<Peers>, kTypes<ActorUp, ProducerTimes>),
    planned_actor(Party::env, "env/N", "`SimulatorRole` (`workers/rollout`)",
                  "its own, one per rollout worker, stepping threads", kTypes<Peers>, kTypes<ActorUp, ProducerTimes>),
    planned_actor(Party::rollout, "rollout/N", "`RolloutRole` with `RolloutWorker` (`workers/rollout`)",
                  "its own, the worker's, one per feed", kTypes<Peers>,
                  kTypes<ActorUp, Event, StuckProducer, ProducerTimes>),
    planned_actor(Party::evaluator, "evaluator/0", "`EvaluatorRole` (`workers/evaluator`)",
                  "its own, the player's, stepping threads", kTypes<Peers>,
                  kTypes<ActorUp, EvalBegun, EvalReport, Event>),
    planned_actor(Party::checkpointer, "checkpointer/0", "`CheckpointerRole` (`workers/checkpoint`)", "its own",
                  kTypes<CheckpointBegin>, kTypes<ActorUp, CheckpointDone>),
    ActorRow{.party = Party::controller,
             .actor = "controller, until there is a plan",
             .worker = "`JoinQueue`",
             .shell = "`actors/join_queue`",
             .thread = "CAF's pool",
             .process = "`troupe run`",
             .supervisor = "`troupe run`",
             .takes = kTypes<Join>,
             .sends = {}},
    ActorRow{.party = Party::session,
             .actor = "the name that a further node joined with",
             .worker = "`NodeSession`",
             .shell = "`actors/node_session`",
             .thread = "CAF's pool",
             .process = "`troupe node`",
             .supervisor = "`troupe node`",
             .takes = kTypes<Joined, HeartbeatAck, Reply, Spawn, Stop, Finish>,
             .sends = kTypes<Join, Heartbeat>},
    ActorRow{.party = Party::owner,
             .actor = "the command line",
             .worker = "none",
             .shell = "`app/live_command`, no actor",
             .thread = "the I/O loop's",
             .process = "`troupe status`, `troupe scale`",
             .supervisor = "its user",
             .takes = kTypes<Reply>,
             .sends = kTypes<Scale, StatusQuery, StopJob>},
    ActorRow{.party = Party::viewer,
             .actor = "the command line with a viewer's key",
             .worker = "none",
             .shell = "`app/live_command`, no actor",
             .thread = "the I/O loop's",
             .process = "`troupe status` with a key",
             .supervisor = "its user",
             .takes = kTypes<Reply>,
             .sends = kTypes<StatusQuery>},
};

/// What an actor of this role takes; nothing for an unknown role.
constexpr MessageTypes taken_by(std::string_view role) {
  const auto row = std::find_if(kActors.begin(), kActors.end(), [&](const ActorRow& r) { return r.role() == role; });
  return row == kActors.end() ? MessageTypes{} : row->takes;
}

}  // namespace troupe::actors
