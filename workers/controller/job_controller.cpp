#include "workers/controller/job_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/seconds.h"
#include "comm/control/actor_identity.h"
#include "placement/evaluation.h"
#include "placement/roles.h"
#include "workers/controller/job_status.h"

namespace troupe::workers {

namespace {
/// Of one actor, more than any job sees.
constexpr std::int64_t kStartsPerTerm = 1'000'000;
constexpr std::chrono::seconds kStopDeadline{15};
/// Of killing, each after another deadline, before the job ends without those that outlive it.
constexpr int kKillRounds = 2;

/// Whether an actor's end may be the fault of what it was making. Somebody else's SIGKILL says nothing about that, nor
/// does an end in order.
bool speaks_against_its_item(const ActorExited& m) {
  constexpr std::int64_t kKill = 9, kTerminate = 15;
  if (m.out_of_memory) return true;
  if (m.signal == kKill) return m.killed_by_us;
  return m.signal == kTerminate ? false : m.signal != 0 || m.exit_code != 0;
}

/// The metric of evaluations by which the best checkpoint is kept; empty: none is.
std::string best_metric(const CheckpointConfig& config) {
  if (!config.keeps_best()) return {};
  return config.keep_best == "eval/success" ? "eval/success_once" : config.keep_best;
}

}  // namespace

JobController::JobController(Setup setup, StateDb& db, ControllerEffects& effects)
    : setup_(std::move(setup)),
      db_(db),
      effects_(effects),
      actors_(static_cast<std::int64_t>(setup_.term - 1) * kStartsPerTerm),
      launcher_(setup_.config.cluster, actors_, effects),
      restarts_(setup_.config.cluster, actors_, launcher_, effects),
      pools_(setup_.config, setup_.plan, actors_, launcher_, db, effects),
      group_({.term = setup_.term,
              .collective = setup_.plan.collective,
              .runtime_dir = setup_.runtime_dir,
              .step_timeout = to_milliseconds(setup_.config.training.step_timeout),
              .start_timeout = to_milliseconds(setup_.config.cluster.start_timeout),
              .num_eval = setup_.num_eval},
             actors_, launcher_, db, effects),
      checkpoints_({.world = setup_.plan.batch.data_ranks,
                    .keep = setup_.config.checkpoint.keep,
                    .best_metric = best_metric(setup_.config.checkpoint),
                    .least_is_best = setup_.config.checkpoint.keep_best == "eval/loss",
                    .is_evaluated_beside =
                        [this](std::int64_t step) {
                          const ActorRecord* evaluator = actors_.find(kEvaluatorActor);
                          return evaluator && evaluator->state != ActorState::gone && is_evaluated(setup_.config, step);
                        },
                    .timeout = to_milliseconds(setup_.config.checkpoint.timeout)},
                   setup_.run, db, effects),
      evaluations_(setup_.config),
      step_(setup_.resume_step),
      void_positions_(setup_.resume_voids.begin(), setup_.resume_voids.end()),
      bad_positions_(setup_.resume_bad.begin(), setup_.resume_bad.end()) {
  for (const PlannedActor& actor : setup_.plan.actors) actors_.add(actor);
  checkpoints_.resume_from(setup_.resume_step, setup_.resume_checkpoint);
  evaluations_.resume_from(setup_.resume_step);
}

void JobController::start(TimePoint now) {
  state_since_ = now;
  group_.progressed(now);
  if (state_ == JobState::stopping) return;  // interrupted before it began
  if (auto settled = checkpoints_.settle(); !settled) return fail(settled.error().message(), now);
  for (auto& [name, actor] : actors_.rows()) launcher_.spawn(actor, now);
}

void JobController::set_state(JobState state, TimePoint now) {
  if (state == state_) return;
  state_ = state;
  state_since_ = now;
  effects_.record([&db = db_, state] { return db.set_job_state(std::string(enum_name(state))); });
}

// ---- actors and nodes ---------------------------------------------------------------------------------------------

void JobController::on(const std::string&, const ActorUp& m, TimePoint now) {
  ActorRecord* actor = actors_.came_up(m, now);
  if (!actor) return;
  restarts_.came_up(m.actor, now);
  if (state_ == JobState::stopping) {
    launcher_.send_stop(*actor, kStopGrace, "the job is ending");
    return;
  }
  const bool has_formed = group_.fence() != 0;
  if (has_formed) pools_.introduce(*actor, group_.fence());
  if (actor->plan.role == RoleKind::checkpointer) checkpoints_.on_checkpointer_up(now);
  if (actor->plan.role != RoleKind::learner || is_spare(actor->plan.role)) return;
  if (has_formed) group_.learner_came_up();
  if (actors_.all_up("learner")) form_group(has_formed ? "learner restarted" : "start", now);
}

void JobController::on(const std::string&, const ActorExited& m, TimePoint now) {
  if (m.unkillable) return on_unkillable(m, now);
  const std::string instance = ActorIdentity{m.actor, m.incarnation}.instance();
  effects_.actor_ended(instance);
  pools_.ended(instance);
  const ActorRecord* row = actors_.find(m.actor);
  const bool wanted = row && !row->removing && state_ != JobState::stopping && !is_spare(row->plan.role);
  const bool was_stopped = row && row->state == ActorState::stopping;
  // Also for an instance that a newer one has replaced: feeds may reuse its slots only from now on.
  pools_.producer_gone(role_of(m.actor), instance, group_.fence(), wanted && speaks_against_its_item(m));
  ActorRecord* actor = actors_.ended(m);
  if (!actor) return;
  group_.owes_nothing(m.actor);
  if (actor->removing) return pools_.removed(m.actor);
  if (state_ == JobState::stopping) return;
  if (is_spare(actor->plan.role)) {
    if (!was_stopped)
      effects_.event(Severity::warn, "not_restarted",
                     fmt::format("{} ended; only the evaluation of step {} is awaited, which does not need it",
                                 instance, setup_.config.training.steps));
    return;
  }
  const auto planned = restarts_.plan(*actor, m, checkpoints_.committed_step(), now);
  if (!planned && actor->plan.role == RoleKind::evaluator) {
    checkpoints_.forget_evaluations(0, group_.fence());
    return effects_.event(Severity::error, "evaluator_given_up",
                          planned.error().message() + "; training goes on without evaluations");
  }
  if (!planned) return fail(planned.error().message(), now);
  if (actor->plan.role != RoleKind::learner) return;
  checkpoints_.abandon();
  forms_when_settled_.reset();  // its return forms the group
  group_.lose(*actor, *planned);
  set_state(JobState::recovering, now);
}

void JobController::on(const std::string& from, const Quarantined& m, TimePoint) {
  effects_.event(
      Severity::warn, "quarantined",
      fmt::format("{}: {} {} is left out: {}", from, m.held_out ? "held-out sample" : "position", m.position, m.text));
  effects_.quarantined(m);
  // It was the sample's fault and not theirs.
  for (const std::string& producer : m.producers) restarts_.forgive(name_without_life(producer));
}

void JobController::on_unkillable(const ActorExited& m, TimePoint now) {
  ActorRecord* actor = actors_.ended(m);
  if (!actor) return;
  group_.owes_nothing(m.actor);
  const std::string& role = actor->plan.role;
  const std::string what =
      fmt::format("{} survives SIGKILL (a thread of it waits in the kernel) and holds its slots and devices on node/{}",
                  actor->instance(), actor->plan.node);
  const auto peers = actors_.of_role(role);
  const bool has_peers = std::any_of(peers.begin(), peers.end(), [&](const ActorRecord* peer) {
    return peer != actor && !peer->removing && peer->state != ActorState::gone;
  });
  const bool makes_samples = role == RoleKind::decoder || role == RoleKind::encoder;
  if (makes_samples) pools_.producer_unkillable(actor->instance(), group_.fence());
  const bool may_go = role == RoleKind::evaluator || is_spare(role) || (makes_samples && has_peers);
  if (!actor->removing && state_ != JobState::stopping && !may_go) {
    return fail(what + "; restart that machine, or resume on another one", now);
  }
  effects_.event(Severity::error, "unkillable", what + "; it is not started again");
  if (actor->removing) return pools_.removed(m.actor);
  if (role == RoleKind::evaluator) checkpoints_.forget_evaluations(0, group_.fence());
  if (state_ != JobState::stopping) pools_.give_up(*actor);
}

void JobController::on(const std::string&, const StuckProducer& m, TimePoint) {
  for (auto& [name, actor] : actors_.rows()) {
    if (actor.instance() != m.producer || actor.state != ActorState::up) continue;
    effects_.event(Severity::warn, "stuck", fmt::format("{}; {} is killed", m.text, name));
    launcher_.stop(actor, std::chrono::milliseconds(0), "stuck");
  }
}

Reply JobController::scale(const Scale& request, TimePoint now) {
  if (!wants_actors()) return {.code = 3, .text = "the job is ending"};
  return pools_.scale(request, now);
}

void JobController::node_joined(const NodeSnapshot& node, std::int64_t rank, const std::vector<std::string>& running,
                                bool is_new_process, TimePoint now) {
  pools_.node_joined(node, rank, running, is_new_process, wants_actors(), now);
}

void JobController::node_suspected(std::int64_t rank, bool is_suspect) { pools_.node_suspected(rank, is_suspect); }

void JobController::node_lost(std::int64_t rank, TimePoint now) {
  const auto moved = pools_.node_lost(rank, wants_actors(), group_.fence(), now);
  // Without the evaluator watch_evaluation() ends the job.
  if (!moved && !is_spare("learner")) fail(moved.error().message(), now);
}

// ---- the learner group --------------------------------------------------------------------------------------------

void JobController::form_group(const std::string& reason, TimePoint now) {
  // The group begins at the newest checkpoint.
  if (checkpoints_.newest_is_open()) {
    forms_when_settled_ = reason;
    return;
  }
  forms_when_settled_.reset();
  const std::int64_t resume = checkpoints_.committed_step();
  if (auto formed = group_.form(reason, resume, checkpoints_.committed_directory(), now); !formed)
    return fail(formed.error().message(), now);
  checkpoints_.abandon();
  evaluations_.group_formed(group_.fence(), resume);
  checkpoints_.forget_evaluations(resume, group_.fence());
  if (!evaluations_.is_awaited()) start_stopped(now);
  step_ = resume;
  for (auto* positions : {&void_positions_, &bad_positions_})
    std::erase_if(*positions, [&](std::int64_t p) { return p >= resume * setup_.plan.batch.global; });
  pools_.introduce_all(group_.fence());
  if (state_ != JobState::starting) set_state(JobState::recovering, now);
  state_since_ = now;
}

void JobController::on(const std::string&, const GroupUp& m, TimePoint now) {
  if (m.fence != group_.fence() || !group_.joined(m)) return;
  if (group_.is_first()) {
    effects_.event(Severity::info, "memory", memory_text(setup_.plan.learner_memory, group_.bytes()));
  } else {
    effects_.event(Severity::info, "regrouped",
                   fmt::format("all {} learner ranks resume at step {}", actors_.of_role("learner").size(), step_));
  }
  set_state(interrupted_ ? JobState::draining : JobState::running, now);
  group_.progressed(now);
  if (interrupted_) group_.finish("interrupted");
}

void JobController::on(const std::string& from, const GroupAbort& m, TimePoint now) {
  if (m.fence != group_.fence() || state_ == JobState::stopping) return;
  if (m.damaged_step != checkpoints_.committed_step() || m.damaged_step <= 0) return group_.left(from, m.reason, now);
  group_.owes_nothing(from);
  if (checkpoints_.newest_is_open()) return;  // another rank has said so
  evaluations_.await_no_longer();
  checkpoints_.go_back(m.fence, m.reason, now);
  group_.went_back();
  forms_when_settled_ = "a checkpoint was damaged";
}

void JobController::on(const std::string&, const StepReport& m, TimePoint now) {
  if (m.fence != group_.fence()) return;
  step_ = std::max(step_, m.step);
  group_.committed(now);
  void_positions_.insert(m.void_positions.begin(), m.void_positions.end());
  bad_positions_.insert(m.bad_positions.begin(), m.bad_positions.end());
  if (!m.metrics.empty()) {
    last_metrics_ = m.metrics;
    effects_.step(m);
  }
  check_bad_samples(now);
}

void JobController::check_bad_samples(TimePoint now) {
  if (bad_positions_.empty()) return;
  const double total = static_cast<double>(setup_.config.training.steps * setup_.plan.batch.global);
  const double allowed = setup_.config.data.max_bad_fraction * total;
  if (static_cast<double>(bad_positions_.size()) > allowed) {
    fail(fmt::format(
             "{} bad samples, more than data.max_bad_fraction {} of {:.0f} allows; they are listed in events.jsonl",
             bad_positions_.size(), setup_.config.data.max_bad_fraction, total),
         now);
  }
}

void JobController::on(const std::string& from, const EvalReport& m, TimePoint now) {
  if (const ActorRecord* actor = actors_.find(from); actor && actor->plan.role == RoleKind::evaluator)
    return evaluated_beside(m, now);
  if (m.fence != group_.fence()) return;
  group_.progressed(now);
  effects_.evaluated(m);
  checkpoints_.on_evaluation(m);
}

void JobController::on(const std::string&, const SnapshotReady& m, TimePoint now) {
  const ActorRecord* writer = actors_.find("checkpointer/0");
  checkpoints_.on_snapshot(m, group_.fence(), writer && writer->state == ActorState::up, void_positions_,
                           bad_positions_, now);
  group_.progressed(now);
}

void JobController::on(const std::string&, const CheckpointDone& m, TimePoint now) {
  checkpoints_.on_done(m, group_.fence(), now);
  group_.progressed(now);  // also when it failed: the ranks waited for this
}

void JobController::on(const std::string& from, const Finished& m, TimePoint now) {
  if (m.fence != group_.fence() || !group_.finished(from)) return;
  step_ = m.step;
  if (checkpoints_.committed_step() == m.step) {
    const bool awaits = m.step == setup_.config.training.steps && !interrupted_ && lacks_evaluation();
    return awaits ? await_evaluation(now) : stop_everything(now);
  }
  fail(fmt::format("trained to step {}, but its checkpoint could not be written; step {} is the newest on disk", m.step,
                   checkpoints_.committed_step()),
       now);
}

// ---- what is only told --------------------------------------------------------------------------------------------

void JobController::on(const std::string& from, const Event& m, TimePoint) {
  effects_.event(Severity::warn, m.kind, fmt::format("{}: {}", from, m.text));
}

void JobController::on(const std::string& from, const ProducerTimes& m, TimePoint now) {
  const double least = std::min({m.idle_seconds, m.busy_seconds, m.item_seconds, m.simulate_seconds, m.policy_seconds,
                                 m.record_seconds, m.await_seconds, m.env_step_seconds});
  if (least < 0 || m.item_steps < 0 || m.env_steps < 0) return;
  const std::string role = role_of(from);
  if (role == RoleKind::rollout && m.busy_seconds > 0) group_.collecting(now);
  effects_.producer_times(role, m);
}

void JobController::on(const std::string& from, const BadClip& m, TimePoint) {
  effects_.bad_clip(m, fmt::format("{}: {}", from, m.text));
}

void JobController::on(const std::string& from, const Fatal& m, TimePoint now) {
  const std::string text = fmt::format("{}: {}", from, m.text);
  if (is_spare(role_of(from))) return effects_.event(Severity::warn, "fatal", text);
  fail(text, now);
}

std::string JobController::status_json(TimePoint now) const {
  const JobStatus status{.job = setup_.config.job.name,
                         .run = setup_.run.root(),
                         .state = state_,
                         .step = step_,
                         .steps = setup_.config.training.steps,
                         .committed_step = checkpoints_.committed_step(),
                         .fence = fence(),
                         .restarts = restarts(),
                         .void_samples = void_samples(),
                         .metrics = last_metrics_,
                         .bytes = group_.bytes()};
  return workers::status_json(status, actors_, pools_.cluster(), now);
}

// ---- ends ---------------------------------------------------------------------------------------------------------

void JobController::fail(const std::string& why, TimePoint now) {
  if (state_ == JobState::stopping) return;
  if (evaluations_.is_awaited()) return end_without_evaluation(why, now);
  failure_ = why;
  effects_.event(Severity::error, "failed", why);
  stop_everything(now);
}

void JobController::stop_everything(TimePoint now) {
  set_state(JobState::stopping, now);
  group_.dissolve();
  // Sources first, then workers, then sinks.
  std::vector<std::string> roles = elastic_roles(setup_.config);
  roles.insert(roles.end(), {"evaluator", "learner", "checkpointer"});
  for (const std::string& role : roles) launcher_.stop_all(role, "the job is ending");
}

void JobController::interrupt(const Interrupt& interrupt, TimePoint now) {
  if (exit_code()) return;
  const bool is_second = interrupted_.has_value();
  const bool has_group = state_ == JobState::running || state_ == JobState::draining;
  // Who stops a job twice does not want it back.
  interrupted_ = is_second ? Interrupt{.why = interrupt.why} : interrupt;
  if (state_ == JobState::stopping) return;
  if (evaluations_.is_awaited()) {
    effects_.event(Severity::info, "interrupted",
                   fmt::format("{}: the evaluation of step {} is not awaited; --resume auto makes it", interrupt.why,
                               setup_.config.training.steps));
    return stop_everything(now);
  }
  if (is_second || !has_group) {
    effects_.event(Severity::info, "interrupted",
                   fmt::format("{}: stopping {}; step {} is on disk", interrupt.why,
                               is_second ? "at once" : "before the group was up", checkpoints_.committed_step()));
    stop_everything(now);
    return;
  }
  effects_.event(Severity::info, "interrupted",
                 fmt::format("{}: finishing the current step and writing a checkpoint", interrupt.why));
  set_state(JobState::draining, now);
  group_.finish(interrupt.why);
}

template <class Other>
void JobController::on(const std::string&, const Other&, TimePoint) {}

void JobController::handle(const std::string& from, const Message& message, TimePoint now) {
  std::visit([&](const auto& m) { on(from, m, now); }, message);
}

void JobController::tick_stopping(TimePoint now) {
  if (now - state_since_ > kStopDeadline) {
    state_since_ = now;
    launcher_.kill_stopping("did not end in time");
    if (++kill_rounds_ > kKillRounds) give_up_stopping();
  }
  // A commit that hangs is given up like an actor that does not end.
  if (!actors_.all_ended() || (checkpoints_.newest_is_open() && kill_rounds_ <= kKillRounds)) return;
  // A step that was trained and is on no disk is not done.
  const bool cut_short =
      interrupted_ && (checkpoints_.committed_step() < setup_.config.training.steps || lacks_evaluation());
  set_state(!failure_.empty()             ? JobState::failed
            : !cut_short                  ? JobState::done
            : interrupted_->is_preemption ? JobState::preempted
                                          : JobState::stopped,
            now);
}

void JobController::give_up_stopping() {
  for (auto& [name, actor] : actors_.rows()) {
    if (actor.state == ActorState::gone || actor.state == ActorState::planned) continue;
    const std::string why = fmt::format("{} (pid {} of node/{}) does not end", name, actor.pid, actor.plan.node);
    effects_.event(Severity::error, "does_not_end", why);
    if (failure_.empty()) failure_ = why;
    actor.state = ActorState::gone;
  }
  if (checkpoints_.newest_is_open() && failure_.empty()) failure_ = "the commit of a checkpoint does not end";
}

void JobController::tick(TimePoint now) {
  if (state_ == JobState::stopping) return tick_stopping(now);
  if (exit_code()) return;
  if (!has_stopped_sources_) {
    if (auto watched = pools_.watch(now); !watched) return fail(watched.error().message(), now);
  }
  restarts_.tick(now);
  watch_evaluation(now);
  if (state_ == JobState::stopping) return;
  if (checkpoints_.newest_is_open()) group_.progressed(now);  // the ranks wait for this
  if (const auto broken = checkpoints_.failure(now)) return fail(*broken, now);
  if (checkpoints_.tick(now)) {
    group_.progressed(now);  // the ranks waited for this
    effects_.event(Severity::warn, "stuck", "the checkpointer overran checkpoint.timeout_s; it is killed");
    if (ActorRecord* writer = actors_.find("checkpointer/0"))
      launcher_.send_stop(*writer, std::chrono::milliseconds(0), "stuck");
  }
  if (forms_when_settled_ && !checkpoints_.newest_is_open()) {
    const std::string reason = *std::exchange(forms_when_settled_, {});
    // Of one that is gone meanwhile, the return forms the group.
    if (actors_.all_up("learner")) form_group(reason, now);
  }
  if (is_spare("learner")) return;
  const bool trains = state_ == JobState::running || state_ == JobState::draining;
  if (const auto reason = group_.watch(trains && !checkpoints_.is_writing(), now)) form_group(*reason, now);
}

}  // namespace troupe::workers
