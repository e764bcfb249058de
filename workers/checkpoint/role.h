#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "workers/checkpoint/writer.h"
#include "workers/role.h"

namespace troupe::workers {

/// The checkpointer: maps the ranks' snapshot arenas (CheckpointBegin::snapshots) before it writes anything, so that
/// they stay readable if a rank dies meanwhile, and writes them to disk, one checkpoint at a time, on its own
/// thread. It answers every CheckpointBegin with CheckpointDone, with an error where nothing was written; the
/// controller commits. Fault point: checkpointer.begin.
class CheckpointerRole final : public Role {
 public:
  /// The checkpoint's manifest but for the files, and the small files that go with it. What rank 0 said of its snapshot
  /// (SnapshotNote) is added here: optimizer.groups and the attachment trainer_state.json.
  struct Description {
    Manifest manifest;
    std::vector<CheckpointAttachment> attachments;
  };
  using Describe = std::function<Description(const CheckpointBegin& request)>;

  CheckpointerRole(RoleIdentity identity, Describe describe, Outbox outbox);
  /// Joins the thread after the write under way.
  ~CheckpointerRole() override;

  void start() override;
  void handle(const std::string& from, const Message& message) override;

 private:
  void run();
  Result<WrittenCheckpoint> write(const CheckpointBegin& request) const;

  const RoleIdentity identity_;
  const Describe describe_;
  const Outbox outbox_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CheckpointBegin> requests_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe::workers
