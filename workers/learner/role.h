#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/channel/channel.h"
#include "comm/control/io_loop.h"
#include "workers/learner/rank.h"
#include "workers/role.h"
#include "workers/stream/feed.h"

namespace troupe {

/// One learner rank with its feed and the channel ends that producers dial: decoders, encoders, rollout workers.
class LearnerRole final : public Role {
 public:
  struct Setup {
    RoleIdentity identity;
    LearnerRank::Setup rank;
    Feed::Options feed;
    std::string deadline_key = "data.decode_deadline_s";  ///< the setting behind feed.item_deadline, for messages
    std::vector<ChannelOptions> channels;                 ///< the first owns the arena, the others share it
  };
  /// Called once by start(), before the channels open. The feed outlives the trainer.
  using MakeTrainer = std::function<std::unique_ptr<Trainer>(Feed& feed)>;

  LearnerRole(Setup setup, IoLoop* loop, MakeTrainer make_trainer, Outbox outbox);
  ~LearnerRole() override;

  /// Builds the trainer and opens the channels. Throws std::runtime_error when a channel cannot be opened.
  void start() override;
  void handle(const std::string& from, const Message& message) override;

 private:
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

}  // namespace troupe
