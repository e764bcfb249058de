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

#include "tests/simulation/schedule.h"
#include "tests/simulation/wire.h"
#include "workers/controller/service.h"
#include "workers/node/node_membership.h"
#include "workers/node/node_role.h"

namespace troupe::testing {

inline constexpr std::int64_t kSteps = 60, kEvery = 5, kRanks = 2;
inline constexpr std::size_t kNodes = 3;
/// Which group trained each step of a state, oldest first: the whole of what a learner here has learnt.
using History = std::vector<std::uint64_t>;

/// What the job says, with the seconds since its begin.
struct Said final : RunOutput {
  Said(const SimClock& of, std::vector<std::string>& into) : clock(of), lines(into) {}
  const SimClock& clock;
  std::vector<std::string>& lines;
  void line(Severity, const std::string& text) override {
    lines.push_back(fmt::format("{:.3f} {}", Seconds(clock.now() - SimTime(std::chrono::hours(1))).count(), text));
  }
  void live(const LiveLine&) override {}
  void progress(const std::string&) override {}
};

/// One start of an actor: a process of its own, on a node.
struct SimActor {
  ActorIdentity identity;
  std::string role;
  std::size_t node = 0;
  std::shared_ptr<SimProcess> process;
  bool is_hung = false;
  NodeRole::OnEnd on_end;
  // Of a learner.
  std::uint64_t fence = 0;
  bool is_in_group = false, finishes = false, is_settling = false;
  std::int64_t settling_step = -1;
  History history;
  std::set<std::string> producers;
  // Of a decoder: instances of learners that it feeds.
  std::set<std::string> feeds;
};

/// A node's process: its agent and its membership.
struct SimNode {
  std::size_t host = 0;
  std::int64_t incarnation = 0;
  std::shared_ptr<SimProcess> process;
  std::shared_ptr<HostedActors> hosted = std::make_shared<HostedActors>();
  std::unique_ptr<NodeRole> role;
  std::unique_ptr<NodeMembership> membership;
  std::string address, agent;
  std::vector<Message> early;
};

/// A simulated job from its begin to its end (simulate()). Its parts are in controller.cpp, nodes.cpp, actors.cpp and
/// learners.cpp; faults and the judgement at the end in simulation.cpp.
class World {
 public:
  World(const Schedule& schedule, std::string folder)
      : schedule_(schedule), folder_(std::move(folder)), draw_(schedule.seed ^ 0x9E3779B97F4A7C15u) {}
  Outcome run();

 private:
  void breach(const std::string& what) { outcome_.breaches.push_back(what); }
  std::uint64_t in(std::uint64_t n) { return draw_() % n; }

  // The controller.
  JobController::Setup setup();
  void begin_controller();
  /// As `troupe run`: begins when cluster.num_nodes have asked to join.
  void await_nodes(const std::shared_ptr<SimProcess>& process);
  void tick(const std::shared_ptr<SimProcess>& process);
  /// The controller has just worked: what it has committed is judged.
  void look();

  // Nodes: their processes and agents.
  void make_agent(SimNode& node);
  void begin_node(std::size_t host, bool is_rival = false);
  void node_hears(SimNode& node, const Message& message);
  void node_turn(const std::shared_ptr<SimNode>& node);
  /// Its process ends, and with it what it hosts.
  void end_node(SimNode& node);

  // Actors.
  void begin_actor(std::size_t host, const ActorIdentity& identity, const std::string& role, NodeRole::OnEnd on_end);
  /// `failure` empty: it ended as told.
  void end_actor(const std::string& instance, const std::string& failure, Millis after);
  std::shared_ptr<SimProcess> newest_host_process(std::size_t host);
  void drop_actor(const std::string& instance);
  void in_actor(const std::shared_ptr<SimActor>& actor, Millis delay, std::function<void()> work);
  void say(const std::shared_ptr<SimActor>& actor, const Message& message);
  void actor_hears(const std::shared_ptr<SimActor>& actor, const Message& message);
  void hear_peers(SimActor& actor, const Peers& peers);

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
  static bool done(const SimActor& rank) { return static_cast<std::int64_t>(rank.history.size()) == kSteps; }
  static bool wants_snapshot(const SimActor& rank) { return rank.history.size() % kEvery == 0; }
  void snapshot(const std::shared_ptr<SimActor>& rank);
  void conclude(std::uint64_t fence, const std::vector<std::shared_ptr<SimActor>>& ranks);
  void write(const std::shared_ptr<SimActor>& actor, const CheckpointBegin& begin);

  // Faults.
  void strike(const Fault& fault);
  /// The kernel kills what node/0 hosted with it.
  void restart_controller();

  // Judgement.
  /// Every 5 s: two starts of one actor that both can be reached do not live side by side for long.
  void watch_twins();
  bool is_within_reach(const SimActor& actor);
  void judge_end();
  /// The newest checkpoint holds every step once, trained by the group that owned it.
  void judge_history();

  const Schedule schedule_;
  const std::string folder_;
  std::mt19937_64 draw_;
  SimClock clock_;
  SimWire wire_{clock_, draw_};
  Outcome outcome_;
  Said output_{clock_, outcome_.said};
  std::unique_ptr<StateDb> db_;
  RunDirectory run_;
  SimTime term_began_{};
  std::shared_ptr<SimProcess> controller_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<ControllerService> service_;
  std::unique_ptr<SimNode> own_agent_;
  bool is_started_ = false, hangs_write_ = false, has_failed_writes_ = false;
  int failing_writes_ = 0, times_told_to_end_ = 0;
  std::vector<std::pair<std::string, Message>> waiting_;
  std::vector<std::shared_ptr<SimNode>> nodes_;
  std::map<std::size_t, std::shared_ptr<SimNode>> newest_;
  std::map<std::string, std::shared_ptr<SimActor>> actors_;
  std::map<std::uint64_t, Group> groups_;
  std::map<std::pair<std::uint64_t, std::int64_t>, History> snapshots_;
  std::pair<std::uint64_t, std::int64_t> committed_{0, 0};
  std::optional<int> exit_code_;
  // Actors of which two starts live, and since when.
  std::map<std::string, SimTime> twins_since_;
};

}  // namespace troupe::testing
