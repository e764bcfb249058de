#include "workers/rollout/rollout_role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/blocked_signals.h"
#include "base/fault.h"
#include "base/log.h"
#include "kernels/compute_thread.h"
#include "workers/rollout/channel_simulators.h"
#include "workers/stream/order.h"

namespace troupe::workers {

RolloutRole::RolloutRole(Setup setup, IoLoop* loop, ConsumerDial dial_feed, Outbox outbox)
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
  effects.weights = [this](std::uint64_t fence, const TrajectoryRequest& request) {
    return receiver_->find(fence, request);
  };
  effects.newest_fence = [this] {
    const PublishedWeightsPtr newest = receiver_->newest();
    return newest ? newest->fence : 0;
  };
  effects.report = [this](const std::string& kind, const std::string& text) {
    log::warn("{}: {}: {}", setup_.identity.actor, kind, text);
    outbox_("controller", Event{.actor = setup_.identity.actor, .kind = kind, .text = text});
  };
  effects.stuck = [this](const std::string& simulator, const std::string& text) {
    log::warn("{}: stuck_producer: {}", setup_.identity.actor, text);
    outbox_("controller", StuckProducer{.actor = setup_.identity.actor, .producer = simulator, .text = text});
  };
  if (setup_.inline_simulators) {
    simulators_ = std::make_unique<InlineSimulators>(*setup_.inline_simulators);
  } else {
    simulators_ = std::make_unique<ChannelSimulators>(*simulator_ends_.front());
  }
  worker_ = std::make_unique<RolloutWorker>(job, setup_.spec, setup_.net, *simulators_,
                                            RolloutWorker::Options{.await_simulators = setup_.await_simulators},
                                            std::move(effects));
  if (setup_.inline_simulators) worker_->simulator_joined(InlineSimulators::kName, Clock::now());
  {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { work(); });
  }
  ActorUp up{.actor = setup_.identity.actor, .incarnation = setup_.identity.incarnation, .pid = ::getpid()};
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
        .on_item = [this](const std::string&, const Item& item) { post(Answered{item}); },
        .on_progress = [this](const std::string&, const Credit& credit) { post(WentOn{credit}); }},
       simulator_ends_);
  open(setup_.weights, receiver_->callbacks(), weight_ends_);
  if (simulator_ends_.empty() != setup_.inline_simulators.has_value() || weight_ends_.empty()) {
    throw std::runtime_error(
        setup_.identity.actor +
        ": a rollout worker listens on a channel for weights, and on one for simulators or is one");
  }
  receiver_->set_consumer(weight_ends_.front().get());
}

void RolloutRole::handle(const std::string&, const Message& message) {
  const auto* peers = std::get_if<Peers>(&message);
  if (peers == nullptr || !worker_) return;
  for (const std::string& producer : peers->gone) {
    if (!simulator_ends_.empty()) simulator_ends_.front()->drop_producer(producer);
    receiver_->producer_gone(producer);
    post(Gone{producer});
  }
  // A message about producers that are gone names no addresses.
  if (peers->gone.empty()) dial_feeds(peers->channels);
}

void RolloutRole::dial_feeds(const std::vector<std::string>& addresses) {
  connect_listed(connections_, addresses, [this](const std::string& address) {
    return std::make_unique<ProducerLoop>(
        ProducerLoop::Options{
            .producer = setup_.identity.instance(), .consumer = "a learner's feed", .address = address},
        dial_,
        ProducerLoop::Work{.serve = [this, address](const auto& producer,
                                                    const Credit& credit) { return take(address, producer, credit); },
                           .left = [this, address] { post(FeedLeft{address}); }});
  });
}

Result<void> RolloutRole::take(const std::string& feed, const std::shared_ptr<ChannelProducer>& producer,
                               const Credit& credit) {
  const auto slot = producer->slot(credit);
  const auto request = decode_trajectory_request(slot.first(std::min<std::size_t>(slot.size(), credit.request_bytes)));
  if (!request) return producer->send(make_item(credit, slot, request.error()));
  const std::int64_t position = SampleKey::of(credit.tag).position;
  // The connection lasts as long as an item of it is under way.
  auto send = [producer, where = fmt::format("{} position {}", setup_.identity.instance(), position)](Item item) {
    if (auto fault = fault_point("rollout.item", where); !fault) item = make_item(item.credit, {}, fault.error());
    return producer->send(item);
  };
  post(TrajectoryOrder{.send = std::move(send),
                       .progress = [producer, credit] { producer->progress(credit); },
                       .feed = feed,
                       .credit = credit,
                       .position = position,
                       .request = *request,
                       .memory = slot});
  return {};
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
  begin_compute_thread(static_cast<int>(setup_.threads));
  std::vector<WorkerEvent> taken;
  auto next = Clock::now();
  for (;;) {
    const auto asleep = Clock::now();
    {
      std::unique_lock lock(mutex_);
      const auto is_due = [&] { return is_stopping_ || is_woken_ || !events_.empty(); };
      if (!simulators_->has_steps()) changed_.wait_until(lock, next, is_due);
      if (is_stopping_) return;
      is_woken_ = false;
      taken.swap(events_);
    }
    auto now = Clock::now();
    count_time(asleep, now);
    for (WorkerEvent& event : taken) apply(event, now);
    taken.clear();
    if (simulators_->has_steps()) {
      const auto begin = Clock::now();
      const auto answers = simulators_->step();
      now = Clock::now();
      times_.simulate_seconds += Seconds(now - begin).count();
      for (const Item& answer : answers) worker_->answered(answer, now);
    }
    next = worker_->run(now);
    const RolloutWorker::Stats stats = worker_->stats();
    const bool was_busy = !std::exchange(was_idle_, worker_->is_idle());
    // Who looks around without finding anything to do is not busy: the controller would take it for progress.
    has_worked_ = was_busy || !was_idle_ || stats.policy_seconds > stats_.policy_seconds ||
                  stats.record_seconds > stats_.record_seconds;
    const std::lock_guard lock(mutex_);
    stats_ = stats;
  }
}

void RolloutRole::apply(WorkerEvent& event, Clock::time_point now) {
  if (auto* joined = std::get_if<Joined>(&event)) {
    worker_->simulator_joined(joined->simulator, now);
  } else if (auto* gone = std::get_if<Gone>(&event)) {
    worker_->simulator_gone(gone->simulator, now);
  } else if (const auto* went_on = std::get_if<WentOn>(&event)) {
    worker_->went_on(went_on->credit, now);
  } else if (auto* answered = std::get_if<Answered>(&event)) {
    worker_->answered(answered->item, now);
  } else if (auto* order = std::get_if<TrajectoryOrder>(&event)) {
    worker_->ordered(std::move(*order), now);
  } else if (auto* left = std::get_if<FeedLeft>(&event)) {
    worker_->feed_gone(left->feed, now);
  }
}

void RolloutRole::count_time(Clock::time_point asleep, Clock::time_point now) {
  if (counted_ != Clock::time_point{}) {
    const double slept = Seconds(now - asleep).count();
    (has_worked_ ? times_.busy_seconds : times_.idle_seconds) += Seconds(asleep - counted_).count();
    (was_idle_ ? times_.idle_seconds : times_.busy_seconds) += slept;
    if (!was_idle_) times_.await_seconds += slept;
  }
  counted_ = now;
  if (times_.idle_seconds + times_.busy_seconds < setup_.report_seconds) return;
  times_.actor = setup_.identity.actor;
  times_.item_steps = stats_.item_steps - told_.item_steps;
  times_.item_seconds = stats_.item_seconds - told_.item_seconds;
  times_.policy_seconds = stats_.policy_seconds - told_.policy_seconds;
  times_.record_seconds = stats_.record_seconds - told_.record_seconds;
  const EnvBlock::Counters all_stepped = simulators_->stepped(),
                           stepped = all_stepped - std::exchange(told_stepped_, all_stepped);
  times_.env_steps = stepped.env_steps;
  times_.env_step_seconds = stepped.step_seconds;
  outbox_("controller", times_);
  told_ = stats_;
  times_ = {};
}

RolloutWorker::Stats RolloutRole::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace troupe::workers
