#include "workers/checkpoint/role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "base/fault.h"
#include "base/log.h"
#include "comm/channel/arena.h"
#include "workers/checkpoint/snapshot_note.h"

namespace troupe::workers {

CheckpointerRole::CheckpointerRole(RoleIdentity identity, Describe describe, Outbox outbox)
    : identity_(std::move(identity)), describe_(std::move(describe)), outbox_(std::move(outbox)) {}

CheckpointerRole::~CheckpointerRole() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void CheckpointerRole::start() {
  thread_ = std::thread([this] { run(); });
  outbox_("controller",
          ActorUp{.actor = identity_.actor, .incarnation = identity_.incarnation, .pid = ::getpid(), .channels = {}});
}

void CheckpointerRole::handle(const std::string&, const Message& message) {
  const auto* request = std::get_if<CheckpointBegin>(&message);
  if (!request) return;
  std::lock_guard lock(mutex_);
  requests_.push_back(*request);
  changed_.notify_all();
}

void CheckpointerRole::run() {
  while (true) {
    CheckpointBegin request;
    {
      // Idle until asked: the controller's deadline is on the write, not on this wait.
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !requests_.empty(); });
      if (stopping_) return;
      request = requests_.front();
      requests_.pop_front();
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto written = write(request);
    CheckpointDone done{.step = request.step,
                        .fence = request.fence,
                        .directory = request.directory,
                        .manifest_hash = {},
                        .error = {},
                        .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
    if (written) {
      done.manifest_hash = written->manifest_hash;
      log::info("step {} written: {} bytes in {:.3f} s", request.step, written->bytes, done.seconds);
    } else {
      done.error = written.error().message();
      log::warn("step {}: {}", request.step, done.error);
    }
    outbox_("controller", done);
  }
}

Result<WrittenCheckpoint> CheckpointerRole::write(const CheckpointBegin& request) const {
  TROUPE_TRY(fault_point("checkpointer.begin", fmt::format("{} step {}", identity_.instance(), request.step)));
  Description description = describe_(request);
  TROUPE_ASSIGN(const SnapshotNote note, snapshot_note(request.trainer_state));
  description.manifest.optimizer.groups = note.group_updates;
  if (!note.trainer.empty()) description.attachments.push_back({.name = kTrainerStateFile, .bytes = note.trainer});
  CheckpointRequest job{.directory = request.directory,
                        .manifest = std::move(description.manifest),
                        .ranks = {},
                        .attachments = std::move(description.attachments)};
  const auto bytes = static_cast<std::size_t>(snapshot_bytes(job.manifest));
  std::vector<Arena> arenas;  // mapped before anything is written: they stay readable if a rank dies meanwhile
  for (const std::string& handle : request.snapshots) {
    auto arena = Arena::attach(handle, bytes);
    if (!arena) return arena.error().with(fmt::format("the snapshot of rank {}", arenas.size()));
    arenas.push_back(std::move(*arena));
  }
  for (const Arena& arena : arenas) job.ranks.push_back(arena.bytes());
  return CheckpointWriter().write(job);
}

}  // namespace troupe::workers
