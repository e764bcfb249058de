#include "workers/learner/rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "base/log.h"
#include "base/trace.h"
#include "kernels/device_module.h"
#include "workers/checkpoint/checkpoint_state.h"
#include "workers/checkpoint/commit.h"
#include "workers/learner/base_writer.h"
#include "workers/learner/engine_options.h"
#include "workers/learner/initial_state.h"
#include "workers/learner/rank_thread.h"

namespace troupe::workers {

namespace {

/// Resident memory of this process as the kernel counts it; 0 when it cannot be read.
std::int64_t process_resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

LearnerRank::LearnerRank(Setup setup, Trainer& trainer, Join join, Report report)
    : setup_(std::move(setup)),
      trainer_(trainer),
      join_(std::move(join)),
      report_(std::move(report)),
      engine_(trainer.network(), trainer.engine_options(),
              setup_.device ? *setup_.device->device : device::host_device(),
              setup_.device ? setup_.device->kernels.get() : nullptr) {
  thread_ = std::thread([this] { run(); });
}

LearnerRank::~LearnerRank() {
  stop();
  thread_.join();
}

std::chrono::milliseconds LearnerRank::step_timeout() const {
  return to_milliseconds(setup_.config.training.step_timeout);
}

void LearnerRank::form(const GroupPlan& plan) {
  std::lock_guard lock(mutex_);
  if (plan.fence <= fence_ || (next_ && plan.fence <= next_->fence)) return;  // fences never go back
  next_ = plan;
  told_to_abort_ = aborted_ = true;
  if (collective_) collective_->abort("a new group forms");
  trainer_.cancel("a new group forms");
  changed_.notify_all();
}

void LearnerRank::abort(std::uint64_t fence, const std::string& why) {
  std::lock_guard lock(mutex_);
  if (fence != fence_) return;
  told_to_abort_ = aborted_ = true;
  if (collective_) collective_->abort(why);
  trainer_.cancel(why);
  changed_.notify_all();
}

void LearnerRank::finish() { finish_ = true; }

void LearnerRank::snapshot_settled(const CheckpointCommitted& settled) {
  std::lock_guard lock(mutex_);
  if (settled.fence != fence_ || unsettled_ != settled.step) return;
  unsettled_.reset();
  if (!settled.committed) log::warn("{}: the checkpoint of step {} was given up", setup_.actor, settled.step);
  changed_.notify_all();
}

void LearnerRank::stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  told_to_abort_ = aborted_ = true;
  if (collective_) collective_->abort("the rank is stopped");
  trainer_.cancel("the rank is stopped");
  changed_.notify_all();
}

void LearnerRank::run() {
  begin_rank_thread(setup_.threads);
  while (true) {
    GroupPlan plan;
    {
      // Idle between groups: the controller decides when there is work, so only stop() or form() ends this wait.
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || next_; });
      if (stopping_) return;
      plan = *next_;
      next_.reset();
      fence_ = plan.fence;
      aborted_ = told_to_abort_ = false;
      unsettled_.reset();
    }
    follow(plan);
  }
}

void LearnerRank::follow(const GroupPlan& plan) {
  Result<void> result;
  try {
    result = train(plan);
  } catch (const std::exception& e) {
    result = Error{Errc::internal, e.what()};
  }
  bool told = false;
  {
    std::lock_guard lock(mutex_);
    told = told_to_abort_;
    collective_.reset();
  }
  trainer_.cancel("between groups");
  if (result) return;
  const Error& error = result.error();
  log::warn("{}: left the group of fence {}: {}", setup_.actor, plan.fence, error.to_string());
  if (told) return;
  const bool is_damaged = std::exchange(is_checkpoint_damaged_, false);
  const bool regroup = is_damaged || error.code() == Errc::aborted || error.code() == Errc::deadline_exceeded ||
                       error.code() == Errc::unavailable;
  if (regroup) {
    report_(GroupAbort{.actor = setup_.actor,
                       .fence = plan.fence,
                       .reason = error.message(),
                       .damaged_step = is_damaged ? plan.resume_step : -1});
  } else {
    report_(Fatal{.actor = setup_.actor, .text = error.message()});
  }
}

Result<std::string> LearnerRank::restore(const GroupPlan& plan) {
  if (plan.checkpoint.empty()) {
    TROUPE_ASSIGN(const auto source, open_initial_state(setup_.config, engine_.units()));
    if (source) {
      const auto loaded = engine_.load(*source);
      if (!loaded) return suggest_older(loaded.error(), setup_.config.model.init.path);
    } else {
      engine_.initialise(static_cast<std::uint64_t>(setup_.config.job.seed));
    }
    return std::string();
  }
  auto state = read_checkpoint(plan.checkpoint);
  is_checkpoint_damaged_ =
      !state && (state.error().code() == Errc::data_loss || state.error().code() == Errc::not_found);
  return state;
}

Result<std::string> LearnerRank::read_checkpoint(const std::string& directory) {
  TROUPE_ASSIGN(const auto reader, CheckpointReader::open(directory));
  const auto units = manifest_units(engine_.units(), engine_.layouts());
  TROUPE_TRY(reader->check_layout(units));
  TROUPE_TRY(reader->verify_unlisted());
  TROUPE_TRY(engine_.load(CheckpointState(*reader, units)));
  log::info("{}: restored step {}; {} bytes read and compared", setup_.actor, reader->manifest().step,
            reader->checked_bytes());
  has_base_ = has_base_ || !reader->manifest().base.empty();
  tell_conversions(reader->manifest());
  return reader->attachment(kTrainerStateFile);
}

void LearnerRank::tell_conversions(const Manifest& manifest) const {
  if (!is_rank_zero()) return;
  const SavedState saved = saved_state(setup_.config);
  const auto tell = [&](const char* kind, const std::string& text) {
    report_(Event{
        .actor = setup_.actor, .kind = kind, .text = fmt::format("checkpoint of step {}: {}", manifest.step, text)});
  };
  if (manifest.has_average() && !saved.has_average)
    tell("average_dropped", "its average of the weights is dropped, as ema.decay is 0");
  if (!manifest.has_average() && saved.has_average)
    tell("average_started", "it has no average of the weights; the average starts from its weights");
  if (manifest.has_bf16_moments() != saved.bf16_moments)
    tell("moments_converted", fmt::format("its moments are {} and become {} (optimizer.moments)",
                                          saved.bf16_moments ? "fp32" : "bf16", setup_.config.optimizer.moments));
}

Result<void> LearnerRank::report_group_up(const GroupPlan& plan) {
  auto bytes = engine_.bytes();
  bytes["resident"] = trainer_.resident_bytes();
  bytes["snapshot"] = static_cast<std::int64_t>(engine_.snapshot_bytes());
  bytes["process"] = process_resident_bytes();
  report_(GroupUp{.actor = setup_.actor, .fence = plan.fence, .bytes = bytes});
  std::lock_guard lock(mutex_);
  if (aborted_) return Error{Errc::aborted, "told to leave the group"};
  return {};
}

Result<void> LearnerRank::train(const GroupPlan& plan) {
  plan_ = plan;
  TROUPE_ASSIGN(auto joined, join_(plan));
  group_ = joined.get();
  {
    std::lock_guard lock(mutex_);
    if (aborted_) return Error{Errc::aborted, "told to leave the group"};
    collective_ = std::move(joined);
  }
  TROUPE_TRY(engine_.attach(*group_));
  has_base_ = !has_frozen_units(engine_);
  TROUPE_ASSIGN(const std::string state, restore(plan));
  TROUPE_ASSIGN(ledger_, LedgerWriter::open(setup_.run_dir + "/ledger", plan.fence, plan.rank));
  TROUPE_TRY(trainer_.begin({.engine = &engine_,
                             .group = group_,
                             .plan = plan,
                             .step_timeout = step_timeout(),
                             .state = state,
                             .report = report_}));
  TROUPE_TRY(report_group_up(plan));
  TROUPE_TRY(group_->barrier());
  divergence_.reset();
  last_commit_ = std::chrono::steady_clock::now();
  const std::int64_t steps = setup_.config.training.steps;
  if (plan.resume_step == 0) TROUPE_TRY(evaluate(0));
  std::int64_t step = plan.resume_step;
  for (bool finished = false; !finished && step < steps; ++step) {
    TROUPE_ASSIGN(finished, train_step(step));
  }
  if (step == steps) TROUPE_TRY(trainer_.conclude(step));
  TROUPE_TRY(wait_snapshot_settled("the last checkpoint"));
  report_(Finished{.actor = setup_.actor, .fence = plan.fence, .step = step});
  return {};
}

Result<void> LearnerRank::wait_snapshot_settled(const char* what) {
  const Span span("wait for the checkpointer", SpanKind::wait);
  std::unique_lock lock(mutex_);
  const auto deadline = to_milliseconds(4 * setup_.config.checkpoint.timeout);
  if (!changed_.wait_for(lock, deadline, [&] { return aborted_ || !unsettled_; })) {
    return Error{Errc::deadline_exceeded,
                 fmt::format("waited {} ms for {} (step {}) to settle", deadline.count(), what, *unsettled_)};
  }
  if (aborted_) return Error{Errc::aborted, "told to leave the group"};
  return {};
}

Result<void> LearnerRank::snapshot(std::int64_t step) {
  // One snapshot is in flight at a time: the next waits here, and the wait counts as checkpoint time.
  TROUPE_TRY(wait_snapshot_settled("the previous checkpoint"));
  SnapshotReady ready{.actor = setup_.actor, .rank = plan_.rank, .step = step, .fence = plan_.fence};
  if (auto durable = make_durable(); durable) {
    TROUPE_TRY(copy_state(ready));
  } else if (durable.error().code() == Errc::resource_exhausted) {
    ready.error = durable.error().message();  // training goes on with the older checkpoint
  } else {
    return durable;
  }
  {
    std::lock_guard lock(mutex_);
    if (aborted_) return Error{Errc::aborted, "told to leave the group"};
    unsettled_ = step;
  }
  report_(ready);
  return {};
}

Result<void> LearnerRank::make_durable() {
  TROUPE_TRY(ledger_->sync());
  if (has_base_ || engine_.replica() != 0) return {};
  const Span span("write base");
  TROUPE_TRY(write_base_part(engine_, setup_.run_dir + "/checkpoints", plan_.fence));
  has_base_ = true;
  return {};
}

Result<void> LearnerRank::copy_state(SnapshotReady& ready) {
  ready.updates = engine_.updates();
  // the first replica's state is that of all
  if (engine_.replica() != 0) return {};
  const std::size_t bytes = engine_.snapshot_bytes();
  if (!arena_ || arena_->bytes().size() != bytes) {
    const std::string folder = offload_folder(setup_.config, setup_.run_dir);
    TROUPE_ASSIGN(auto arena, folder.empty() ? Arena::create(setup_.actor + "-snapshot", bytes)
                                             : Arena::create_on_disk(folder, bytes));
    TROUPE_TRY(arena.publish(setup_.runtime_dir));
    arena_.emplace(std::move(arena));
  }
  {
    const Span span("snapshot");
    engine_.snapshot(arena_->bytes());
  }
  ready.handle = arena_->handle();
  if (is_rank_zero()) {
    ready.group_updates = engine_.group_updates();
    ready.trainer_state = trainer_.state();
  }
  return {};
}

}  // namespace troupe::workers
