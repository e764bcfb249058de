#include "workers/controller/checkpoint_coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <utility>

#include "base/file_io.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/seconds.h"
#include "workers/checkpoint/commit.h"

namespace troupe::workers {

namespace {

constexpr int kAttempts = 3;
/// Versions that may be on the way to the evaluator: the one being sent, and the newest behind it.
constexpr std::size_t kOnTheWay = 2;

/// As WrittenCheckpoint::manifest_hash. Errors: those of read_file.
Result<std::string> manifest_hash(const std::string& directory) {
  TROUPE_ASSIGN(const std::string text, read_file(directory + "/manifest.json"));
  return xxh3_128_hex(std::as_bytes(std::span(text)));
}

/// Of checkpoints in a folder or in the catalogue.
template <class Checkpoints>
bool has_step(const Checkpoints& all, std::int64_t step) {
  return std::any_of(all.begin(), all.end(), [&](const auto& checkpoint) { return checkpoint.step == step; });
}

/// The best so far by that metric, if its checkpoint is still there.
Result<std::optional<BestRecord>> standing_best(const StateDb& db, const std::vector<CheckpointEntry>& listed,
                                                const std::string& metric) {
  TROUPE_ASSIGN(auto best, db.best());
  if (best && (best->metric != metric || !has_step(listed, best->step))) best.reset();
  return best;
}

/// Makes row and link name the best that stands, or nothing.
Result<void> settle_best(StateDb& db, const std::string& folder, const std::string& metric) {
  TROUPE_ASSIGN(const auto recorded, db.best());
  if (!recorded) return {};
  TROUPE_ASSIGN(const auto best, standing_best(db, list_checkpoints(folder), metric));
  if (best) return move_link(folder, kBestLink, checkpoint_name(best->step));
  TROUPE_TRY(db.drop_best());
  return move_link(folder, kBestLink, "");
}

/// set_aside_checkpoint. The only one goes where this process cannot read it either: a rank whose machine does not see
/// the folder says the same of a sound one.
Result<CheckpointEntry> set_aside_unreadable(const std::string& folder, std::int64_t step, std::uint64_t fence,
                                             OnlyCheckpoint only) {
  auto older = set_aside_checkpoint(folder, step, fence);
  const bool is_only = !older && older.error().code() == Errc::not_found;
  if (!is_only || only == OnlyCheckpoint::stays) return older;
  const auto sound = newest_valid(folder);
  if (sound || sound.error().code() != Errc::not_found) return older;
  return set_aside_checkpoint(folder, step, fence, OnlyCheckpoint::goes);
}

}  // namespace

CheckpointCoordinator::CheckpointCoordinator(Options options, RunDirectory run, StateDb& db, ControllerEffects& effects)
    : options_(options), run_(std::move(run)), db_(db), effects_(effects) {}

void CheckpointCoordinator::resume_from(std::int64_t step, const std::string& directory) {
  began_at_ = committed_step_ = step;
  committed_directory_ = directory;
  expect_evaluation(step);
}

void CheckpointCoordinator::on_snapshot(const SnapshotReady& snapshot, std::uint64_t fence, bool checkpointer_up,
                                        const std::set<std::int64_t>& void_positions,
                                        const std::set<std::int64_t>& bad_positions, TimePoint now) {
  if (snapshot.fence != fence) return;
  if (!pending_ || pending_->request.step != snapshot.step || pending_->request.fence != fence) {
    pending_ = Pending{.request = {.step = snapshot.step, .fence = fence}};
  }
  pending_->handles[snapshot.rank] = snapshot.handle;
  if (!snapshot.error.empty()) pending_->refused = snapshot.error;
  CheckpointBegin& request = pending_->request;
  request.updates = snapshot.updates;
  if (snapshot.rank == 0) {
    request.group_updates = snapshot.group_updates;
    request.trainer_state = snapshot.trainer_state;
  }
  request.void_positions.assign(void_positions.begin(), void_positions.end());
  request.bad_positions.assign(bad_positions.begin(), bad_positions.end());
  if (static_cast<std::int64_t>(pending_->handles.size()) < options_.world) return;
  if (!pending_->refused.empty()) {
    const Pending refused = *std::exchange(pending_, {});
    give_up(refused, refused.refused);
  } else if (checkpointer_up) {
    begin(now);
  }
}

std::string CheckpointCoordinator::folder_of(std::int64_t step, std::uint64_t fence) const {
  return run_.checkpoints() + "/" + checkpoint_tmp_name(step, fence);
}

void CheckpointCoordinator::begin(TimePoint now) {
  Pending& p = *pending_;
  p.sent = true;
  p.retry_at.reset();
  p.begun = now;
  if (p.request.step != attempted_step_) attempts_ = 0;
  attempted_step_ = p.request.step;
  ++attempts_;
  CheckpointBegin message = p.request;
  message.directory = folder_of(message.step, message.fence);
  // ranks of other replicas have none
  for (const auto& [rank, handle] : p.handles) {
    if (!handle.empty()) message.snapshots.push_back(handle);
  }
  effects_.send("checkpointer/0", message);
}

void CheckpointCoordinator::on_checkpointer_up(TimePoint now) {
  if (pending_ && static_cast<std::int64_t>(pending_->handles.size()) == options_.world) begin(now);
}

void CheckpointCoordinator::commit(const CheckpointDone& done) {
  const std::string name = checkpoint_name(done.step);
  const CheckpointRecord record{
      .step = done.step, .fence = done.fence, .directory = "checkpoints/" + name, .manifest_hash = done.manifest_hash};
  begun_commit_ = record;
  committing_ = std::exchange(pending_, {});
  committing_->begun = now_;
  const std::string folder = run_.checkpoints(), written = folder_of(done.step, done.fence);
  effects_.in_background(
      [&db = db_, record, folder, written]() -> Result<void> {
        TROUPE_TRY(db.begin_commit(record));
        TROUPE_TRY(commit_checkpoint(folder, written, record.step));
        return db.finish_commit(record);
      },
      [this](const Result<void>& result) {
        if (result) {
          committed();
        } else {
          failed(*std::exchange(committing_, {}), result.error().message());
        }
      });
}

void CheckpointCoordinator::committed() {
  const CheckpointRecord record = *std::exchange(begun_commit_, {});
  const Pending done = *std::exchange(committing_, {});
  committed_step_ = record.step;
  committed_directory_ = run_.path(record.directory);
  tell_learners(done, true);
  if (const auto evaluated = evaluations_.find(record.step); evaluated != evaluations_.end())
    judge({.step = record.step, .metric = options_.best_metric, .value = evaluated->second});
  expect_evaluation(record.step);
  // the checkpoints of those before were given up
  evaluations_.erase(evaluations_.begin(), evaluations_.upper_bound(record.step));
  prune(record.fence);
}

void CheckpointCoordinator::prune(std::uint64_t fence) {
  const auto keep = static_cast<std::size_t>(options_.keep);
  std::set<std::int64_t> awaited = expected_;
  if (keeps_best() && evaluating_) awaited.insert(*evaluating_);
  effects_.in_background(
      [&db = db_, folder = run_.checkpoints(), keep, keeps_best = keeps_best(), fence, awaited]() -> Result<void> {
        std::set<std::int64_t> also = awaited;
        if (keeps_best) {
          TROUPE_ASSIGN(const auto best, db.best());
          if (best) also.insert(best->step);
        }
        for (const std::int64_t step : prune_checkpoints(folder, keep, fence, also))
          TROUPE_TRY(db.remove_checkpoint(step));
        return {};
      },
      [](const Result<void>& pruned) {
        if (!pruned) log::warn("checkpoints that were pruned stay listed: {}", pruned.error().message());
      });
}

void CheckpointCoordinator::expect_evaluation(std::int64_t step) {
  const bool is_expected =
      keeps_best() && step > newest_begun_ && options_.is_evaluated_beside && options_.is_evaluated_beside(step);
  if (!is_expected) return;
  expected_.insert(step);
  if (expected_.size() > kOnTheWay) expected_.erase(expected_.begin());
}

void CheckpointCoordinator::on_evaluation_begun(std::int64_t step) {
  evaluating_ = newest_begun_ = step;
  expected_.erase(expected_.begin(), expected_.upper_bound(step));
}

void CheckpointCoordinator::forget_evaluations(std::int64_t last, std::uint64_t fence) {
  newest_begun_ = std::min(newest_begun_, last);
  const auto later = expected_.upper_bound(last);
  const bool is_evaluating_later = evaluating_ && *evaluating_ > last;
  if (!is_evaluating_later && later == expected_.end()) return;
  if (is_evaluating_later) evaluating_.reset();
  expected_.erase(later, expected_.end());
  if (keeps_best()) prune(fence);
}

void CheckpointCoordinator::on_evaluation(const EvalReport& report) {
  if (evaluating_ == report.step) evaluating_.reset();
  expected_.erase(expected_.begin(), expected_.upper_bound(report.step));
  if (!keeps_best()) return;
  const auto value = value_of(report);
  if (value && report.step > committed_step_) {
    evaluations_[report.step] = *value;
  } else if (value) {
    judge({.step = report.step, .metric = options_.best_metric, .value = *value});
  }
  prune(report.fence);
}

std::optional<double> CheckpointCoordinator::value_of(const EvalReport& report) const {
  const auto metric = report.metrics.find(options_.best_metric);
  if (metric == report.metrics.end() || !std::isfinite(metric->second)) {
    log::warn("the evaluation of step {} has no {}; it is not compared with the best", report.step,
              options_.best_metric);
    return {};
  }
  if (const auto lost = report.metrics.find("eval/lost"); lost != report.metrics.end() && lost->second > 0) {
    log::warn("the evaluation of step {} lost {} episodes; it is not compared with the best", report.step,
              lost->second);
    return {};
  }
  return metric->second;
}

void CheckpointCoordinator::judge(const BestRecord& evaluated) {
  effects_.in_background(
      [&db = db_, folder = run_.checkpoints(), evaluated, least = options_.least_is_best]() -> Result<void> {
        const auto listed = list_checkpoints(folder);
        if (!has_step(listed, evaluated.step)) {
          log::warn("the evaluation of step {} is not compared with the best, as its checkpoint is not there",
                    evaluated.step);
          return {};
        }
        TROUPE_ASSIGN(const auto best, standing_best(db, listed, evaluated.metric));
        const bool is_worse = best && best->step != evaluated.step &&
                              !(least ? evaluated.value < best->value : evaluated.value > best->value);
        if (is_worse) return {};
        TROUPE_TRY(db.set_best(evaluated));
        return move_link(folder, kBestLink, checkpoint_name(evaluated.step));
      },
      [](const Result<void>& judged) {
        if (!judged) log::warn("the best checkpoint is not known: {}", judged.error().message());
      });
}

Result<void> CheckpointCoordinator::settle() {
  TROUPE_ASSIGN(const auto begun, db_.unfinished_commit());
  if (begun) {
    const std::string directory = run_.path(begun->directory);
    const auto found = manifest_hash(directory);
    const bool is_there = found && *found == begun->manifest_hash;
    if (is_there) {
      // The name may not be durable yet, and `latest` may still be that of the one before. What it replaced may lie
      // under the name that it had while it was written: that is not exchanged back.
      remove_checkpoint(folder_of(begun->step, begun->fence));
      TROUPE_TRY(commit_checkpoint(run_.checkpoints(), folder_of(begun->step, begun->fence), begun->step));
      TROUPE_TRY(db_.finish_commit(*begun));
    } else {
      TROUPE_TRY(db_.drop_commit());
    }
    effects_.event(Severity::info, "checkpoint_settled",
                   fmt::format("the commit of step {} was interrupted: {}", begun->step,
                               is_there ? "finished now" : "nothing of it stayed"));
  }
  // The run goes on from the newest that can be read: later ones could not.
  auto listed = list_checkpoints(run_.checkpoints());
  for (; committed_step_ > 0 && !listed.empty() && listed.back().step > committed_step_; listed.pop_back())
    TROUPE_TRY(set_aside_checkpoint(run_.checkpoints(), listed.back().step, listed.back().manifest.fence));
  TROUPE_TRY(settle_catalogue());
  TROUPE_TRY(settle_best(db_, run_.checkpoints(), options_.best_metric));
  return db_.set_committed_step(committed_step_);
}

Result<void> CheckpointCoordinator::settle_catalogue() {
  TROUPE_ASSIGN(const auto recorded, db_.checkpoints());
  const auto listed = list_checkpoints(run_.checkpoints());
  for (const CheckpointRecord& record : recorded) {
    if (!has_step(listed, record.step)) TROUPE_TRY(db_.remove_checkpoint(record.step));
  }
  for (const CheckpointEntry& entry : listed) {
    if (has_step(recorded, entry.step)) continue;
    TROUPE_ASSIGN(const std::string hash, manifest_hash(entry.directory));
    TROUPE_TRY(db_.add_checkpoint({.step = entry.step,
                                   .fence = entry.manifest.fence,
                                   .directory = "checkpoints/" + checkpoint_name(entry.step),
                                   .manifest_hash = hash}));
  }
  return {};
}

void CheckpointCoordinator::take_back() {
  if (!begun_commit_) return;
  const CheckpointRecord begun = *std::exchange(begun_commit_, {});
  const std::string directory = run_.path(begun.directory);
  const std::string before = committed_directory_ == directory
                                 ? std::string()
                                 : std::filesystem::path(committed_directory_).filename().string();
  effects_.in_background(
      [&db = db_, directory, before, hash = begun.manifest_hash, folder = run_.checkpoints()]() -> Result<void> {
        const auto found = manifest_hash(directory);
        if (found && *found == hash) {
          remove_checkpoint(directory);
          TROUPE_TRY(move_link(folder, kLatestLink, before));
        }
        return db.drop_commit();
      },
      [](const Result<void>& taken_back) {
        // What cannot be written now is found by settle(): the folder is gone by then.
        if (!taken_back) log::warn("{}", taken_back.error().message());
      });
}

void CheckpointCoordinator::on_done(const CheckpointDone& done, std::uint64_t fence, TimePoint now) {
  now_ = now;
  if (!pending_ || done.step != pending_->request.step || done.fence != pending_->request.fence ||
      done.fence != fence) {
    // A stale writer's folder is garbage; its path is made here from two numbers, never taken from the message. A
    // failure to remove it is found by the next prune.
    effects_.in_background(
        [folder = folder_of(done.step, done.fence)]() -> Result<void> {
          std::error_code ignored;
          std::filesystem::remove_all(folder, ignored);
          return {};
        },
        {});
  } else if (done.error.empty()) {
    commit(done);
  } else {
    failed(*std::exchange(pending_, {}), done.error);
  }
}

void CheckpointCoordinator::failed(Pending attempt, const std::string& why) {
  effects_.event(Severity::warn, "checkpoint_failed",
                 fmt::format("checkpoint of step {} failed (attempt {} of {}): {}; step {} stays the newest",
                             attempt.request.step, attempts_, kAttempts, why, committed_step_));
  if (attempt.is_abandoned) {
    take_back();
  } else if (attempts_ >= kAttempts || pending_) {
    give_up(attempt, why);
  } else {
    pending_ = std::move(attempt);
    pending_->retry_at = now_ + std::chrono::seconds(attempts_);
  }
}

void CheckpointCoordinator::give_up(const Pending& attempt, const std::string& why) {
  effects_.event(Severity::error, "checkpoint_given_up",
                 fmt::format("checkpoint of step {} given up: {}", attempt.request.step, why));
  tell_learners(attempt, false);
  take_back();
  attempts_ = 0;  // whoever comes to this step again tries anew
}

void CheckpointCoordinator::tell_learners(const Pending& attempt, bool committed) {
  for (const auto& [rank, handle] : attempt.handles) {
    effects_.send(
        fmt::format("learner/{}", rank),
        CheckpointCommitted{.step = attempt.request.step, .fence = attempt.request.fence, .committed = committed});
  }
}

void CheckpointCoordinator::abandon() {
  // A commit that is under way may succeed, and its step is not evaluated again then.
  std::erase_if(evaluations_, [&](const auto& of) { return !committing_ || of.first != committing_->request.step; });
  pending_.reset();
  if (committing_) {
    committing_->is_abandoned = true;
  } else {
    take_back();
  }
}

void CheckpointCoordinator::go_back(std::uint64_t fence, const std::string& why, TimePoint now) {
  going_back_since_ = now;
  const std::int64_t damaged = committed_step_;
  const auto only = damaged == began_at_ ? OnlyCheckpoint::goes : OnlyCheckpoint::stays;
  const auto older = std::make_shared<CheckpointEntry>();
  effects_.in_background(
      [&db = db_, folder = run_.checkpoints(), damaged, fence, only, older,
       metric = options_.best_metric]() -> Result<void> {
        TROUPE_ASSIGN(*older, set_aside_unreadable(folder, damaged, fence, only));
        TROUPE_TRY(db.remove_checkpoint(damaged));
        TROUPE_TRY(settle_best(db, folder, metric));
        return db.set_committed_step(older->step);
      },
      [this, damaged, why, older](const Result<void>& result) {
        going_back_since_.reset();
        if (!result) {
          lost_ =
              fmt::format("the checkpoint of step {} cannot be read: {}; {}", damaged, why, result.error().message());
          return;
        }
        if (damaged == began_at_) began_at_ = older->step;
        committed_step_ = older->step;
        committed_directory_ = older->directory;
        effects_.event(Severity::error, "checkpoint_damaged",
                       fmt::format("the checkpoint of step {} cannot be read: {}; it is kept under another name, and "
                                   "all ranks go back to step {}",
                                   damaged, why, committed_step_));
      });
}

std::optional<std::string> CheckpointCoordinator::failure(TimePoint now) const {
  if (!lost_.empty()) return lost_;
  const auto since = committing_ ? std::optional(committing_->begun) : going_back_since_;
  if (!since || now - *since <= options_.timeout) return {};
  return fmt::format("{} does not end within checkpoint.timeout_s: the disk of {} does not answer",
                     committing_ ? "a checkpoint was written and its commit" : "setting a damaged checkpoint aside",
                     run_.root());
}

bool CheckpointCoordinator::tick(TimePoint now) {
  now_ = now;
  if (!pending_) return false;
  if (pending_->retry_at && now >= *pending_->retry_at) begin(now);
  if (pending_->sent && !pending_->retry_at && now - pending_->begun > options_.timeout) {
    pending_->begun = now;
    if (attempts_ >= kAttempts)
      give_up(*std::exchange(pending_, {}),
              fmt::format("it was not written within {} s, {} times", Seconds(options_.timeout).count(), attempts_));
    return true;
  }
  return false;
}

}  // namespace troupe::workers
