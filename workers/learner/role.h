#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/channel/channel.h"
#include "comm/control/actor_identity.h"
#include "comm/control/io_loop.h"
#include "comm/control/outbox.h"
#include "workers/learner/rank.h"
#include "workers/stream/feed.h"

namespace troupe::workers {

/// One learner rank with its feed and the channel ends that producers dial: decoders, encoders, rollout workers.
///
/// Control messages: GroupPlan, GroupAbort, CheckpointCommitted and Finish go to the rank; Peers to feed (`gone`)
/// and trainer. What the rank and the feed report goes to the controller, beside ActorUp with the channels'
/// addresses and StuckProducer for an item that stands still longer than Feed::Options::item_deadline.
class LearnerRole final {
 public:
  struct Setup {
    ActorIdentity identity;
    LearnerRank::Setup rank;
    Feed::Options feed;
    /// The setting behind feed.item_deadline, for messages.
    std::string deadline_key = "data.decode_deadline_s";
    /// The first owns the arena, the others share it.
    std::vector<ChannelOptions> channels;
  };
  /// Called once by start(), before the channels open. The feed outlives the trainer.
  using MakeTrainer = std::function<std::unique_ptr<Trainer>(Feed& feed)>;

  /// `loop` may be null when all channels are inproc.
  LearnerRole(Setup setup, IoLoop* loop, MakeTrainer make_trainer, Outbox outbox);
  ~LearnerRole();

  /// Builds the trainer, opens the channels and reports ActorUp. Throws std::runtime_error when a channel cannot be
  /// opened.
  void start();
  void handle(const std::string& from, const Message& message);

 private:
  /// This rank's end of the plan's group: backend "thread" (ranks of one process, found by the store's name) or
  /// "gloo" (file store, 127.0.0.1; a rank alone runs without it). Errors: failed_precondition (another backend);
  /// those of join_gloo_group.
  Result<std::unique_ptr<Collective>> join(const GroupPlan& plan) const;
  void report(const Message& message) const { outbox_("controller", message); }

  const Setup setup_;
  IoLoop* loop_;
  const MakeTrainer make_trainer_;
  const Outbox outbox_;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<std::unique_ptr<ChannelConsumer>> consumers_;
  std::unique_ptr<LearnerRank> rank_;
};

}  // namespace troupe::workers
