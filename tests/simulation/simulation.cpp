#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/file_io.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/wire.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/writer.h"
#include "workers/controller/service.h"
#include "workers/node/node_membership.h"
#include "workers/node/node_role.h"

namespace troupe::testing {

namespace {

constexpr std::int64_t kSteps = 60, kEvery = 5, kRanks = 2;
constexpr std::size_t kNodes = 3;
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

Manifest manifest_of(std::int64_t step, std::uint64_t fence) {
  Manifest manifest;
  manifest.step = step;
  manifest.fence = fence;
  manifest.world = kRanks;
  const ManifestParam bias{.name = "bias", .shape = {1}, .offset = 0, .numel = 1};
  manifest.units = {{.name = "unit", .layout_class = "unit", .params = {bias}, .numel = 1, .layout_hash = 1}};
  return manifest;
}

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

class World {
 public:
  World(const Schedule& schedule, std::string folder)
      : schedule_(schedule), folder_(std::move(folder)), draw_(schedule.seed ^ 0x9E3779B97F4A7C15u) {}

  Outcome run() {
    std::filesystem::remove_all(folder_);
    db_ = std::move(StateDb::open(":memory:")).value();
    run_ = RunDirectory::create(folder_, "sim", "run").value();
    begin_controller();
    for (std::size_t n = 1; n < kNodes; ++n) begin_node(n);
    for (const Fault& fault : schedule_.faults) clock_.after(fault.at, [this, fault] { strike(fault); });
    const SimTime deadline = clock_.now() + std::chrono::hours(2);
    const SimTime begin = clock_.now();
    while (!exit_code_ && clock_.step(deadline)) continue;
    if (!exit_code_) {
      breach(fmt::format("the job did not end: {}", service_->job().status_json(clock_.now())));
    } else {
      outcome_.lasted = std::chrono::duration_cast<Millis>(clock_.now() - begin);
      judge_end();
    }
    outcome_.deliveries = wire_.deliveries;
    outcome_.exit_code = exit_code_.value_or(-1);
    return outcome_;
  }

 private:
  void breach(const std::string& what) { outcome_.breaches.push_back(what); }
  std::uint64_t in(std::uint64_t n) { return draw_() % n; }

  // ---- the controller and its machine ----

  JobController::Setup setup() {
    JobController::Setup setup;
    setup.config.job.name = "sim";
    setup.config.training.steps = kSteps;
    setup.config.training.step_timeout = Seconds(20);
    setup.config.checkpoint.timeout = Seconds(15);
    setup.config.cluster.start_timeout = Seconds(60);
    setup.config.cluster.num_nodes = static_cast<std::int64_t>(kNodes);
    setup.config.cluster.restart.budget = 20;
    setup.config.cluster.restart.component_budget = 60;
    setup.config.cluster.elastic["decoder"] = {.min = 1, .max = 16};
    setup.plan.job = "sim";
    for (std::size_t n = 0; n < kNodes; ++n)
      setup.plan.nodes.push_back({.name = n == 0 ? "local" : fmt::format("n{}", n), .cpus = 4, .memory_bytes = 1000});
    const auto add = [&](const std::string& role, std::int64_t rank, std::int64_t node) {
      setup.plan.actors.push_back({.name = fmt::format("{}/{}", role, rank),
                                   .role = role,
                                   .process_rank = rank,
                                   .node = node,
                                   .cpus = 1,
                                   .isolation = "thread",
                                   .memory_bytes = 100});
    };
    for (std::int64_t rank = 0; rank < kRanks; ++rank) add("learner", rank, 0);
    for (std::int64_t rank = 0; rank < 6; ++rank) add("decoder", rank, rank % static_cast<std::int64_t>(kNodes));
    add("checkpointer", 0, 0);
    setup.plan.collective = "gloo";
    setup.plan.batch = {.global = 4, .micro = 2, .data_ranks = kRanks, .accumulation = 1};
    setup.run = run_;
    setup.runtime_dir = folder_;
    setup.term = db_->next_term().value();
    if (const auto newest = newest_valid(run_.checkpoints(), CheckpointCheck::sizes)) {
      setup.resume_step = newest->step;
      setup.resume_checkpoint = newest->directory;
    }
    return setup;
  }

  void begin_controller() {
    term_began_ = clock_.now();
    controller_ = std::make_shared<SimProcess>(0, OrderedDelivery::Limits{.tries = 30});
    membership_ = std::make_unique<Membership>(NodeSnapshot{.name = "local", .cpus = 4, .memory_bytes = 1000}, 10s);
    const auto process = controller_;
    service_ = std::make_unique<ControllerService>(
        ControllerService::Setup{.job = setup(),
                                 .config_yaml = "",
                                 .lease = 10s,
                                 .orphan = 60s,
                                 .forget = [process](const std::string& name) { process->delivery.forget(name); },
                                 .wall_seconds = [] { return 0.0; }},
        *membership_, *db_, std::vector<std::unique_ptr<MetricSink>>{},
        [this, process](const std::string& to, const Message& message) {
          wire_.send(process, "controller", to, message);
        },
        output_);
    controller_->names["controller"] = [this](const std::string& from, const Message& message) {
      if (!is_started_) {
        waiting_.emplace_back(from, message);
        return;
      }
      service_->handle(from, message, clock_.now());
      look();
    };
    own_agent_ = std::make_unique<SimNode>();
    own_agent_->host = 0;
    own_agent_->process = controller_;
    own_agent_->agent = "node/0#0";
    make_agent(*own_agent_);
    wire_.add(controller_);
    is_started_ = false;
    waiting_.clear();
    await_nodes(controller_);
  }

  /// As `troupe run`: begins when cluster.num_nodes have asked to join.
  void await_nodes(const std::shared_ptr<SimProcess>& process) {
    if (process != controller_) return;
    std::set<std::string> names;
    for (const auto& [from, message] : waiting_) {
      if (const auto* join = std::get_if<Join>(&message)) names.insert(join->name);
    }
    if (names.size() + 1 < kNodes && clock_.now() - term_began_ < 100s) {
      clock_.after(500ms, [this, process] { wire_.run_in(process, [this, process] { await_nodes(process); }); });
      return;
    }
    is_started_ = true;
    for (const auto& [from, message] : waiting_) {
      if (const auto* join = std::get_if<Join>(&message)) (void)membership_->join(*join, from, clock_.now());
    }
    service_->start(clock_.now());
    for (const auto& [from, message] : std::exchange(waiting_, {})) service_->handle(from, message, clock_.now());
    tick(process);
  }

  void tick(const std::shared_ptr<SimProcess>& process) {
    if (process != controller_) return;
    service_->tick(clock_.now());
    look();
    if (const auto code = service_->exit_code()) {
      exit_code_ = code;
      return;
    }
    clock_.after(250ms, [this, process] { wire_.run_in(process, [this, process] { tick(process); }); });
  }

  /// The controller has just worked: what it has committed is judged.
  void look() {
    const std::int64_t step = service_->job().checkpoints().committed_step();
    if (step == committed_.second) return;
    const auto entries = list_checkpoints(run_.checkpoints());
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.step == step; });
    if (entry == entries.end()) return breach(fmt::format("step {} is committed and not on disk", step));
    const std::uint64_t stands =
        nlohmann::json::parse(service_->job().status_json(clock_.now()))["fence"].get<std::uint64_t>();
    const std::pair<std::uint64_t, std::int64_t> commit{entry->manifest.fence, step};
    if (commit.first != stands)
      breach(fmt::format("step {} of fence {:x} was committed while {:x} stood", step, commit.first, stands));
    if (commit <= committed_)
      breach(fmt::format("step {} of fence {:x} was committed after step {} of {:x}", step, commit.first,
                         committed_.second, committed_.first));
    committed_ = commit;
  }

  // ---- nodes ----

  void make_agent(SimNode& node) {
    const auto process = node.process;
    const std::string agent = node.agent;
    const std::size_t host = node.host;
    node.role = std::make_unique<NodeRole>(
        NodeRole::Launch{}, node.hosted,
        [this, host](const ActorIdentity& identity, const std::string& role, NodeRole::OnEnd on_end) {
          begin_actor(host, identity, role, std::move(on_end));
        },
        [this](const std::string& instance) { end_actor(instance, "", 20ms); },
        [this, process, agent](const std::string& to, const Message& message) {
          wire_.send(process, agent, to, message);
        });
    node.role->start();
    process->names[agent] = [role = node.role.get()](const std::string& from, const Message& message) {
      role->handle(from, message);
    };
  }

  void begin_node(std::size_t host, bool is_rival = false) {
    auto node = std::make_shared<SimNode>();
    node->host = host;
    node->incarnation = static_cast<std::int64_t>(draw_() >> 1);
    node->address = fmt::format("n{}#{}", host, node->incarnation);
    node->process = std::make_shared<SimProcess>(host, OrderedDelivery::Limits{});
    node->membership =
        std::make_unique<NodeMembership>(Join{.name = fmt::format("n{}", host),
                                              .incarnation = static_cast<std::uint64_t>(node->incarnation),
                                              .cpus = 4,
                                              .memory_bytes = 1000,
                                              .host = "",
                                              .boot_id = ""});
    node->process->names[node->address] = [this, weak = std::weak_ptr(node)](const std::string&,
                                                                             const Message& message) {
      if (const auto held = weak.lock()) node_hears(*held, message);
    };
    wire_.add(node->process);
    nodes_.push_back(node);
    if (!is_rival) newest_[host] = node;
    node_turn(node);
  }

  void node_hears(SimNode& node, const Message& message) {
    if (const auto* joined = std::get_if<Joined>(&message)) {
      node.membership->on(*joined, clock_.now());
      if (node.role || node.membership->phase() != MembershipPhase::member) return;
      node.agent = fmt::format("node/{}#{}", joined->node_rank, node.incarnation);
      make_agent(node);
      for (const Message& early : std::exchange(node.early, {})) node.role->handle("controller", early);
    } else if (const auto* ack = std::get_if<HeartbeatAck>(&message)) {
      node.membership->on(*ack, clock_.now());
    } else if (std::holds_alternative<Finish>(message)) {
      end_node(node);
    } else if (const auto* reply = std::get_if<Reply>(&message)) {
      node.membership->on(*reply);
      end_node(node);
    } else if (node.role) {
      node.role->handle("controller", message);
    } else {
      node.early.push_back(message);
    }
  }

  void node_turn(const std::shared_ptr<SimNode>& node) {
    if (!node->process->is_alive) return;
    if (auto message = node->membership->tick(node->hosted->list(), 0, clock_.now()))
      wire_.send(node->process, node->address, "controller", *message);
    (void)node->membership->wants_new_line();
    if (node->membership->phase() == MembershipPhase::orphaned) {
      const std::size_t host = node->host;
      end_node(*node);
      if (!exit_code_) begin_node(host);
      return;
    }
    const auto wait = std::max(Millis(10), std::chrono::ceil<Millis>(node->membership->next() - clock_.now()));
    clock_.after(wait, [this, node] { wire_.run_in(node->process, [this, node] { node_turn(node); }); });
  }

  /// Its process ends, and with it what it hosts.
  void end_node(SimNode& node) {
    node.process->is_alive = false;
    for (const std::string& instance : node.hosted->list()) drop_actor(instance);
  }

  // ---- actors ----

  void begin_actor(std::size_t host, const ActorIdentity& identity, const std::string& role, NodeRole::OnEnd on_end) {
    auto actor = std::make_shared<SimActor>();
    actor->identity = identity;
    actor->role = role;
    actor->node = host;
    actor->on_end = std::move(on_end);
    actor->process = std::make_shared<SimProcess>(host, OrderedDelivery::Limits{});
    actor->process->names[identity.instance()] = [this, weak = std::weak_ptr(actor)](const std::string&,
                                                                                     const Message& message) {
      const auto held = weak.lock();
      if (held && !held->is_hung) actor_hears(held, message);
    };
    actors_[identity.instance()] = actor;
    wire_.add(actor->process);
    in_actor(actor, Millis(50 + in(500)), [this, actor] {
      ActorUp up{.actor = actor->identity.actor, .incarnation = actor->identity.incarnation, .pid = 1};
      if (actor->role == "learner")
        up.channels = {"shm:" + actor->identity.instance(), "zmq:" + actor->identity.instance()};
      say(actor, up);
    });
  }

  /// `failure` empty: it ended as told.
  void end_actor(const std::string& instance, const std::string& failure, Millis after) {
    clock_.after(after, [this, instance, failure] {
      const auto found = actors_.find(instance);
      if (found == actors_.end()) return;
      const auto actor = found->second;
      const auto host = newest_host_process(actor->node);
      drop_actor(instance);
      if (host && host->is_alive) wire_.run_in(host, [actor, failure] { actor->on_end(failure); });
    });
  }

  std::shared_ptr<SimProcess> newest_host_process(std::size_t host) {
    if (host == 0) return controller_;
    for (const auto& node : nodes_) {
      if (node->host == host && node->process->is_alive) return node->process;
    }
    return nullptr;
  }

  void drop_actor(const std::string& instance) {
    const auto found = actors_.find(instance);
    if (found == actors_.end()) return;
    const auto actor = found->second;
    actor->process->is_alive = false;
    actors_.erase(found);
    if (actor->role == "learner" && actor->is_in_group) break_group(actor->fence, Millis(20 + in(200)));
  }

  void in_actor(const std::shared_ptr<SimActor>& actor, Millis delay, std::function<void()> work) {
    clock_.after(delay, [this, actor, work = std::move(work)] {
      if (!actor->is_hung) wire_.run_in(actor->process, work);
    });
  }
  void say(const std::shared_ptr<SimActor>& actor, const Message& message) {
    wire_.send(actor->process, actor->identity.instance(), "controller", message);
  }

  void actor_hears(const std::shared_ptr<SimActor>& actor, const Message& message) {
    if (const auto* peers = std::get_if<Peers>(&message)) {
      hear_peers(*actor, *peers);
    } else if (const auto* plan = std::get_if<GroupPlan>(&message)) {
      join_group(actor, *plan);
    } else if (const auto* abort = std::get_if<GroupAbort>(&message)) {
      if (abort->fence == actor->fence && actor->is_in_group) leave_group(actor, "told to");
    } else if (const auto* settled = std::get_if<CheckpointCommitted>(&message)) {
      if (settled->step == actor->settling_step && settled->fence == actor->fence) actor->is_settling = false;
    } else if (std::holds_alternative<Finish>(message)) {
      actor->finishes = true;
    } else if (const auto* begin = std::get_if<CheckpointBegin>(&message)) {
      write(actor, *begin);
    }
  }

  void hear_peers(SimActor& actor, const Peers& peers) {
    if (actor.role == "decoder" && peers.gone.empty()) {
      actor.feeds.clear();
      for (const std::string& address : peers.channels) actor.feeds.insert(address.substr(4));
    }
    for (const std::string& gone : peers.gone) {
      actor.producers.erase(gone);
      const auto found = actors_.find(gone);
      if (found != actors_.end() && found->second->node == 0)
        breach(fmt::format("{} counts as gone and can still write", gone));
    }
  }

  // ---- the group of learners ----

  struct Group {
    std::set<std::string> members;  // instances
    bool is_broken = false, runs = false;
  };

  void join_group(const std::shared_ptr<SimActor>& actor, const GroupPlan& plan) {
    if (plan.fence <= actor->fence)
      return breach(
          fmt::format("{} got the fence {:x} after {:x}", actor->identity.instance(), plan.fence, actor->fence));
    if (actor->is_in_group) break_group(actor->fence, 20ms);
    actor->fence = plan.fence;
    actor->is_in_group = true;
    actor->finishes = actor->is_settling = false;
    actor->history.clear();
    if (!plan.checkpoint.empty()) {
      const auto text = read_file(plan.checkpoint + "/ledger.json");
      if (!text) return breach(fmt::format("{} cannot be restored: {}", plan.checkpoint, text.error().message()));
      actor->history = nlohmann::json::parse(*text).get<History>();
    }
    if (static_cast<std::int64_t>(actor->history.size()) != plan.resume_step)
      breach(fmt::format("{} has {} steps and is to resume at {}", plan.checkpoint, actor->history.size(),
                         plan.resume_step));
    in_actor(actor, Millis(100 + in(400)), [this, actor, plan] {
      if (actor->fence != plan.fence || !actor->is_in_group) return;
      Group& group = groups_[plan.fence];
      for (const std::string& other : group.members) {
        if (other.starts_with(actor->identity.actor + "#") && other != actor->identity.instance())
          breach(fmt::format("{} and {} are one rank of {:x}", other, actor->identity.instance(), plan.fence));
      }
      if (group.is_broken) return leave_group(actor, "a peer is gone");
      group.members.insert(actor->identity.instance());
      say(actor, GroupUp{.actor = actor->identity.actor, .fence = plan.fence});
      if (static_cast<std::int64_t>(group.members.size()) == kRanks) {
        group.runs = true;
        step_soon(plan.fence);
      } else {
        // the collective's own deadline
        in_actor(actor, 20s, [this, actor, fence = plan.fence] {
          if (actor->fence == fence && actor->is_in_group && !groups_[fence].runs) leave_group(actor, "timed out");
        });
      }
    });
  }

  void leave_group(const std::shared_ptr<SimActor>& actor, const std::string& reason) {
    actor->is_in_group = false;
    actor->is_settling = false;
    groups_[actor->fence].is_broken = true;
    say(actor, GroupAbort{.actor = actor->identity.actor, .fence = actor->fence, .reason = reason});
    break_group(actor->fence, Millis(20 + in(200)));
  }

  /// The others notice after `delay`.
  void break_group(std::uint64_t fence, Millis delay) {
    groups_[fence].is_broken = true;
    clock_.after(delay, [this, fence] {
      for (const auto& actor : members(fence)) {
        if (actor->is_in_group && actor->fence == fence)
          in_actor(actor, 0ms, [this, actor, fence] {
            if (actor->is_in_group && actor->fence == fence) leave_group(actor, "a peer is gone");
          });
      }
    });
  }

  std::vector<std::shared_ptr<SimActor>> members(std::uint64_t fence) {
    std::vector<std::shared_ptr<SimActor>> found;
    for (const auto& [instance, actor] : actors_) {
      if (actor->role == "learner" && actor->fence == fence && actor->is_in_group) found.push_back(actor);
    }
    return found;
  }

  void step_soon(std::uint64_t fence) {
    clock_.after(Millis(700 + in(600)), [this, fence] { step(fence); });
  }

  bool is_fed(const SimActor& learner) {
    return std::any_of(actors_.begin(), actors_.end(), [&](const auto& entry) {
      const SimActor& maker = *entry.second;
      const bool is_near = maker.node == 0 || (wire_.silent_until[maker.node] <= clock_.now() &&
                                               wire_.deaf_until[maker.node] <= clock_.now());
      return maker.role == "decoder" && !maker.is_hung && maker.process->stopped_until <= clock_.now() && is_near &&
             maker.feeds.contains(learner.identity.instance());
    });
  }

  /// One step of a whole group: all ranks or none.
  void step(std::uint64_t fence) {
    Group& group = groups_[fence];
    const auto ranks = members(fence);
    if (group.is_broken || static_cast<std::int64_t>(ranks.size()) != kRanks) return;
    for (const auto& rank : ranks) {
      if (rank->is_hung || rank->process->stopped_until > clock_.now()) {
        // the others wait for it until the collective's deadline
        clock_.after(20s, [this, fence, rank] {
          if (rank->is_hung && rank->is_in_group && rank->fence == fence) {
            for (const auto& other : members(fence)) {
              if (!other->is_hung) leave_group(other, "timed out");
            }
          } else {
            step(fence);
          }
        });
        return;
      }
      if (rank->is_settling && (done(*rank) || wants_snapshot(*rank))) return step_soon(fence);
      if (!done(*rank) && !is_fed(*rank)) return step_soon(fence);
    }
    const bool are_done = done(*ranks[0]) || (ranks[0]->finishes && ranks[1]->finishes);
    if (are_done) return conclude(fence, ranks);
    for (const auto& rank : ranks) {
      rank->history.push_back(fence);
      const auto now_at = static_cast<std::int64_t>(rank->history.size());
      say(rank, StepReport{.actor = rank->identity.actor, .fence = fence, .step = now_at});
      if (wants_snapshot(*rank) || done(*rank)) snapshot(rank);
    }
    step_soon(fence);
  }

  static bool done(const SimActor& rank) { return static_cast<std::int64_t>(rank.history.size()) == kSteps; }
  static bool wants_snapshot(const SimActor& rank) { return rank.history.size() % kEvery == 0; }

  void snapshot(const std::shared_ptr<SimActor>& rank) {
    rank->is_settling = true;
    rank->settling_step = static_cast<std::int64_t>(rank->history.size());
    snapshots_[{rank->fence, rank->settling_step}] = rank->history;
    say(rank, SnapshotReady{.actor = rank->identity.actor,
                            .rank = rank->identity.actor == "learner/0" ? 0 : 1,
                            .step = rank->settling_step,
                            .fence = rank->fence,
                            .handle = rank->identity.instance()});
  }

  void conclude(std::uint64_t fence, const std::vector<std::shared_ptr<SimActor>>& ranks) {
    for (const auto& rank : ranks) {
      const auto step = static_cast<std::int64_t>(rank->history.size());
      if (rank->settling_step != step) {
        for (const auto& each : ranks) snapshot(each);
        return step_soon(fence);
      }
      if (rank->is_settling) return step_soon(fence);
    }
    for (const auto& rank : ranks) {
      const auto step = static_cast<std::int64_t>(rank->history.size());
      say(rank, Finished{.actor = rank->identity.actor, .fence = fence, .step = step});
    }
  }

  void write(const std::shared_ptr<SimActor>& actor, const CheckpointBegin& begin) {
    if (hangs_write_) {
      hangs_write_ = false;
      actor->is_hung = true;
      return;
    }
    in_actor(actor, Millis(200 + in(1500)), [this, actor, begin] {
      CheckpointDone done{.step = begin.step, .fence = begin.fence, .directory = begin.directory};
      if (failing_writes_ > 0) {
        --failing_writes_;
        done.error = "rank-0: No space left on device";
      } else {
        const History& history = snapshots_[{begin.fence, begin.step}];
        const Manifest manifest = manifest_of(begin.step, begin.fence);
        const std::vector<std::byte> shard(static_cast<std::size_t>(snapshot_bytes(manifest)));
        const auto written = CheckpointWriter().write(
            {.directory = begin.directory,
             .manifest = manifest,
             .ranks = {shard, shard},
             .attachments = {{.name = "ledger.json", .bytes = nlohmann::json(history).dump()}}});
        if (written)
          done.manifest_hash = written->manifest_hash;
        else
          done.error = written.error().message();
      }
      say(actor, done);
    });
  }

  // ---- faults ----

  void strike(const Fault& fault) {
    using Kind = Fault::Kind;
    if (exit_code_) return;
    const std::size_t host = 1 + fault.target % (kNodes - 1);
    const SimTime until = clock_.now() + fault.lasts;
    const auto some_actor = [&]() -> std::shared_ptr<SimActor> {
      if (actors_.empty()) return nullptr;
      return std::next(actors_.begin(), static_cast<std::ptrdiff_t>(fault.target % actors_.size()))->second;
    };
    switch (fault.kind) {
      case Kind::kill_actor:
        if (const auto actor = some_actor()) end_actor(actor->identity.instance(), "killed", 5ms);
        break;
      case Kind::hang_actor:
        // Only those whose silence somebody else notices: a learner's peers, a checkpointer's coordinator.
        if (const auto actor = some_actor(); actor && actor->role != "decoder") actor->is_hung = true;
        break;
      case Kind::kill_node:
        if (const auto node = newest_[host]; node && node->process->is_alive) {
          end_node(*node);
          clock_.after(fault.lasts, [this, host] {
            if (!exit_code_) begin_node(host);
          });
        }
        break;
      case Kind::stop_node:
        for (const auto& node : nodes_) {
          if (node->host == host) node->process->stopped_until = until;
        }
        for (const auto& [instance, actor] : actors_) {
          if (actor->node == host) actor->process->stopped_until = until;
        }
        break;
      case Kind::cut_node:
        wire_.silent_until[host] = wire_.deaf_until[host] = until;
        break;
      case Kind::deafen_node:
        wire_.deaf_until[host] = until;
        break;
      case Kind::silence_node:
        wire_.silent_until[host] = until;
        break;
      case Kind::rival_node:
        begin_node(host);
        break;
      case Kind::stop_controller:
        controller_->stopped_until = until;
        break;
      case Kind::bad_wire:
        wire_.bad_until = until;
        break;
      case Kind::fail_write:
        failing_writes_ += 1 + static_cast<int>(fault.target % 4);
        break;
      case Kind::hang_write:
        hangs_write_ = true;
        break;
      case Kind::scale:
        wire_.run_in(controller_, [this, fault] {
          if (is_started_)
            service_->handle("cli.1#1", Scale{.pool = "decoder", .target = 1 + fault.target % 9}, clock_.now());
        });
        break;
      case Kind::terminate:
        is_told_to_end_ = true;
        wire_.run_in(controller_, [this] {
          if (is_started_) service_->interrupt({.why = "SIGTERM", .is_preemption = true}, clock_.now());
          look();
        });
        break;
      case Kind::restart:
        restart_controller();
        break;
    }
  }

  /// The kernel kills what node/0 hosted with it.
  void restart_controller() {
    if (!is_started_) return;
    controller_->is_alive = false;
    for (const std::string& instance : own_agent_->hosted->list()) drop_actor(instance);
    // Its keys and its port are the next one's too: nodes dial on.
    service_.reset();
    committed_ = {0, newest_valid(run_.checkpoints(), CheckpointCheck::sizes)
                         ? newest_valid(run_.checkpoints(), CheckpointCheck::sizes)->step
                         : 0};
    begin_controller();
  }

  // ---- the end ----

  void judge_end() {
    const auto& job = service_->job();
    if (*exit_code_ != 0 && !(is_told_to_end_ && *exit_code_ == 75))
      return breach(fmt::format("the job ended with {}: {}", *exit_code_, job.failure()));
    if (*exit_code_ == 0 && job.checkpoints().committed_step() != kSteps)
      breach(fmt::format("done at step {}", job.checkpoints().committed_step()));
    judge_history();
    // Nodes leave when they are told, or when they have heard nothing for too long.
    const SimTime until = clock_.now() + 200s;
    while (clock_.step(until)) continue;
    for (const auto& [instance, actor] : actors_) breach(fmt::format("{} is left", instance));
  }

  /// The newest checkpoint holds every step once, trained by the group that owned it.
  void judge_history() {
    const auto newest = newest_valid(run_.checkpoints(), CheckpointCheck::sizes);
    if (!newest) {
      if (service_->job().checkpoints().committed_step() > 0) breach("what was committed is not on disk");
      return;
    }
    const auto history = nlohmann::json::parse(read_file(newest->directory + "/ledger.json").value()).get<History>();
    if (static_cast<std::int64_t>(history.size()) != newest->step)
      breach(fmt::format("step {} on disk holds {} steps", newest->step, history.size()));
    const auto epochs = db_->epochs().value();
    for (std::size_t i = 0; i < history.size(); ++i) {
      std::uint64_t owner = 0;
      for (const EpochRecord& epoch : epochs) {
        if (epoch.fence <= newest->manifest.fence && epoch.resume_step <= static_cast<std::int64_t>(i))
          owner = epoch.fence;
      }
      if (history[i] != owner)
        breach(fmt::format("step {} was trained by {:x} and belongs to {:x}", i + 1, history[i], owner));
    }
  }

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
  bool is_started_ = false, is_told_to_end_ = false, hangs_write_ = false;
  int failing_writes_ = 0;
  std::vector<std::pair<std::string, Message>> waiting_;
  std::vector<std::shared_ptr<SimNode>> nodes_;
  std::map<std::size_t, std::shared_ptr<SimNode>> newest_;
  std::map<std::string, std::shared_ptr<SimActor>> actors_;
  std::map<std::uint64_t, Group> groups_;
  std::map<std::pair<std::uint64_t, std::int64_t>, History> snapshots_;
  std::pair<std::uint64_t, std::int64_t> committed_{0, 0};
  std::optional<int> exit_code_;
};

}  // namespace

Outcome simulate(const Schedule& schedule, const std::string& folder) { return World(schedule, folder).run(); }

}  // namespace troupe::testing
