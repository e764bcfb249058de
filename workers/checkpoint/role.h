#pragma once

#include <functional>
#include <string>

#include "comm/control/actor_identity.h"
#include "comm/control/outbox.h"
#include "workers/checkpoint/writer.h"

namespace troupe::workers {

/// The checkpointer: maps the ranks' snapshot arenas (CheckpointBegin::snapshots) before it writes anything, so that
/// they stay readable if a rank dies meanwhile, and writes them to disk in handle(), one checkpoint at a time: the
/// caller's queue of messages is the queue of checkpoints. It answers every CheckpointBegin with CheckpointDone, with
/// an error where nothing was written; the controller commits. A job with a frozen base has it closed before the first
/// checkpoint that names it (workers/checkpoint/frozen_base.h). Fault point: checkpointer.begin.
class CheckpointerRole final {
 public:
  /// The checkpoint's manifest but for the files, and the small files that go with it. What rank 0 said of its snapshot
  /// is added here: optimizer.groups and the attachment trainer_state.json.
  struct Description {
    Manifest manifest;
    std::vector<CheckpointAttachment> attachments;
  };
  using Describe = std::function<Description(const CheckpointBegin& request)>;

  CheckpointerRole(ActorIdentity identity, Describe describe, Outbox outbox);

  void start();
  void handle(const std::string& from, const Message& message);

 private:
  Result<WrittenCheckpoint> write(const CheckpointBegin& request) const;

  const ActorIdentity identity_;
  const Describe describe_;
  const Outbox outbox_;
};

}  // namespace troupe::workers
