#include "app/disk_room.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/file_io.h"
#include "placement/format.h"
#include "placement/memory_model.h"
#include "placement/replay_log_size.h"
#include "placement/roles.h"
#include "placement/sharding.h"
#include "workers/checkpoint/commit.h"

namespace troupe::app {

namespace {

namespace fs = std::filesystem;

/// The disk that a folder lies on, or will.
struct Disk {
  /// The nearest folder that exists.
  std::string folder;
  dev_t device = 0;
  std::int64_t free = 0;
};

Result<Disk> disk_of(const std::string& path) {
  std::error_code code;
  fs::path folder = fs::absolute(path, code);
  while (!fs::exists(folder, code) && folder != folder.root_path()) folder = folder.parent_path();
  const auto free = static_cast<std::int64_t>(fs::space(folder, code).available);
  if (code) return file_error(folder.string(), "cannot tell the free space", code.value());
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) return file_error(folder.string(), "cannot be looked at", errno);
  return Disk{.folder = folder.string(), .device = facts.st_dev, .free = free};
}

/// What is offloaded, and snapshots, in files without names: of all ranks where they lie in the run's folder, else of
/// those of this machine.
std::int64_t offload_bytes(const JobConfig& job, const Plan& plan) {
  const MemoryTable& rank = plan.learner_memory;
  if (rank.offload_bytes == 0) return 0;
  const std::int64_t savers = sharing_ranks(job.parallelism, plan.batch.data_ranks);
  std::int64_t bytes = 0;
  for (const PlannedActor& actor : plan.actors) {
    if (actor.role != RoleKind::learner || (actor.node != 0 && !job.offload.folder.empty())) continue;
    bytes += rank.offload_bytes + (actor.process_rank < savers ? rank.snapshot_bytes : 0);
  }
  return bytes;
}

/// Of the frozen base, which a run writes once.
std::int64_t base_bytes(const JobConfig& job, const Plan& plan, const std::vector<CheckpointEntry>& there) {
  // of other policies, what is not trained is a target network, and in every checkpoint
  if (!trains_dreamzero(job)) return 0;
  const bool has_base = std::any_of(there.begin(), there.end(),
                                    [](const CheckpointEntry& entry) { return !entry.manifest.base.empty(); });
  return has_base ? 0 : plan.frozen_parameters * gathered_bytes_per_param(job);
}

RoomFinding too_small(const char* key, const Disk& disk, const std::string& what, std::int64_t needed,
                      const std::string& remedy) {
  return {.error = {Errc::resource_exhausted,
                    fmt::format("{}: {} has {} free; {}. Free {}, {}", key, disk.folder, format_bytes(disk.free), what,
                                format_bytes(needed - disk.free), remedy)}};
}

/// What the replay log will take more than it does.
std::int64_t replay_bytes(const JobConfig& job, const std::optional<RunDirectory>& run, const Plan& plan) {
  const std::int64_t there = run ? bytes_below(run->path("replay")) : 0;
  return std::max<std::int64_t>(0, replay_log_bytes(job, plan.sample_bytes) - there);
}

/// Room for checkpoints and `replay` bytes of the replay log, and for `base` and `offload` bytes, without which the job
/// does not come to the first checkpoint.
std::optional<RoomFinding> look_at_run_root(const JobConfig& job, const Disk& disk, const Plan& plan,
                                            const std::vector<CheckpointEntry>& there, std::int64_t base,
                                            std::int64_t offload, std::int64_t replay) {
  const std::int64_t one = plan.disk_bytes_per_checkpoint;
  // what a run has written already takes no more
  const std::int64_t kept = std::min(job.checkpoint.kept(), (job.training.steps - 1) / job.checkpoint.interval + 1) + 1;
  const std::int64_t more = std::max<std::int64_t>(1, kept - static_cast<std::int64_t>(there.size()));
  const std::int64_t needed = more * one + base + offload + replay;
  if (disk.free >= needed) return std::nullopt;
  std::string what = fmt::format(
      "a checkpoint takes {}, and {} of them lie there at once (checkpoint.keep {}{} and the one that is "
      "written)",
      format_bytes(one), kept, job.checkpoint.keep, job.checkpoint.keeps_best() ? ", the best" : "");
  if (base > 0) what += fmt::format("; the frozen weights beside them take {}", format_bytes(base));
  if (offload > 0) what += fmt::format("; what is offloaded takes {}", format_bytes(offload));
  std::string remedy = "choose another job.run_root, or lower checkpoint.keep";
  if (replay > 0) {
    what += fmt::format("; the replay log takes at most {}{}", format_bytes(replay), there.empty() ? "" : " more");
    remedy += ", or limit the log with algorithm.sac.replay_log_bytes";
  }
  RoomFinding finding = too_small("job.run_root", disk, what, needed, remedy);
  finding.is_warning = disk.free >= one + base + offload;
  return finding;
}

}  // namespace

std::vector<RoomFinding> look_at_room(const JobConfig& job, const std::optional<RunDirectory>& run, const Plan& plan) {
  const auto there = run ? list_checkpoints(run->checkpoints()) : std::vector<CheckpointEntry>{};
  const std::int64_t base = base_bytes(job, plan, there), offload = offload_bytes(job, plan);
  const auto root = disk_of(job.job.run_root);
  if (!root) return {{.error = root.error().with("job.run_root")}};
  std::vector<RoomFinding> findings;
  bool is_apart = false;
  if (offload > 0 && !job.offload.folder.empty()) {
    const auto disk = disk_of(job.offload.folder);
    if (!disk) return {{.error = disk.error().with("offload.folder")}};
    is_apart = disk->device != root->device;
    if (is_apart && disk->free < offload) {
      findings.push_back(too_small("offload.folder", *disk,
                                   fmt::format("what this machine's ranks keep there takes {}", format_bytes(offload)),
                                   offload, "or choose a folder on another disk"));
    }
  }
  if (auto finding =
          look_at_run_root(job, *root, plan, there, base, is_apart ? 0 : offload, replay_bytes(job, run, plan)))
    findings.push_back(std::move(*finding));
  return findings;
}

}  // namespace troupe::app
