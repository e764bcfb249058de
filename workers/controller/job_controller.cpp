#include "workers/controller/job_controller.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/roles.h"
#include "workers/stream/producer_times.h"

namespace troupe::workers {

namespace {

constexpr int kFruitlessGroups = 5;
constexpr std::chrono::milliseconds kExitNoticeGrace{1500};
constexpr std::chrono::seconds kStopDeadline{15};

std::string how_it_ended(const ActorExited& exit) {
  if (exit.signal != 0) return fmt::format("killed by signal {}", exit.signal);
  return fmt::format("exited with code {}", exit.exit_code);
}

}  // namespace

JobController::JobController(Setup setup, StateDb& db, ControllerEffects& effects)
    : setup_(std::move(setup)),
      db_(db),
      effects_(effects),
      restart_policy_(setup_.config.cluster.restart),
      checkpoints_({.world = setup_.plan.batch.data_ranks,
                    .keep = setup_.config.checkpoint.keep,
                    .timeout = to_milliseconds(setup_.config.checkpoint.timeout_s)},
                   setup_.run, db, effects),
      cluster_{setup_.plan.nodes} {
  for (const PlannedActor& actor : setup_.plan.actors) actors_.add(actor);
  checkpoints_.resume_from(setup_.resume_step, setup_.resume_checkpoint);
  step_ = setup_.resume_step;
}

void JobController::start(TimePoint now) {
  state_since_ = last_progress_ = now;
  for (auto& [name, actor] : actors_.rows()) spawn(actor, now);
}

void JobController::set_state(JobState state, TimePoint now) {
  if (state == state_) return;
  state_ = state;
  state_since_ = now;
  if (auto written = db_.set_job(std::string(to_string(state)), checkpoints_.committed_step()); !written) {
    effects_.event(Severity::error, "state", written.error().message());
  }
}

// ---- actors -------------------------------------------------------------------------------------------------------

Message JobController::with_environment(const ActorRecord& actor) const {
  Spawn spawn{.actor = actor.plan.name,
              .role = actor.plan.role,
              .incarnation = actor.incarnation,
              .isolation = actor.plan.isolation,
              .cpus = static_cast<std::int64_t>(actor.plan.cpus),
              .env = {}};
  for (const NodeGroupConfig& group : setup_.config.cluster.node_groups) {
    for (const auto& [key, value] : group.env) spawn.env[key] = value;
  }
  return spawn;
}

void JobController::spawn(ActorRecord& actor, TimePoint now) {
  actor.incarnation = actors_.next_incarnation(actor.plan.name);
  actor.state = ActorState::starting;
  actor.restart_at.reset();
  actor.channels.clear();
  actor.weights.clear();
  actor.since = now;
  effects_.send(fmt::format("node/{}", actor.plan.node), with_environment(actor));
}

void JobController::stop(ActorRecord& actor, std::chrono::milliseconds grace, const std::string& reason) {
  effects_.send(
      fmt::format("node/{}", actor.plan.node),
      Stop{.actor = actor.plan.name, .incarnation = actor.incarnation, .grace_ms = grace.count(), .reason = reason});
}

void JobController::on(const std::string&, const ActorUp& m, TimePoint now) {
  ActorRecord* actor = actors_.find(m.actor);
  if (!actor || m.incarnation != actor->incarnation || actor->state != ActorState::starting) return;
  actor->state = ActorState::up;
  actor->pid = m.pid;
  actor->channels = m.channels;
  actor->weights = m.weights;
  actor->since = now;
  restart_policy_.on_start(m.actor, now);
  if (state_ == JobState::stopping) {
    stop(*actor, kStopGrace, "the job is ending");
    return;
  }
  if (fence_ != 0) introduce(*actor);
  if (actor->plan.role == "checkpointer") checkpoints_.on_checkpointer_up(now);
  if (actor->plan.role == "learner" && fence_ != 0) fruitless_groups_ = 0;  // its restart budget bounds these groups
  if (actor->plan.role == "learner" && actors_.all_up("learner"))
    form_group(fence_ == 0 ? "start" : "learner restarted", now);
}

void JobController::on(const std::string&, const ActorExited& m, TimePoint now) {
  // Also for an instance that a newer one has replaced: feeds may reuse its slots only from now on.
  producer_gone(m.actor.substr(0, m.actor.find('/')), fmt::format("{}#{}", m.actor, m.incarnation));
  ActorRecord* actor = actors_.find(m.actor);
  if (!actor || m.incarnation != actor->incarnation || actor->state == ActorState::gone) return;
  const bool was_wanted = state_ != JobState::stopping && !actor->removing;
  actor->state = ActorState::gone;
  silent_since_.erase(m.actor);
  if (actor->removing) {
    effects_.event(Severity::info, "scaled_down", fmt::format("{} left", m.actor));
    actors_.erase(m.actor);
    return;
  }
  if (!was_wanted) return;
  plan_restart(*actor, m, now);
}

void JobController::plan_restart(ActorRecord& actor, const ActorExited& exit, TimePoint now) {
  // A wanted actor that ended is a death, also when it was we who killed it for being stuck, or when it ended in order.
  const bool orderly = exit.exit_code == 0 && exit.signal == 0;
  const ActorDeath death{.actor = actor.plan.name,
                         .component = actor.plan.role,
                         .exit_code = orderly ? 1 : static_cast<int>(exit.exit_code),
                         .signal = static_cast<int>(exit.signal),
                         .killed_by_us = false,
                         .out_of_memory = exit.out_of_memory};
  const RestartDecision decision = restart_policy_.on_exit(death, now);
  if (decision.action != RestartDecision::Action::restart) {
    fail(fmt::format("{} {} and is not started again: {}{}{}", actor.plan.name, how_it_ended(exit), decision.why,
                     exit.stderr_tail.empty() ? "" : "; its last words:\n", exit.stderr_tail),
         now);
    return;
  }
  ++restarts_;
  ++actor.restarts;
  actor.state = ActorState::planned;
  actor.restart_at = now + decision.delay;
  std::string line = fmt::format("{} {}; restart {} in {:.1f} s", actor.plan.name, how_it_ended(exit), actor.restarts,
                                 std::chrono::duration<double>(decision.delay).count());
  if (actor.plan.role == "learner") {
    line += fmt::format("; all ranks go back to step {}", checkpoints_.committed_step());
  }
  effects_.event(Severity::warn, "restart", line);
  if (actor.plan.role == "learner") lose_learner(actor, line, now);
}

void JobController::lose_learner(const ActorRecord& actor, const std::string& why, TimePoint now) {
  regroup_at_.reset();
  checkpoints_.abandon();
  finished_.clear();
  silent_since_.clear();  // the plan they owed an answer to is void
  for (const ActorRecord* other : actors_.of_role("learner")) {
    if (other->plan.name == actor.plan.name || other->state != ActorState::up) continue;
    effects_.send(other->plan.name, GroupAbort{.actor = actor.plan.name, .fence = fence_, .reason = why});
  }
  set_state(JobState::recovering, now);
}

void JobController::producer_gone(const std::string& role, const std::string& instance) {
  for (const Flow& flow : flows(setup_.config)) {
    if (flow.producer != role) continue;
    for (const ActorRecord* consumer : actors_.of_role(flow.consumer)) {
      if (consumer->state == ActorState::up)
        effects_.send(consumer->plan.name, Peers{.fence = fence_, .channels = {}, .gone = {instance}});
    }
  }
}

void JobController::introduce(const ActorRecord& actor) {
  bool produces = false;
  for (const Flow& flow : flows(setup_.config)) {
    produces |= flow.producer == actor.plan.role;
    // a learner that comes up forms a group, which tells its producers
    if (flow.consumer != actor.plan.role || flow.consumer == "learner") continue;
    for (const ActorRecord* producer : actors_.of_role(flow.producer)) {
      if (producer->state == ActorState::up) send_peers(*producer);
    }
  }
  if (produces) send_peers(actor);
}

void JobController::send_peers(const ActorRecord& producer) {
  Peers peers{.fence = fence_, .channels = {}, .gone = {}};
  for (const Flow& flow : flows(setup_.config)) {
    if (flow.producer != producer.plan.role) continue;
    for (const ActorRecord* consumer : actors_.of_role(flow.consumer)) {
      // The first address is for producers on the consumer's node, the one over zmq for those elsewhere.
      const bool local = consumer->plan.node == producer.plan.node;
      for (const std::string& address : flow.weights ? consumer->weights : consumer->channels) {
        if (local == !address.starts_with("zmq:")) {
          peers.channels.push_back(address);
          break;
        }
      }
    }
  }
  effects_.send(producer.plan.name, peers);
}

// ---- the learner group --------------------------------------------------------------------------------------------

void JobController::form_group(const std::string& reason, TimePoint now) {
  if (++fruitless_groups_ > kFruitlessGroups) {
    fail(fmt::format("the learner group formed {} times without committing a step; last reason: {}", kFruitlessGroups,
                     reason),
         now);
    return;
  }
  ++epoch_;
  fence_ = setup_.term << 32 | epoch_;
  regroup_at_.reset();
  checkpoints_.abandon();
  group_up_.clear();
  finished_.clear();
  const std::int64_t resume = checkpoints_.committed_step();
  if (auto written = db_.add_epoch({.fence = fence_, .resume_step = resume, .reason = reason}); !written) {
    fail(written.error().message(), now);
    return;
  }
  step_ = resume;
  std::erase_if(void_positions_, [&](std::int64_t p) { return p >= resume * setup_.plan.batch.global; });
  const auto learners = actors_.of_role("learner");
  for (const ActorRecord* learner : learners) {
    silent_since_.try_emplace(learner->plan.name,
                              now);  // one that still owes an answer to the plan before is no younger for it
    effects_.send(learner->plan.name,
                  GroupPlan{.fence = fence_,
                            .rank = learner->plan.process_rank,
                            .world = static_cast<std::int64_t>(learners.size()),
                            .backend = setup_.plan.collective,
                            .store = fmt::format("{}/store-{:016x}", setup_.runtime_dir, fence_),
                            .resume_step = resume,
                            .checkpoint = checkpoints_.committed_directory(),
                            .timeout_ms = to_milliseconds(setup_.config.training.step_timeout_s).count(),
                            .num_eval = setup_.num_eval});
  }
  std::set<std::string> told;
  for (const Flow& flow : flows(setup_.config)) {
    if (!told.insert(flow.producer).second) continue;
    for (const ActorRecord* producer : actors_.of_role(flow.producer)) {
      if (producer->state == ActorState::up) send_peers(*producer);
    }
  }
  if (state_ != JobState::starting) set_state(JobState::recovering, now);
  state_since_ = now;
}

void JobController::on(const std::string&, const GroupUp& m, TimePoint now) {
  if (m.fence != fence_) return;
  group_up_.insert(m.actor);
  silent_since_.erase(m.actor);
  for (const auto& [kind, bytes] : m.bytes) learner_bytes_[kind] = std::max(learner_bytes_[kind], bytes);
  if (group_up_.size() < actors_.of_role("learner").size()) return;
  if (epoch_ == 1) report_memory();
  if (epoch_ > 1)
    effects_.event(Severity::info, "regrouped",
                   fmt::format("all {} learner ranks resume at step {}", group_up_.size(), step_));
  set_state(interrupted_ ? JobState::draining : JobState::running, now);
  last_progress_ = now;
  if (interrupted_) {
    for (const ActorRecord* learner : actors_.of_role("learner"))
      effects_.send(learner->plan.name, Finish{.reason = "interrupted"});
  }
}

void JobController::report_memory() {
  const MemoryTable& planned = setup_.plan.learner_memory;
  const auto mib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const auto part = [&](const char* kind, std::int64_t plan) {
    return fmt::format("{} {:.1f} MiB (plan {:.1f})", kind, mib(learner_bytes_[kind]), mib(plan));
  };
  effects_.event(Severity::info, "memory",
                 fmt::format("memory per rank: {}, {}, {}; process {:.0f} MiB resident",
                             part("shards", planned.shard_bytes), part("slots", planned.param_slot_bytes),
                             part("gradients", planned.grad_slot_bytes), mib(learner_bytes_["process"])));
}

void JobController::on(const std::string& from, const GroupAbort& m, TimePoint now) {
  if (m.fence != fence_) return;
  silent_since_.erase(from);
  if (regroup_at_ || state_ == JobState::stopping) return;
  effects_.event(Severity::info, "group_lost", fmt::format("{} left the group: {}", from, m.reason));
  // A dead peer's exit notice usually follows at once and names the cause; without one, the group forms again as it is.
  regroup_at_ = now + kExitNoticeGrace;
}

void JobController::on(const std::string&, const StepReport& m, TimePoint now) {
  if (m.fence != fence_) return;
  step_ = std::max(step_, m.step);
  fruitless_groups_ = 0;
  last_progress_ = now;
  for (const std::int64_t position : m.void_positions) void_positions_.insert(position);
  if (!m.metrics.empty()) {
    last_metrics_ = m.metrics;
    effects_.step(m);
  }
  check_void_budget(now);
}

void JobController::check_void_budget(TimePoint now) {
  if (void_positions_.empty()) return;
  const double total = static_cast<double>(setup_.config.training.steps * setup_.plan.batch.global);
  const double allowed = setup_.config.data.max_bad_fraction * total;
  if (static_cast<double>(void_positions_.size()) > allowed) {
    fail(fmt::format(
             "{} bad samples, more than data.max_bad_fraction {} of {:.0f} allows; they are listed in events.jsonl",
             void_positions_.size(), setup_.config.data.max_bad_fraction, total),
         now);
  }
}

void JobController::on(const std::string&, const EvalReport& m, TimePoint now) {
  if (m.fence != fence_) return;
  last_progress_ = now;
  effects_.evaluated(m);
}

void JobController::on(const std::string& from, const Event& m, TimePoint now) {
  if (m.kind == "fatal") {
    fail(fmt::format("{}: {}", from, m.text), now);
    return;
  }
  if (m.kind == kProducerTimes) {
    if (const auto times = parse_producer_times(m.text))
      effects_.producer_times(from.substr(0, from.find('/')), times->first, times->second);
    return;
  }
  if (m.kind == "stuck_producer") {
    for (auto& [name, actor] : actors_.rows()) {
      if (actor.instance() != m.subject || actor.state != ActorState::up) continue;
      effects_.event(Severity::warn, "stuck", fmt::format("{}; {} is killed", m.text, name));
      actor.state = ActorState::stopping;
      stop(actor, std::chrono::milliseconds(0), "stuck");
    }
    return;
  }
  effects_.event(Severity::warn, m.kind, fmt::format("{}: {}", from, m.text));
}

void JobController::on(const std::string&, const SnapshotReady& m, TimePoint now) {
  const ActorRecord* writer = actors_.find("checkpointer/0");
  checkpoints_.on_snapshot(m, fence_, writer && writer->state == ActorState::up, void_positions_, now);
  last_progress_ = now;
}

void JobController::on(const std::string&, const CheckpointDone& m, TimePoint now) {
  if (checkpoints_.on_done(m, fence_, now)) {
    last_progress_ = now;
  } else if (!m.error.empty() && state_ == JobState::draining) {
    final_checkpoint_lost_ = true;
  }
}

void JobController::on(const std::string& from, const Finished& m, TimePoint now) {
  if (m.fence != fence_) return;
  finished_.insert(from);
  if (finished_.size() < actors_.of_role("learner").size()) return;
  step_ = m.step;
  if (checkpoints_.committed_step() != m.step) {
    fail(fmt::format("trained to step {}, but its checkpoint could not be written; step {} is the newest on disk",
                     m.step, checkpoints_.committed_step()),
         now);
    return;
  }
  stop_everything(now);
}

// ---- ends ---------------------------------------------------------------------------------------------------------

void JobController::fail(const std::string& why, TimePoint now) {
  if (state_ == JobState::stopping) return;
  failure_ = why;
  effects_.event(Severity::error, "failed", why);
  stop_everything(now);
}

void JobController::stop_everything(TimePoint now) {
  set_state(JobState::stopping, now);
  // Sources first, then workers, then sinks.
  std::vector<std::string> roles = elastic_roles(setup_.config);
  roles.insert(roles.end(), {"learner", "checkpointer"});
  for (const std::string& role : roles) {
    for (ActorRecord* actor : actors_.of_role(role)) {
      actor->restart_at.reset();
      if (actor->state == ActorState::planned) actor->state = ActorState::gone;
      if (actor->state == ActorState::up || actor->state == ActorState::starting) {
        actor->state = ActorState::stopping;
        stop(*actor, kStopGrace, "the job is ending");
      }
    }
  }
}

void JobController::interrupt(const std::string& why, TimePoint now) {
  if (exit_code()) return;
  if (interrupted_ || state_ == JobState::starting || state_ == JobState::recovering) {
    const bool first = !interrupted_;
    interrupted_ = true;
    if (state_ == JobState::stopping) return;
    effects_.event(Severity::info, "interrupted",
                   fmt::format("{}: stopping {}; step {} is on disk", why,
                               first ? "before the group was up" : "at once", checkpoints_.committed_step()));
    stop_everything(now);
    return;
  }
  interrupted_ = true;
  if (state_ == JobState::stopping) return;
  effects_.event(Severity::info, "interrupted",
                 fmt::format("{}: finishing the current step and writing a checkpoint", why));
  set_state(JobState::draining, now);
  for (const ActorRecord* learner : actors_.of_role("learner"))
    effects_.send(learner->plan.name, Finish{.reason = why});
}

bool JobController::everything_ended() const {
  return std::all_of(actors_.rows().begin(), actors_.rows().end(), [](const auto& row) {
    return row.second.state == ActorState::gone || row.second.state == ActorState::planned;
  });
}

std::optional<int> JobController::exit_code() const {
  switch (state_) {
    case JobState::done:
      return 0;
    case JobState::failed:
      return 4;
    case JobState::stopped:
      return 130;
    default:
      return std::nullopt;
  }
}

template <class Other>
void JobController::on(const std::string&, const Other&, TimePoint) {}

void JobController::handle(const std::string& from, const Message& message, TimePoint now) {
  std::visit([&](const auto& m) { on(from, m, now); }, message);
}

void JobController::tick(TimePoint now) {
  if (state_ == JobState::stopping) {
    if (now - state_since_ > kStopDeadline) {
      for (auto& [name, actor] : actors_.rows()) {
        if (actor.state == ActorState::stopping) stop(actor, std::chrono::milliseconds(0), "did not end in time");
      }
      state_since_ = now;
    }
    if (everything_ended()) {
      set_state(!failure_.empty()                                      ? JobState::failed
                : interrupted_ && step_ < setup_.config.training.steps ? JobState::stopped
                                                                       : JobState::done,
                now);
    }
    return;
  }
  if (exit_code()) return;
  for (auto& [name, actor] : actors_.rows()) {
    if (actor.state == ActorState::planned && actor.restart_at && now >= *actor.restart_at) spawn(actor, now);
    const bool late = now - actor.since > to_milliseconds(setup_.config.cluster.start_timeout_s);
    if (actor.state == ActorState::starting && late) {
      effects_.event(
          Severity::warn, "start_timeout",
          fmt::format("{} did not come up in {} s; it is killed", name, setup_.config.cluster.start_timeout_s));
      actor.since = now;
      stop(actor, std::chrono::milliseconds(0), "did not come up");
    }
  }
  if (checkpoints_.tick(now)) {
    effects_.event(Severity::warn, "stuck", "the checkpointer overran checkpoint.timeout_s; it is killed");
    if (ActorRecord* writer = actors_.find("checkpointer/0")) stop(*writer, std::chrono::milliseconds(0), "stuck");
  }
  watch_group(now);
}

}  // namespace troupe::workers
