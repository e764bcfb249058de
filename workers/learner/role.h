#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/channel.h"
#include "comm/io_loop.h"
#include "workers/learner/feed.h"
#include "workers/learner/rank.h"
#include "workers/role.h"

namespace troupe {

/// One learner rank with its feed and the channel ends that decoders dial.
class LearnerRole final : public Role {
 public:
  struct Setup {
    RoleIdentity identity;
    LearnerRank::Setup rank;
    std::int64_t rank_index = 0;
    std::vector<ChannelOptions> channels;   ///< the first owns the arena, the others share it
  };
  using MakeTask = std::function<std::unique_ptr<TrainingTask>()>;

  LearnerRole(Setup setup, IoLoop* loop, MakeTask make_task, Outbox outbox);
  ~LearnerRole() override;

  /// Opens the channels and builds the network. Throws std::runtime_error when a channel cannot be opened.
  void start() override;
  void handle(const std::string& from, const Message& message) override;

 private:
  Result<std::unique_ptr<Collective>> join(const GroupPlan& plan) const;
  void report(const Message& message) const { outbox_("controller", message); }

  const Setup setup_;
  IoLoop* loop_;
  const MakeTask make_task_;
  const Outbox outbox_;
  std::unique_ptr<TrainingTask> task_;
  std::unique_ptr<Feed> feed_;
  std::vector<std::unique_ptr<ChannelConsumer>> consumers_;
  std::unique_ptr<LearnerRank> rank_;
};

}  // namespace troupe
