#include "workers/checkpoint/role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fault.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "comm/channel/arena.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/frozen_base.h"

namespace troupe::workers {

namespace {

/// The base that a checkpoint names: the one that its group wrote, else that of the newest checkpoint, which the group
/// began at.
Result<std::string> base_of(const CheckpointRequest& job) {
  const auto& units = job.manifest.units;
  if (std::none_of(units.begin(), units.end(), [](const ManifestUnit& unit) { return unit.in_base; }))
    return std::string();
  const std::string folder = std::filesystem::path(job.directory).parent_path().string();
  TROUPE_ASSIGN(const std::optional<std::string> written, close_base(folder, job.manifest));
  if (written) return *written;
  const auto checkpoints = list_checkpoints(folder);
  if (!checkpoints.empty() && !checkpoints.back().manifest.base.empty()) return checkpoints.back().manifest.base;
  return Error{Errc::failed_precondition, fmt::format("{}: its group wrote no frozen base, and no checkpoint in {} "
                                                      "names one",
                                                      job.directory, folder)};
}

}  // namespace

CheckpointerRole::CheckpointerRole(ActorIdentity identity, Describe describe, Outbox outbox)
    : identity_(std::move(identity)), describe_(std::move(describe)), outbox_(std::move(outbox)) {}

void CheckpointerRole::start() {
  outbox_("controller", ActorUp{.actor = identity_.actor, .incarnation = identity_.incarnation, .pid = ::getpid()});
}

void CheckpointerRole::handle(const std::string&, const Message& message) {
  const auto* request = std::get_if<CheckpointBegin>(&message);
  if (!request) return;
  const auto begin = std::chrono::steady_clock::now();
  const Span span("write checkpoint");
  const auto written = write(*request);
  CheckpointDone done{.step = request->step, .fence = request->fence, .seconds = seconds_since(begin)};
  if (written) {
    done.manifest_hash = written->manifest_hash;
    log::info("step {} written: {} bytes in {:.3f} s", request->step, written->bytes, done.seconds);
  } else {
    done.error = written.error().message();
    log::warn("step {}: {}", request->step, done.error);
  }
  outbox_("controller", done);
}

Result<WrittenCheckpoint> CheckpointerRole::write(const CheckpointBegin& request) const {
  TROUPE_TRY(fault_point("checkpointer.begin", fmt::format("{} step {}", identity_.instance(), request.step)));
  Description description = describe_(request);
  const auto& groups = request.group_updates;
  const bool in_step =
      std::all_of(groups.begin(), groups.end(), [&](const auto& g) { return g.second == request.updates; });
  // Groups that are updated together, without a state beside them, say nothing that optimizer.updates does not.
  if (!in_step || !request.trainer_state.empty()) description.manifest.optimizer.groups = groups;
  if (!request.trainer_state.empty())
    description.attachments.push_back({.name = kTrainerStateFile, .bytes = request.trainer_state});
  CheckpointRequest job{.directory = request.directory,
                        .manifest = std::move(description.manifest),
                        .attachments = std::move(description.attachments)};
  TROUPE_ASSIGN(job.manifest.base, base_of(job));
  const auto bytes = static_cast<std::size_t>(snapshot_bytes(job.manifest));
  std::vector<Arena> arenas;  // mapped before anything is written: they stay readable if a rank dies meanwhile
  for (const std::string& handle : request.snapshots) {
    // a rank that offloads keeps its snapshot on a disk
    auto arena = Arena::attach(handle, bytes, ArenaPlace::disk);
    if (!arena) return arena.error().with(fmt::format("the snapshot of rank {}", arenas.size()));
    arenas.push_back(std::move(*arena));
  }
  for (const Arena& arena : arenas) job.ranks.push_back(arena.bytes());
  return CheckpointWriter().write(job);
}

}  // namespace troupe::workers
