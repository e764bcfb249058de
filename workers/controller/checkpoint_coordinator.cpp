#include "workers/controller/checkpoint_coordinator.h"

#include <fmt/format.h>

#include <filesystem>

#include "workers/checkpoint/commit.h"

namespace troupe::workers {

namespace {
constexpr int kAttempts = 3;
}

CheckpointCoordinator::CheckpointCoordinator(Options options, RunDirectory run, StateDb& db, ControllerEffects& effects)
    : options_(options), run_(std::move(run)), db_(db), effects_(effects) {}

void CheckpointCoordinator::resume_from(std::int64_t step, const std::string& directory) {
  committed_step_ = step;
  committed_directory_ = directory;
}

void CheckpointCoordinator::on_snapshot(const SnapshotReady& snapshot, std::uint64_t fence, bool checkpointer_up,
                                        const std::set<std::int64_t>& void_positions, TimePoint now) {
  if (snapshot.fence != fence) return;
  if (!pending_ || pending_->request.step != snapshot.step || pending_->request.fence != fence) {
    pending_ = Pending{.request = {.step = snapshot.step, .fence = fence}};
  }
  pending_->handles[snapshot.rank] = snapshot.handle;
  CheckpointBegin& request = pending_->request;
  request.updates = snapshot.updates;
  if (snapshot.rank == 0) {
    request.group_updates = snapshot.group_updates;
    request.trainer_state = snapshot.trainer_state;
  }
  request.void_positions.assign(void_positions.begin(), void_positions.end());
  if (static_cast<std::int64_t>(pending_->handles.size()) == options_.world && checkpointer_up) begin(now);
}

std::string CheckpointCoordinator::folder_of(std::int64_t step, std::uint64_t fence) const {
  return run_.checkpoints() + "/" + checkpoint_tmp_name(step, fence);
}

void CheckpointCoordinator::begin(TimePoint now) {
  Pending& p = *pending_;
  p.sent = true;
  p.retry_at.reset();
  p.begun = now;
  ++p.attempts;
  CheckpointBegin message = p.request;
  message.directory = folder_of(message.step, message.fence);
  for (const auto& [rank, handle] : p.handles) message.snapshots.push_back(handle);
  effects_.send("checkpointer/0", message);
}

void CheckpointCoordinator::on_checkpointer_up(TimePoint now) {
  if (pending_ && static_cast<std::int64_t>(pending_->handles.size()) == options_.world) begin(now);
}

Result<void> CheckpointCoordinator::commit(const CheckpointDone& done) {
  TROUPE_ASSIGN(const std::string directory,
                commit_checkpoint(run_.checkpoints(), folder_of(done.step, done.fence), done.step));
  const std::string relative = "checkpoints/" + std::filesystem::path(directory).filename().string();
  TROUPE_TRY(db_.add_checkpoint(
      {.step = done.step, .fence = done.fence, .directory = relative, .manifest_hash = done.manifest_hash}));
  TROUPE_TRY(db_.set_committed_step(done.step));
  committed_step_ = done.step;
  committed_directory_ = directory;
  for (const std::int64_t step :
       prune_checkpoints(run_.checkpoints(), static_cast<std::size_t>(options_.keep), done.fence)) {
    TROUPE_TRY(db_.remove_checkpoint(step));
  }
  return {};
}

bool CheckpointCoordinator::on_done(const CheckpointDone& done, std::uint64_t fence, TimePoint now) {
  if (!pending_ || done.step != pending_->request.step || done.fence != pending_->request.fence ||
      done.fence != fence) {
    // A stale writer's folder is garbage; its path is made here from two numbers, never taken from the message. A
    // failure to remove it is found by the next prune.
    std::error_code ignored;
    std::filesystem::remove_all(folder_of(done.step, done.fence), ignored);
    return false;
  }
  Result<void> result = done.error.empty() ? commit(done) : Result<void>(Error{Errc::resource_exhausted, done.error});
  if (result) {
    tell_learners(true);
    pending_.reset();
    return true;
  }
  effects_.event(Severity::warn, "checkpoint_failed",
                 fmt::format("checkpoint of step {} failed (attempt {} of {}): {}; step {} stays the newest", done.step,
                             pending_->attempts, kAttempts, result.error().message(), committed_step_));
  if (pending_->attempts >= kAttempts) {
    give_up(result.error().message());
  } else {
    pending_->retry_at = now + std::chrono::seconds(pending_->attempts);
  }
  return false;
}

void CheckpointCoordinator::give_up(const std::string& why) {
  effects_.event(Severity::error, "checkpoint_given_up",
                 fmt::format("checkpoint of step {} given up: {}", pending_->request.step, why));
  tell_learners(false);
  pending_.reset();
}

void CheckpointCoordinator::tell_learners(bool committed) {
  for (const auto& [rank, handle] : pending_->handles) {
    effects_.send(
        fmt::format("learner/{}", rank),
        CheckpointCommitted{.step = pending_->request.step, .fence = pending_->request.fence, .committed = committed});
  }
}

void CheckpointCoordinator::abandon() { pending_.reset(); }

bool CheckpointCoordinator::tick(TimePoint now) {
  if (!pending_) return false;
  if (pending_->retry_at && now >= *pending_->retry_at) begin(now);
  if (pending_->sent && !pending_->retry_at && now - pending_->begun > options_.timeout) {
    pending_->begun = now;
    return true;
  }
  return false;
}

}  // namespace troupe::workers
