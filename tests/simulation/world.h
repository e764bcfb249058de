#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/loader.h"
#include "tests/simulation/judge.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/wire.h"
#include "workers/checkpoint/ledger.h"
#include "workers/controller/service.h"
#include "workers/node/node_membership.h"
#include "workers/node/node_role.h"

namespace troupe::testing {

inline constexpr std::int64_t kRanks = 2;
inline constexpr std::size_t kNodes = 3;
/// Which group trained each step of a state, oldest first: the whole of what a learner here has learnt.
using History = std::vector<std::uint64_t>;

/// What the job says, with the seconds since its begin.
struct Said final : RunOutput {
  Said(const SimClock& of, std::vector<std::string>& into, Judge& told) : clock(of), lines(into), judge(told) {}
  const SimClock& clock;
  std::vector<std::string>& lines;
  Judge& judge;
  void line(Severity, const std::string& text) override {
    judge.tells();
    lines.push_back(fmt::format("{:.3f} {}", SimClock::seconds_to(clock.now()), text));
  }
  void live(const LiveLine&) override { judge.tells(); }
  void progress(const std::string&) override { judge.tells(); }
};

/// One start of an actor: a process of its own, on a node.
struct SimActor {
  ActorIdentity identity;
  std::string role;
  std::size_t node = 0;
  std::shared_ptr<SimProcess> process;
  bool is_hung = false;
  /// Not even SIGKILL ends it before.
  SimTime survives_until{};
  /// Its node's process, that node's list of what it hosts, and the agent's name.
  std::shared_ptr<SimProcess> owner;
  std::shared_ptr<HostedActors> hosted;
  std::string agent;
  NodeRole::OnEnd on_end;
  // Of a learner.
  std::uint64_t fence = 0;
  bool is_in_group = false, finishes = false, is_settling = false;
  std::int64_t settling_step = -1;
  History history;
  std::unique_ptr<LedgerWriter> ledger;
  // Of an actor that feeds learners: their instances.
  std::set<std::string> feeds;
  // Of an evaluator: it plays.
  bool is_playing = false;
};

/// A node's process: its agent and its membership.
struct SimNode {
  std::size_t host = 0;
  std::int64_t incarnation = 0;
  std::shared_ptr<SimProcess> process;
  std::shared_ptr<HostedActors> hosted = std::make_shared<HostedActors>();
  std::unique_ptr<NodeRole> role;
  std::unique_ptr<NodeMembership> membership;
  std::unique_ptr<NodeJudge> judge;
  std::string address, agent;
  std::vector<Message> early;
};

/// A simulated job from its begin to its end (simulate()). Its parts are in controller.cpp, nodes.cpp, actors.cpp and
/// learners.cpp; faults in faults.cpp; what is judged of the world as a whole in ending.cpp.
class World {
 public:
  World(const Schedule& schedule, std::string folder);
  Outcome run();

 private:
  void breach(const std::string& what);
  std::uint64_t in(std::uint64_t n) { return draw_() % n; }
  /// The next thing happens; false: there is none before `until`, or there is no end of them.
  bool go_on(SimTime until);
  /// The role whose actors feed the learners, and those that may be scaled.
  std::string feeder() const;
  std::vector<std::string> pools() const;
  Millis step_timeout() const { return schedule_.step > 10s ? Millis(60'000) : Millis(20'000); }

  // The controller.
  JobController::Setup setup();
  std::vector<std::unique_ptr<MetricSink>> sinks() const;
  void begin_controller();
  /// As `troupe run`: begins when cluster.num_nodes have asked to join.
  void await_nodes(const std::shared_ptr<SimProcess>& process);
  void tick(const std::shared_ptr<SimProcess>& process);
  void controller_hears(const std::string& from, const Message& message);
  /// The controller gets a message of a sender that has no process here, such as the command line.
  void asks(const std::string& from, const Message& message);
  /// The controller has just worked: what it has committed is judged.
  void look();
  /// How long the controller's disk takes for one piece of work.
  Millis disk_takes();
  void record_job();
  /// events.jsonl cannot be written at first.
  bool loses_events() const { return schedule_.seed % 64 == 9; }
  /// The job that is written into the run directory, for those who read it there.
  static const LoadedConfig& recorded_job();

  /// Judges a message by the rights table, and counts the right as used.
  void note(const std::string& from, const std::string& to, const Message& message);

  // Nodes: their processes and agents.
  void make_agent(SimNode& node);
  void agent_hears(SimNode& node, const std::string& from, const Message& message);
  void begin_node(std::size_t host, bool is_rival = false);
  void node_hears(SimNode& node, const Message& message);
  void node_turn(const std::shared_ptr<SimNode>& node);
  /// Its process ends, and with it what it hosts.
  void end_node(SimNode& node);

  // Actors.
  void begin_actor(const SimNode& node, const ActorIdentity& identity, const std::string& role, NodeRole::OnEnd on_end);
  /// `failure` empty: it ended as told.
  void end_actor(const std::string& instance, const std::string& failure, Millis after);
  /// Its node's table of processes has seen it end so.
  void end_process(const std::shared_ptr<SimActor>& actor, const ProcessExit& exit);
  void drop_actor(const std::string& instance);
  void in_actor(const std::shared_ptr<SimActor>& actor, Millis delay, std::function<void()> work);
  void say(const std::shared_ptr<SimActor>& actor, const Message& message);
  /// Holds all that `process` sends from now on, if a fault waits for such a message.
  void hold_message(const std::shared_ptr<SimProcess>& process, const std::string& role, const Message& message);
  void actor_hears(const std::shared_ptr<SimActor>& actor, const Message& message);
  void hear_peers(SimActor& actor, const Peers& peers);
  /// What makers of samples tell of themselves.
  void report_times(const std::shared_ptr<SimActor>& actor);
  void hang(const std::shared_ptr<SimActor>& actor);
  /// What an evaluator does when it has come up, when weights are due, and when it has played.
  void evaluate(const std::shared_ptr<SimActor>& actor);
  bool has_evaluator() const { return schedule_.makers == Schedule::Makers::simulators; }
  std::shared_ptr<SimActor> actor_of(const std::string& prefix, std::uint32_t number = 0);

  // The group of learners, and what the checkpointer writes.
  struct Group {
    std::set<std::string> members;  // instances
    bool is_broken = false, runs = false;
  };
  void join_group(const std::shared_ptr<SimActor>& actor, const GroupPlan& plan);
  void leave_group(const std::shared_ptr<SimActor>& actor, const std::string& reason);
  /// The others notice after `delay`.
  void break_group(std::uint64_t fence, Millis delay);
  std::vector<std::shared_ptr<SimActor>> members(std::uint64_t fence);
  void step_soon(std::uint64_t fence);
  bool is_fed(const SimActor& learner);
  /// One step of a whole group: all ranks or none.
  void step(std::uint64_t fence);
  void report_step(const std::shared_ptr<SimActor>& rank);
  void append_ledger(SimActor& rank, const StepReport& report);
  bool done(const SimActor& rank) const { return static_cast<std::int64_t>(rank.history.size()) == schedule_.steps; }
  bool wants_snapshot(const SimActor& rank) const {
    return static_cast<std::int64_t>(rank.history.size()) % schedule_.every == 0;
  }
  void snapshot(const std::shared_ptr<SimActor>& rank);
  void conclude(std::uint64_t fence, const std::vector<std::shared_ptr<SimActor>>& ranks);
  void write(const std::shared_ptr<SimActor>& actor, const CheckpointBegin& begin);
  /// ledger.json of the product, and in it the history of the snapshots.
  std::string ledger_of(const CheckpointBegin& begin) const;
  static Result<History> history_in(const std::string& checkpoint);

  // Faults.
  void strike(const Fault& fault);
  void strike_actor(const Fault& fault);
  void strike_node(const Fault& fault);
  void strike_job(const Fault& fault);
  void damage_checkpoint(std::uint32_t target);
  std::int64_t kept_checkpoints() const { return 1 + static_cast<std::int64_t>(schedule_.seed % 3); }
  void introduce_stranger(std::uint32_t which);
  /// The kernel kills what node/0 hosted with it.
  void restart_controller(std::uint32_t how);

  // Judgement.
  /// Every 5 s.
  void watch();
  /// What lives on nodes in contact is what the controller's table says, within 45 s.
  void watch_reality();
  void watch_nodes();
  void watch_progress();
  /// `what` is wrong now; it is a breach once it has been wrong for `longest`.
  void wrong_for(const std::string& what, SimTime::duration longest);
  bool is_in_contact(const SimProcess& process) const;
  void judge_end();
  bool may_fail(const std::string& why) const;
  /// The newest checkpoint holds every step once, trained by the group that owned it.
  void judge_history();
  /// state.db says what lies on disk.
  void judge_catalogue();
  /// What commands read of the run.
  void judge_run_directory();
  void judge_statistics();
  void judge_neighbours();
  void judge_events();

  const Schedule schedule_;
  const std::string folder_;
  std::mt19937_64 draw_;
  SimClock clock_;
  SimWire wire_;
  Outcome outcome_;
  Judge judge_;
  Said output_;
  std::unique_ptr<StateDb> db_;
  RunDirectory run_;
  SimTime term_began_{};
  std::shared_ptr<SimProcess> controller_;
  std::unique_ptr<Membership> membership_;
  std::shared_ptr<PeerBook> peers_;
  std::unique_ptr<ControllerService> service_;
  std::shared_ptr<SimNode> own_agent_;
  bool is_started_ = false, hangs_write_ = false, hangs_start_ = false, hangs_disk_ = false, outlives_job_ = false;
  bool has_bad_samples_ = false, breaks_groups_ = false;
  int failing_writes_ = 0, times_told_to_end_ = 0;
  // Kinds of faults that have struck, where they allow the job to fail.
  std::set<Fault::Kind> excuses_;
  SimTime slow_until_{}, slow_disk_until_{};
  std::map<std::string, std::int64_t> graces_;
  std::vector<Fault> held_messages_;
  std::vector<std::pair<std::string, Message>> waiting_;
  std::vector<std::shared_ptr<SimNode>> nodes_;
  std::map<std::size_t, std::shared_ptr<SimNode>> newest_;
  std::map<std::string, std::shared_ptr<SimActor>> actors_;
  std::set<std::string> every_start_;
  std::map<std::uint64_t, Group> groups_;
  std::map<std::pair<std::uint64_t, std::int64_t>, History> snapshots_;
  // Fence and step of the newest weights to be evaluated, and of the last that were.
  std::pair<std::uint64_t, std::int64_t> due_{0, 0}, evaluated_{0, 0};
  std::pair<std::uint64_t, std::int64_t> committed_{0, 0};
  // Whose checkpoint cannot be read.
  std::int64_t damaged_step_ = -1;
  std::optional<int> exit_code_;
  std::int64_t steps_at_once_ = 0;
  // What is wrong, and since when; it is asked again at every watch().
  std::map<std::string, SimTime> wrong_since_;
  std::set<std::string> wrong_now_;
  std::pair<std::string, SimTime> progress_;
};

}  // namespace troupe::testing
