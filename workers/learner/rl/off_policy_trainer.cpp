#include "workers/learner/rl/off_policy_trainer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/fault.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "kernels/threads.h"
#include "workers/rollout/ended_rows.h"
#include "workers/rollout/trainer_state.h"

namespace troupe::workers {

OffPolicyTrainer::OffPolicyTrainer(const RlTrainerSetup& setup, Feed& feed)
    : RlTrainer(setup, feed),
      critic_objective_(agent_.policy->objective("critic")),
      actor_objective_(agent_.policy->objective("actor")),
      replay_(ReplayBuffer::options_of(setup_.config), collector_.layout(), agent_.shape) {}

Result<void> OffPolicyTrainer::begin(const TrainerSession& session) {
  session_ = session;
  log_ = std::make_unique<ReplayLog>(setup_.run_dir + "/replay", session.plan.rank, session.plan.world,
                                     setup_.config.algorithm.sac.replay_log_bytes / session.plan.world);
  if (replays_demonstrations(setup_.config) && !recorded_.transitions) {
    TROUPE_ASSIGN(recorded_, read_recorded_replay(setup_.config, agent_));
  }
  TROUPE_ASSIGN(const RlTrainerState restored, RlTrainerState::parse(session.state));
  TROUPE_TRY(restore(restored.counters));
  divergence_.clear();
  begin_at(session.plan.resume_step * collector_.shape().rounds_per_step);
  return {};
}

Result<void> OffPolicyTrainer::restore(const std::map<std::string, std::int64_t>& totals) {
  const auto total = [&](const char* name) { return totals.count(name) != 0 ? totals.at(name) : 0; };
  step_ = session_.plan.resume_step;
  const RlShape& shape = collector_.shape();
  const std::int64_t share = shape.blocks / session_.plan.world, first_block = session_.plan.rank * share;
  const std::int64_t capacity = setup_.config.algorithm.sac.replay_capacity / session_.plan.world;
  if (capacity < shape.calls * shape.envs) {
    return Error{
        Errc::invalid_argument,
        fmt::format(
            "algorithm.sac.replay_capacity: {} over {} learners is less than the {} transitions of one trajectory",
            setup_.config.algorithm.sac.replay_capacity, session_.plan.world, shape.calls * shape.envs)};
  }
  replay_.clear(capacity);
  may_draw_ = false;
  logged_.clear();
  log_->keep(0, step_);
  TROUPE_TRY(log_->read(0, step_, [&](const CollectedItem& item) -> Result<void> {
    const std::int64_t block = item.position % shape.blocks;
    if (block < first_block || block >= first_block + share) return {};
    if (auto whole = check_item_bytes(collector_.layout(), item.bytes); !whole) {
      return Error{Errc::data_loss,
                   fmt::format("{}/replay: trajectory {} has {}. Another version of troupe wrote it, or for another "
                               "environment or algorithm: start a new run",
                               setup_.run_dir, item.position, whole.error().message())};
    }
    replay_.add(item.bytes);
    note_logged(item.position / shape.items_per_step());
    return {};
  }));
  // Totals of the run are carried on by rank 0; how they were split does not matter to the identity.
  const bool carries = session_.plan.rank == 0;
  lost_ = carries ? total("lost") : 0;
  env_steps_ = carries ? total("env_steps") : 0;
  updates_ = total("updates");
  // Of what was produced, all that is not resident any more is evicted: before the checkpoint, while the log was
  // read, or with files that had gone.
  double resident = static_cast<double>(replay_.resident());
  TROUPE_TRY(session_.group->all_reduce_sum({&resident, 1}));
  const std::int64_t evicted = carries ? total("produced") - total("lost") - static_cast<std::int64_t>(resident) : 0;
  evicted_before_ = evicted - replay_.evicted();
  produced_ = replay_.resident() + evicted + lost_;
  draws_ = carries ? total("draws") : 0;
  draws_of_run_ = total("batches");
  return {};
}

Result<void> OffPolicyTrainer::collect_round(std::int64_t round, std::vector<CollectedItem>& items,
                                             StepOutcome& outcome) {
  const Span span("collect");
  TROUPE_ASSIGN(auto taken, collector_.take(round, outcome.stall_seconds));
  EpisodeSummary mine;
  mine.add(collector_.layout(), taken);
  env_steps_ += mine.env_steps();
  lost_ += mine.lost();
  const TrajectoryLayout& layout = collector_.layout();
  produced_ += static_cast<std::int64_t>(taken.size()) * layout.calls * layout.rows + mine.given_up();
  for (CollectedItem& item : taken) {
    replay_.add(item.bytes);
    outcome.consumed.push_back({.position = item.position, .xxh3 = item.xxh3, .void_reason = ""});
    items.push_back(std::move(item));
  }
  return {};
}

void OffPolicyTrainer::note_logged(std::int64_t step) {
  if (logged_.empty() || logged_.back().first != step) logged_.emplace_back(step, 0);
  logged_.back().second = replay_.evicted() + replay_.resident();
}

void OffPolicyTrainer::remove_evicted_files() {
  // A resumed run goes back to a checkpoint, at which transitions were resident that have been evicted since.
  const RlShape& shape = collector_.shape();
  const std::int64_t per_step = shape.items_per_step() / session_.plan.world * shape.calls * shape.envs;
  const std::int64_t margin = 2 * setup_.config.checkpoint.interval * per_step;
  while (!logged_.empty() && logged_.front().second + margin <= replay_.evicted()) logged_.pop_front();
  if (!logged_.empty()) log_->keep(logged_.front().first, step_ + 1);
}

std::int64_t OffPolicyTrainer::updates_due(std::int64_t round) const {
  const SacConfig& sac = setup_.config.algorithm.sac;
  const std::int64_t steps = (round + 1) * collector_.shape().env_steps_per_round() - sac.learning_starts;
  return steps <= 0 ? 0 : static_cast<std::int64_t>(std::floor(static_cast<double>(steps) * sac.updates_per_step));
}

Result<void> OffPolicyTrainer::update_until(std::int64_t due, Progress& progress) {
  Result<void> updated;
  // updates follow one another within microseconds: the other threads stand by meanwhile
  const int threads = critic_objective_->manual_backward() == nullptr ? 1 : kernels::num_threads();
  kernels::with_own_team(threads, [&] {
    while (updated && updates_ < due) updated = update(progress);
  });
  return updated;
}

Result<StepOutcome> OffPolicyTrainer::step(std::int64_t step, bool finish_requested) {
  StepOutcome outcome;
  Progress progress;
  std::vector<CollectedItem> items;
  step_ = step;
  const std::int64_t rounds = collector_.shape().rounds_per_step;
  for (std::int64_t round = step * rounds; round < (step + 1) * rounds; ++round) {
    TROUPE_TRY(collect_round(round, items, outcome));
    TROUPE_TRY(fault_point("learner.step", fmt::format("{}#{} step {}", setup_.actor, setup_.incarnation, step)));
    const auto begin = std::chrono::steady_clock::now();
    const std::int64_t due = updates_due(round);
    bool draws = false;
    if (updates_ < due) {
      TROUPE_ASSIGN(draws, may_draw());
    }
    const Span span("updates");
    if (draws) TROUPE_TRY(update_until(due, progress));
    outcome.compute_seconds += seconds_since(begin);
    {
      const ScopedSeconds publishing(outcome.metrics["time/publish"]);
      publish(round + 1);
    }
    collector_.allow(round + 1);
  }
  TROUPE_TRY(log_->append(step, items));
  EpisodeSummary episodes;
  episodes.add(collector_.layout(), items);
  TROUPE_TRY(episodes.reduce(*session_.group));
  outcome.metrics.merge(episodes.metrics(agent_.spec().has_success));
  for (const auto& [name, sum] : progress.sums)
    outcome.metrics["train/" + name] = sum / static_cast<double>(progress.counts[name]);
  for (const auto& [group, rate] : rl_rates(setup_.config, step))
    outcome.metrics[fmt::format("train/{}/lr", group)] = rate;
  outcome.metrics["train/replay_buffer/size"] = static_cast<double>(replay_.resident());
  if (recorded_.transitions)
    outcome.metrics["train/replay_buffer/demonstrations"] = static_cast<double>(recorded_.transitions->resident());
  outcome.metrics["train/updates"] = static_cast<double>(updates_);
  outcome.metrics["train/skipped_minibatches"] = static_cast<double>(progress.skipped);
  outcome.metrics["time/generate_rollouts"] = outcome.stall_seconds;
  outcome.metrics["time/actor_training"] = outcome.compute_seconds;
  double shared[] = {finish_requested ? 1.0 : 0.0, outcome.stall_seconds};
  TROUPE_TRY(session_.group->all_reduce_max(shared));
  outcome.finish = shared[0] > 0;
  outcome.stall_seconds = shared[1];
  outcome.counters = {{"produced", produced_},
                      {"resident", replay_.resident()},
                      {"evicted", evicted_before_ + replay_.evicted()},
                      {"lost", lost_},
                      {"draws", draws_},
                      {"env_steps", env_steps_}};
  if (session_.plan.rank == 0) outcome.counters["updates"] = updates_;  // every rank makes all of them
  TROUPE_TRY(share_totals());
  outcome.metrics["env/steps"] = static_cast<double>(episodes.env_steps());
  outcome.metrics["env/total_steps"] = static_cast<double>(totals_.at("env_steps"));
  note_logged(step);
  remove_evicted_files();
  return outcome;
}

Result<void> OffPolicyTrainer::share_totals() {
  std::vector<double> sums = {static_cast<double>(produced_), static_cast<double>(lost_), static_cast<double>(draws_),
                              static_cast<double>(env_steps_)};
  TROUPE_TRY(session_.group->all_reduce_sum(sums));
  totals_ = {{"produced", static_cast<std::int64_t>(sums[0])},
             {"lost", static_cast<std::int64_t>(sums[1])},
             {"draws", static_cast<std::int64_t>(sums[2])},
             {"env_steps", static_cast<std::int64_t>(sums[3])},
             {"updates", updates_},
             {"batches", draws_of_run_}};
  return {};
}

std::string OffPolicyTrainer::state() const {
  return RlTrainerState{.present = true,
                        .optimizer_steps = updates_,
                        .env_steps = totals_.count("env_steps") != 0 ? totals_.at("env_steps") : 0,
                        .counters = totals_}
      .text();
}

}  // namespace troupe::workers
