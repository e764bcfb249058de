#include "workers/rollout/rollout_role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "base/blocked_signals.h"
#include "base/fault.h"
#include "base/log.h"
#include "workers/stream/producer_times.h"

namespace troupe::workers {

namespace {
constexpr std::chrono::milliseconds kCreditPoll{500};
}

/// One learner's feed: a producer end, and the thread that waits for its orders. Items are sent by the worker's thread.
class RolloutRole::FeedConnection {
 public:
  FeedConnection(RolloutRole& role, std::string address) : role_(role), address_(std::move(address)) {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { serve(); });
  }
  ~FeedConnection() {
    stopping_ = true;
    {
      const std::lock_guard lock(mutex_);
      if (producer_) producer_->stop();
    }
    thread_.join();
  }

 private:
  void serve() {
    auto dialled = dial_until_answered(role_.dial_, address_, role_.setup_.identity.instance(), stopping_);
    if (!dialled) {
      log::warn("{}: cannot reach a feed: {}", role_.setup_.identity.actor, dialled.error().message());
      return;
    }
    const std::shared_ptr<ChannelProducer> producer = std::move(*dialled);
    {
      const std::lock_guard lock(mutex_);
      producer_ = producer;
    }
    while (!stopping_) {
      const auto credit = producer->next_credit(kCreditPoll);
      if (credit) {
        take(producer, *credit);
      } else if (credit.error().code() != Errc::deadline_exceeded) {
        if (!stopping_)
          log::info("{}: a feed is done with this rollout worker: {}", role_.setup_.identity.actor,
                    credit.error().message());
        break;
      }
    }
    role_.post(FeedLeft{address_});
  }

  void take(const std::shared_ptr<ChannelProducer>& producer, const Credit& credit) {
    const auto slot = producer->slot(credit);
    const auto request =
        decode_trajectory_request(slot.first(std::min<std::size_t>(slot.size(), credit.request_bytes)));
    if (!request) {
      (void)producer->send({.credit = credit, .bytes = 0, .xxh3 = 0, .error = request.error().message()});
      return;
    }
    // The producer outlives this connection for as long as an item of it is under way.
    auto send = [producer, instance = role_.setup_.identity.instance()](Item item) -> Result<void> {
      if (auto fault = fault_point("rollout.item", fmt::format("{} position {}", instance, item.credit.position));
          !fault) {
        item = {.credit = item.credit, .bytes = 0, .xxh3 = 0, .error = fault.error().message()};
      }
      return producer->send(item);
    };
    role_.post(TrajectoryOrder{
        .send = std::move(send), .feed = address_, .credit = credit, .request = *request, .memory = slot});
  }

  RolloutRole& role_;
  const std::string address_;
  std::mutex mutex_;
  std::shared_ptr<ChannelProducer> producer_;  // set once, under mutex_
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

RolloutRole::RolloutRole(Setup setup, IoLoop* loop, Dial dial_feed, Outbox outbox)
    : setup_(std::move(setup)), loop_(loop), dial_(std::move(dial_feed)), outbox_(std::move(outbox)) {}

RolloutRole::~RolloutRole() {
  connections_.clear();
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  // Consumers before what their callbacks reach; the ends that share an arena in reverse order.
  while (!weight_ends_.empty()) weight_ends_.pop_back();
  while (!simulator_ends_.empty()) simulator_ends_.pop_back();
}

void RolloutRole::start() {
  const JobConfig& job = setup_.config;
  const auto keep = static_cast<std::size_t>(job.algorithm.deterministic ? job.rollout.staleness + 2 : 1);
  receiver_ = std::make_unique<WeightReceiver>(setup_.net, WeightReceiver::Options{.keep = keep}, [this] { wake(); });
  open_channels();
  RolloutWorker::Effects effects;
  effects.ask = [this](const std::string& simulator, const Credit& credit, std::span<const std::byte> request) {
    return simulator_ends_.front()->grant(simulator, credit, request);
  };
  effects.memory = [this](std::uint32_t slot) { return simulator_ends_.front()->slot(slot); };
  effects.weights = [this](std::uint64_t fence, const TrajectoryRequest& request) {
    return receiver_->find(fence, request);
  };
  effects.newest_fence = [this] {
    const PolicyWeightsPtr newest = receiver_->newest();
    return newest ? newest->fence : 0;
  };
  effects.report = [this](const std::string& kind, const std::string& text, const std::string& subject) {
    log::warn("{}: {}: {}", setup_.identity.actor, kind, text);
    outbox_("controller", Event{.actor = setup_.identity.actor, .kind = kind, .text = text, .subject = subject});
  };
  worker_ = std::make_unique<RolloutWorker>(job, setup_.spec, setup_.net,
                                            RolloutWorker::Options{.slots = simulator_ends_.front()->num_slots(),
                                                                   .await_simulators = setup_.await_simulators},
                                            std::move(effects));
  {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { work(); });
  }
  ActorUp up{.actor = setup_.identity.actor,
             .incarnation = setup_.identity.incarnation,
             .pid = ::getpid(),
             .channels = {},
             .weights = {}};
  for (const auto& end : simulator_ends_) up.channels.push_back(end->address());
  for (const auto& end : weight_ends_) up.weights.push_back(end->address());
  outbox_("controller", up);
}

void RolloutRole::open_channels() {
  const auto open = [&](const std::vector<ChannelOptions>& options, const ChannelConsumer::Callbacks& callbacks,
                        auto& ends) {
    for (const ChannelOptions& option : options) {
      ChannelConsumer* const share = ends.empty() ? nullptr : ends.front().get();
      auto end = open_consumer(loop_, option, callbacks, share);
      if (!end) throw std::runtime_error(fmt::format("{}: {}", setup_.identity.actor, end.error().to_string()));
      ends.push_back(std::move(*end));
    }
  };
  open(setup_.simulators,
       {.on_producer = [this](const std::string& name, std::uint32_t) { post(Joined{name}); },
        .on_item =
            [this](const std::string& name, const Item& item) {
              post(Answered{name, item});
            }},
       simulator_ends_);
  open(setup_.weights, receiver_->callbacks(), weight_ends_);
  if (simulator_ends_.empty() || weight_ends_.empty()) {
    throw std::runtime_error(setup_.identity.actor +
                             ": a rollout worker listens on a channel for simulators and on one for weights");
  }
  receiver_->set_consumer(weight_ends_.front().get());
}

void RolloutRole::handle(const std::string&, const Message& message) {
  const auto* peers = std::get_if<Peers>(&message);
  if (peers == nullptr || !worker_) return;
  for (const std::string& producer : peers->gone) {
    simulator_ends_.front()->drop_producer(producer);
    receiver_->producer_gone(producer);
    post(Gone{producer});
  }
  // Who is gone says nothing about whom to dial.
  if (peers->gone.empty()) dial_feeds(peers->channels);
}

void RolloutRole::dial_feeds(const std::vector<std::string>& addresses) {
  std::erase_if(connections_, [&](const auto& entry) {
    return std::find(addresses.begin(), addresses.end(), entry.first) == addresses.end();
  });
  for (const std::string& address : addresses) {
    auto& connection = connections_[address];
    if (!connection) connection = std::make_unique<FeedConnection>(*this, address);
  }
}

void RolloutRole::post(WorkerEvent event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  changed_.notify_one();
}

void RolloutRole::wake() {
  {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
  }
  changed_.notify_one();
}

void RolloutRole::work() {
  std::vector<WorkerEvent> taken;
  auto next = Clock::now();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, next, [&] { return is_stopping_ || is_woken_ || !events_.empty(); });
      if (is_stopping_) return;
      is_woken_ = false;
      taken.swap(events_);
    }
    const auto now = Clock::now();
    count_time(now);
    for (WorkerEvent& event : taken) apply(event, now);
    taken.clear();
    next = worker_->run(now);
    was_idle_ = worker_->is_idle();
    const std::lock_guard lock(mutex_);
    stats_ = worker_->stats();
  }
}

void RolloutRole::apply(WorkerEvent& event, Clock::time_point now) {
  if (auto* joined = std::get_if<Joined>(&event)) {
    worker_->simulator_joined(joined->simulator, now);
  } else if (auto* gone = std::get_if<Gone>(&event)) {
    worker_->simulator_gone(gone->simulator, now);
  } else if (auto* answered = std::get_if<Answered>(&event)) {
    worker_->answered(answered->simulator, answered->item, now);
  } else if (auto* order = std::get_if<TrajectoryOrder>(&event)) {
    worker_->ordered(std::move(*order), now);
  } else if (auto* left = std::get_if<FeedLeft>(&event)) {
    worker_->feed_gone(left->feed, now);
  }
}

void RolloutRole::count_time(Clock::time_point now) {
  if (counted_ != Clock::time_point{})
    (was_idle_ ? idle_seconds_ : busy_seconds_) += std::chrono::duration<double>(now - counted_).count();
  counted_ = now;
  if (idle_seconds_ + busy_seconds_ < setup_.report_seconds) return;
  outbox_("controller", Event{.actor = setup_.identity.actor,
                              .kind = std::string(kProducerTimes),
                              .text = producer_times_text(idle_seconds_, busy_seconds_),
                              .subject = setup_.identity.instance()});
  idle_seconds_ = busy_seconds_ = 0;
}

RolloutWorker::Stats RolloutRole::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace troupe::workers
