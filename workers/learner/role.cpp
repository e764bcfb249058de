#include "workers/learner/role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>

#include "comm/collective/nccl_group.h"

namespace troupe::workers {

namespace {

/// Thread ranks of one process find each other by the name of their epoch's store.
std::shared_ptr<ThreadGroup> thread_group(const GroupPlan& plan) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<ThreadGroup>> groups;
  std::lock_guard lock(mutex);
  std::erase_if(groups, [](const auto& entry) { return entry.second.expired(); });
  auto group = groups[plan.store].lock();
  if (!group) {
    group = make_thread_group(static_cast<int>(plan.world), std::chrono::milliseconds(plan.timeout_ms));
    groups[plan.store] = group;
  }
  return group;
}

}  // namespace

LearnerRole::LearnerRole(Setup setup, IoLoop* loop, MakeTrainer make_trainer, Outbox outbox)
    : setup_(std::move(setup)), loop_(loop), make_trainer_(std::move(make_trainer)), outbox_(std::move(outbox)) {}

LearnerRole::~LearnerRole() {
  rank_.reset();     // joins the thread that uses everything below
  trainer_.reset();  // a thread of its own may read slots of the consumers
  // Consumers before the feed, which their callbacks reach.
  while (!consumers_.empty()) consumers_.pop_back();
}

void LearnerRole::start() {
  feed_ = std::make_unique<Feed>(
      setup_.feed,
      [this](const std::string& producer, std::int64_t position) {
        report(
            StuckProducer{.actor = setup_.identity.actor,
                          .producer = producer,
                          .text = fmt::format("{} has not gone on with position {} for more than {} ({} ms)", producer,
                                              position, setup_.deadline_key, setup_.feed.item_deadline.count())});
      },
      [this](SampleKey key, const std::vector<std::string>& producers, const std::string& reason) {
        report(Quarantined{.actor = setup_.identity.actor,
                           .position = key.position,
                           .held_out = key.split == Split::eval,
                           .producers = producers,
                           .text = reason});
      });
  trainer_ = make_trainer_(*feed_);
  ActorUp up{.actor = setup_.identity.actor, .incarnation = setup_.identity.incarnation, .pid = ::getpid()};
  for (const ChannelOptions& channel : setup_.channels) {
    ChannelConsumer* share = consumers_.empty() ? nullptr : consumers_.front().get();
    auto consumer = open_consumer(loop_, channel, feed_->callbacks(), share);
    if (!consumer) throw std::runtime_error(fmt::format("{}: {}", setup_.identity.actor, consumer.error().to_string()));
    consumers_.push_back(std::move(*consumer));
    if (!share) feed_->set_consumer(consumers_.front().get());
    up.channels.push_back(consumers_.back()->address());
  }
  rank_ = std::make_unique<LearnerRank>(
      setup_.rank, *trainer_, [this](const GroupPlan& plan) { return join(plan); },
      [this](const Message& message) { report(message); });
  report(up);
}

Result<std::unique_ptr<Collective>> LearnerRole::join(const GroupPlan& plan) const {
  const int rank = static_cast<int>(plan.rank), world = static_cast<int>(plan.world);
  const std::chrono::milliseconds timeout(plan.timeout_ms);
  const GlooOptions gloo{
      .store_path = plan.store, .rank = rank, .world = world, .host = "127.0.0.1", .timeout = timeout};
  if (plan.backend == "thread") return join_thread_group(thread_group(plan), rank);
  if (plan.backend == "gloo") {
    // A rank alone has nobody to reach: its operations run where they are issued, without Gloo's thread between.
    if (world == 1) return join_thread_group(make_thread_group(1, timeout), rank);
    return join_gloo_group(gloo);
  }
  if (plan.backend == "nccl" && setup_.rank.device) {
    TROUPE_ASSIGN(auto host, join_gloo_group(gloo));
    return join_nccl_group(std::move(host), *setup_.rank.device->device, timeout);
  }
  return Error{Errc::failed_precondition,
               fmt::format("collective backend '{}' is not part of this build", plan.backend)};
}

void LearnerRole::handle(const std::string&, const Message& message) {
  if (!rank_) return;
  if (const auto* plan = std::get_if<GroupPlan>(&message)) {
    rank_->form(*plan);
  } else if (const auto* abort = std::get_if<GroupAbort>(&message)) {
    rank_->abort(abort->fence, abort->reason);
  } else if (const auto* settled = std::get_if<CheckpointCommitted>(&message)) {
    rank_->snapshot_settled(*settled);
  } else if (const auto* peers = std::get_if<Peers>(&message)) {
    for (const std::string& producer : peers->gone) {
      const auto& died = peers->died;
      feed_->producer_gone(producer, std::find(died.begin(), died.end(), producer) != died.end());
    }
    for (const std::string& producer : peers->unkillable) feed_->producer_unkillable(producer);
    if (peers->unkillable.empty()) trainer_->peers(*peers);
  } else if (std::holds_alternative<Finish>(message)) {
    rank_->finish();
  }
}

}  // namespace troupe::workers
