#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/namespaces.h"
#include "comm/control/command_messages.h"
#include "comm/control/producer_messages.h"

namespace troupe::comm {

// Control messages of a job, one struct per type (docs/wire.md#payload). `fields` gives each member its MessagePack
// key, never reused or re-typed; one left out stays reserved. comm/control/message_codec.h makes bytes of them.

/// node -> controller: a node joins. Memory in bytes, of the machine; term_seen: highest term it knows, 0 at first.
struct Join {
  static constexpr std::uint16_t kType = 0x01;
  std::string name;
  std::uint64_t incarnation = 0;
  std::int64_t cpus = 0;
  std::int64_t memory_bytes = 0;
  /// Address other nodes reach it by.
  std::string host;
  /// Equal on processes of one machine.
  std::string boot_id;
  std::uint64_t term_seen = 0;
  /// "decoder/0#1": what the node hosts now.
  std::vector<std::string> running = {};
  /// What the node's program is; see workers/controller/join_rules.h. Before these keys: empty and 0.
  std::string version = {};
  std::uint64_t protocol = 0;
  std::uint64_t sample_revision = 0;
  /// Not on the wire: the public key that the receiver's socket proved; empty: none.
  std::string key = {};
  template <class V>
  void fields(V& v) {
    v(1, name);
    v(2, incarnation);
    v(3, cpus);
    v(4, memory_bytes);
    v(5, host);
    v(6, boot_id);
    v(7, term_seen);
    v(8, running);
    v(9, version);
    v(10, protocol);
    v(11, sample_revision);
  }
};
/// controller -> node: accepted. `config` is the resolved job YAML, `plan` the plan as JSON, `env_spec` what
/// env_spec.json holds (empty: the job has no environment). node_rank counts from 0; a node silent for lease_ms counts
/// as lost; run_dir is a folder that all nodes reach.
struct Joined {
  static constexpr std::uint16_t kType = 0x8001;
  std::uint64_t term = 0;
  std::int64_t node_rank = 0;
  std::int64_t lease_ms = 0;
  std::string config;
  std::string run_dir;
  std::string plan;
  /// A node out of the controller's reach keeps what it hosts for so long.
  std::int64_t orphan_ms = 60'000;
  std::string env_spec = {};
  template <class V>
  void fields(V& v) {
    v(1, term);
    v(2, node_rank);
    v(3, lease_ms);
    v(4, config);
    v(5, run_dir);
    v(6, plan);
    v(7, orphan_ms);
    v(8, env_spec);
  }
};
/// node -> controller, every second, answered with HeartbeatAck. `sequence` counts up from the node's start.
struct Heartbeat {
  static constexpr std::uint16_t kType = 0x04;
  std::string node;
  std::uint64_t sequence = 0;
  std::int64_t free_memory_bytes = 0;
  template <class V>
  void fields(V& v) {
    v(1, node);
    v(2, sequence);
    v(3, free_memory_bytes);
  }
};
/// The sequence answered, and the controller's term.
struct HeartbeatAck {
  static constexpr std::uint16_t kType = 0x05;
  std::uint64_t sequence = 0;
  std::uint64_t term = 0;
  /// False: the node is no member, or counts as lost; it joins again.
  bool is_member = true;
  template <class V>
  void fields(V& v) {
    v(1, sequence);
    v(2, term);
    v(3, is_member);
  }
};

/// controller -> node: start a host process (or, isolation thread, an actor in the node's process).
struct Spawn {
  static constexpr std::uint16_t kType = 0x10;
  /// "decoder/0".
  std::string actor;
  std::string role;
  /// How often this actor was started, from 0; "actor#incarnation" is unique.
  std::int64_t incarnation = 0;
  /// Process or thread.
  std::string isolation;
  std::int64_t cpus = 1;
  /// Environment variables set in the new process (cluster.node_groups[].env).
  std::map<std::string, std::string> env;
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, role);
    v(3, incarnation);
    v(4, isolation);
    v(5, cpus);
    v(6, env);
  }
};
/// controller -> node: end an actor. grace_ms pass between SIGTERM and SIGKILL, 0 kills at once; `reason` is logged.
struct Stop {
  static constexpr std::uint16_t kType = 0x11;
  std::string actor;
  std::int64_t incarnation = 0;
  std::int64_t grace_ms = 0;
  std::string reason;
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, incarnation);
    v(3, grace_ms);
    v(4, reason);
  }
};
/// actor -> controller: ready. `channels` lists the addresses its feed listens on, `weights` those on which a rollout
/// worker takes published weights.
struct ActorUp {
  static constexpr std::uint16_t kType = 0x12;
  std::string actor;
  std::int64_t incarnation = 0, pid = 0;
  std::vector<std::string> channels = {}, weights = {};
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, incarnation);
    v(3, pid);
    v(4, channels);
    v(5, weights);
  }
};
/// node -> controller: an actor is gone; its exit is confirmed, unless `unkillable`.
struct ActorExited {
  static constexpr std::uint16_t kType = 0x13;
  std::string actor;
  std::int64_t incarnation = 0;
  /// signal above 0: it was ended by that signal, and exit_code says nothing. stderr_tail: last lines that it wrote.
  std::int64_t exit_code = 0, signal = 0;
  bool killed_by_us = false;
  std::string stderr_tail = {};
  bool out_of_memory = false;
  /// Survives SIGKILL: its slots and devices are not free. A second message, without this, confirms the exit.
  bool unkillable = false;
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, incarnation);
    v(3, exit_code);
    v(4, signal);
    v(5, killed_by_us);
    v(6, stderr_tail);
    v(7, out_of_memory);
    v(8, unkillable);
  }
};
/// controller -> producer: the consumers to dial (a decoder the learners' feeds, a simulator the rollout workers, a
/// rollout worker the learners' feeds, a learner the weights' channels of rollout workers and of the evaluator); to
/// consumers: producers that are gone.
struct Peers {
  static constexpr std::uint16_t kType = 0x14;
  /// The membership epoch whose consumers these are.
  std::uint64_t fence = 0;
  /// Every address to dial.
  std::vector<std::string> channels = {};
  /// "decoder/0#1": producers whose exit is confirmed.
  std::vector<std::string> gone = {};
  /// Those of them whose death speaks against what they were making: not told to end, not out of luck.
  std::vector<std::string> died = {};
  /// Producers that survive SIGKILL: what they owe is asked of others, and their slots stay theirs.
  std::vector<std::string> unkillable = {};
  /// To learners: those of `channels` that take the versions to be evaluated and no others.
  std::vector<std::string> evaluators = {};
  template <class V>
  void fields(V& v) {
    v(1, fence);
    v(2, channels);
    v(3, gone);
    v(4, died);
    v(5, unkillable);
    v(6, evaluators);
  }
};
/// controller -> learner: form a group and resume.
struct GroupPlan {
  static constexpr std::uint16_t kType = 0x20;
  std::uint64_t fence = 0;
  /// 0 to world - 1; timeout_ms bounds joining and every collective.
  std::int64_t rank = 0;
  std::int64_t world = 1;
  /// Thread or gloo.
  std::string backend;
  /// File of this epoch's store.
  std::string store;
  std::int64_t resume_step = 0;
  /// Folder to restore; empty: initial state.
  std::string checkpoint;
  std::int64_t timeout_ms = 60'000;
  /// Held-out samples of the job.
  std::int64_t num_eval = 0;
  template <class V>
  void fields(V& v) {
    v(1, fence);
    v(2, rank);
    v(3, world);
    v(4, backend);
    v(5, store);
    v(6, resume_step);
    v(7, checkpoint);
    v(8, timeout_ms);
    v(9, num_eval);
  }
};
/// learner -> controller: in the group, restored, about to train.
struct GroupUp {
  static constexpr std::uint16_t kType = 0x22;
  std::string actor;
  std::uint64_t fence = 0;
  /// Memory accounts: shards, slots, gradients, arena, resident.
  std::map<std::string, std::int64_t> bytes = {};
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, fence);
    v(3, bytes);
  }
};
/// Both ways: leave the group of this fence. A learner sends it when its collective failed.
struct GroupAbort {
  static constexpr std::uint16_t kType = 0x23;
  std::string actor;
  std::uint64_t fence = 0;
  std::string reason;
  /// Of a learner that cannot read the checkpoint at which the group begins: its step.
  std::int64_t damaged_step = -1;
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, fence);
    v(3, reason);
    v(4, damaged_step);
  }
};
/// learner -> controller: one committed step. Losses are means over the global batch, equal on all ranks.
struct StepReport {
  static constexpr std::uint16_t kType = 0x40;
  std::string actor;
  std::uint64_t fence = 0;
  /// Steps committed so far.
  std::int64_t step = 0;
  /// Train/loss, train/dynamics_loss, time/stall ...
  std::map<std::string, double> metrics = {};
  /// Positions of the feed whose samples were VOID in this step; those of them whose sample could not be made.
  std::vector<std::int64_t> void_positions = {}, bad_positions = {};
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, fence);
    v(3, step);
    v(4, metrics);
    v(5, void_positions);
    v(6, bad_positions);
  }
};
/// actor -> controller: anything a user should read once. A line of events.jsonl; no program acts on it.
struct Event {
  static constexpr std::uint16_t kType = 0x60;
  std::string actor;
  /// "void_sample", "simulator_failed", ...
  std::string kind;
  std::string text;
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, kind);
    v(3, text);
  }
};
/// learner -> controller: the job cannot go on.
struct Fatal {
  static constexpr std::uint16_t kType = 0x64;
  std::string actor;
  std::string text;
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, text);
  }
};
/// controller -> checkpointer: write the snapshots of all ranks.
struct CheckpointBegin {
  static constexpr std::uint16_t kType = 0x41;
  std::int64_t step = 0;
  std::uint64_t fence = 0;
  /// One arena handle per rank, in rank order.
  std::vector<std::string> snapshots = {};
  /// .../step_NNNNNN.tmp-<fence>.
  std::string directory = {};
  /// Optimizer updates behind this state.
  std::int64_t updates = 0;
  /// Positions below the next one that did not count; those of them whose sample could not be made.
  std::vector<std::int64_t> void_positions = {}, bad_positions = {};
  /// As SnapshotReady of rank 0 gave them.
  std::map<std::string, std::int64_t> group_updates = {};
  std::string trainer_state = {};
  template <class V>
  void fields(V& v) {
    v(1, step);
    v(2, fence);
    v(3, snapshots);
    v(4, directory);
    v(5, updates);
    v(6, void_positions);
    v(8, group_updates);
    v(9, trainer_state);
    v(10, bad_positions);
  }
};
/// learner -> controller: this rank's snapshot of `step` lies in its arena.
struct SnapshotReady {
  static constexpr std::uint16_t kType = 0x44;
  std::string actor;
  std::int64_t rank = 0, step = 0;
  std::uint64_t fence = 0;
  std::string handle = {};
  std::int64_t updates = 0;
  /// Of rank 0: optimizer updates of each unit group (Engine::group_updates).
  std::map<std::string, std::int64_t> group_updates = {};
  /// Of rank 0: content of trainer_state.json, what its trainer needs beside the shards; empty: nothing.
  std::string trainer_state = {};
  /// Why there is no snapshot, and this step will have no checkpoint; empty: there is one.
  std::string error = {};
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, rank);
    v(3, step);
    v(4, fence);
    v(5, handle);
    v(6, updates);
    v(8, group_updates);
    v(9, trainer_state);
    v(10, error);
  }
};
/// checkpointer -> controller: written and synced, or failed with `error`. Key 3 is
/// taken: earlier builds sent a folder there, which the controller did not read.
struct CheckpointDone {
  static constexpr std::uint16_t kType = 0x42;
  std::int64_t step = 0;
  std::uint64_t fence = 0;
  std::string manifest_hash = {}, error = {};
  double seconds = 0;
  template <class V>
  void fields(V& v) {
    v(1, step);
    v(2, fence);
    v(4, manifest_hash);
    v(5, error);
    v(6, seconds);
  }
};
/// controller -> learners: the checkpoint is durable (or given up); arenas are free.
struct CheckpointCommitted {
  static constexpr std::uint16_t kType = 0x43;
  std::int64_t step = 0;
  std::uint64_t fence = 0;
  bool committed = true;
  template <class V>
  void fields(V& v) {
    v(1, step);
    v(2, fence);
    v(3, committed);
  }
};
/// controller -> learners: stop after the current step, with a checkpoint. controller -> further nodes: the job has
/// ended.
struct Finish {
  static constexpr std::uint16_t kType = 0x45;
  std::string reason;
  template <class V>
  void fields(V& v) {
    v(1, reason);
  }
};
/// learner -> controller: trained to the end (or to where Finish caught it).
struct Finished {
  static constexpr std::uint16_t kType = 0x46;
  std::string actor;
  std::uint64_t fence = 0;
  std::int64_t step = 0;
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, fence);
    v(3, step);
  }
};
/// evaluator -> controller: it plays the episodes of a step, from the beginning or, after a restart, from where the
/// process before it ended.
struct EvalBegun {
  static constexpr std::uint16_t kType = 0x48;
  std::string actor;
  std::uint64_t fence = 0;
  std::int64_t step = 0;
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, fence);
    v(3, step);
  }
};
/// learner -> controller: metrics of a held-out evaluation. evaluator -> controller: metrics of played episodes.
struct EvalReport {
  static constexpr std::uint16_t kType = 0x47;
  std::string actor;
  std::uint64_t fence = 0;
  std::int64_t step = 0;
  std::map<std::string, double> metrics = {};
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, fence);
    v(3, step);
    v(4, metrics);
  }
};

/// Any control message.
using Message = std::variant<Join, Joined, Heartbeat, HeartbeatAck, Spawn, Stop, ActorUp, ActorExited, Peers, GroupPlan,
                             GroupUp, GroupAbort, StepReport, Event, ProducerTimes, BadClip, StuckProducer, Quarantined,
                             Fatal, CheckpointBegin, SnapshotReady, CheckpointDone, CheckpointCommitted, Finish,
                             Finished, EvalBegun, EvalReport, Scale, StatusQuery, StopJob, Reply>;

}  // namespace troupe::comm
