#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "env/registry/registry.h"
#include "tests/support/visible.h"
#include "tests/workers/rollout/scripted_net.h"
#include "workers/rollout/rollout_role.h"
#include "workers/rollout/simulator_role.h"
#include "workers/rollout/weight_publisher.h"
#include "workers/stream/feed.h"

namespace troupe::testing {

using namespace std::chrono_literals;

inline constexpr auto kPatience = 30s;

/// CartPole in 4 blocks of 2, 8 steps an item.
inline JobConfig cart_pole_job() {
  JobConfig job;
  job.env.id = "CartPole-v1";
  job.env.num_envs = 8;
  job.env.blocks = 4;
  job.rollout.steps = 8;
  job.rollout.normalize_obs = job.rollout.normalize_reward = true;
  return job;
}

/// A whole job in one process but for the learning: simulators, rollout workers, one learner's feed and its weights,
/// over channels in this process; the test plays controller and trainer.
class RolloutJob {
 public:
  RolloutJob(JobConfig job, ScriptedNet::Options net = {}, std::int64_t rounds = 1000)
      : job_(std::move(job)), rl_(rl_shape(job_)), net_(std::make_shared<ScriptedNet>(net)) {
    log::configure("test",
                   "");  // before any thread logs: the thread sanitizer does not see how spdlog makes its logger
    auto factory = make_env_factory(job_.env);
    if (!factory) throw std::runtime_error(factory.error().message());
    factory_ = *factory;
    layout_ = make_trajectory_layout(job_, factory_->spec(), *net_);
    observed_ = Moments(static_cast<std::size_t>(layout_.state_dim));
    Feed::Options options{
        .order = {.global_batch = rl_.blocks, .micro_batch = rl_.blocks, .accumulation = 1, .rank = 0},
        .total_steps = rounds};
    options.lanes = rl_.blocks;
    options.await_producers = await_rollouts;
    feed_options_ = options;
  }
  ~RolloutJob() {
    simulators_.clear();
    publisher_.reset();
    rollouts_.clear();
    consumer_.reset();
  }

  /// Set before the first start.
  std::int64_t await_rollouts = 0, await_simulators = 0;
  MakeBlock make_block;  ///< in place of the factory's
  std::function<bool()> is_making;
  double report_seconds = 2;        ///< between reports of everybody's times
  std::int64_t inline_threads = 0;  ///< rollout workers step their blocks themselves, on as many; 0: simulators do

  void start(int simulators, int rollouts) {
    feed_options_.await_producers = await_rollouts;
    feed_ = std::make_unique<Feed>(feed_options_, Feed::OnStuck());
    auto opened = open_consumer(nullptr,
                                {.name = "learner/0#0",
                                 .slots = static_cast<std::uint32_t>(rl_.blocks * 4),
                                 .slot_bytes = static_cast<std::size_t>(layout_.bytes),
                                 .transport = Transport::inproc},
                                feed_->callbacks());
    if (!opened) throw std::runtime_error(opened.error().message());
    consumer_ = std::move(*opened);
    feed_->set_consumer(consumer_.get());
    publisher_ = std::make_unique<WeightPublisher>(*net_, WeightPublisher::Options{.producer = "learner/0#0"}, dial());
    begin(1, 0);
    for (int i = 0; i < rollouts; ++i) add_rollout();
    for (int i = 0; i < simulators; ++i) add_simulator();
  }
  /// A group forms and resumes at `round`.
  void begin(std::uint64_t fence, std::int64_t round) {
    publisher_->begin(fence, 1, 0);
    feed_->start(fence, round, 0);
  }
  /// Weights whose first number is `w`.
  void publish(std::int64_t version, float w) {
    const FlatLayout flat = make_flat_layout(net_->units()[0].params);
    const std::vector<float> shard(static_cast<std::size_t>(flat.shard(1)), w);
    const std::span<const float> view(shard);
    const NormaliserState state{observed_, Moments(1)};
    publisher_->publish(version, std::span(&view, 1), &state, /*is_evaluated=*/false);
  }
  void allow(std::int64_t rounds, std::int64_t version, bool exact = true) {
    feed_->allow(rounds * rl_.blocks, encode(TrajectoryRequest{.version = version, .exact = exact}));
  }
  /// The items of a round, copied; statistics are merged in the order of blocks.
  std::vector<std::vector<std::byte>> take(std::int64_t round, std::chrono::milliseconds deadline = kPatience) {
    std::vector<std::vector<std::byte>> items;
    const auto taken = feed_->take(round, 0, deadline);
    for (const Feed::Sample& sample : *taken) {
      EXPECT_EQ(sample.void_reason, "");
      items.emplace_back(sample.bytes.begin(), sample.bytes.end());
      if (layout_.observed.is_present() && !sample.bytes.empty()) observed_.merge(view(items.back()).observed());
    }
    feed_->release(round);
    return items;
  }
  /// One turn of a trainer without staleness: weights of version `round`, then its items.
  std::vector<std::vector<std::byte>> turn(std::int64_t round) {
    publish(round, 0.4f + 0.05f * static_cast<float>(round % 4));
    allow(round + 1, round);
    return take(round);
  }
  ConstTrajectoryView view(const std::vector<std::byte>& item) const { return {layout_, item.data()}; }

  std::string add_simulator() {
    const ActorIdentity identity{.actor = "env/" + std::to_string(num_simulators_++), .incarnation = 0};
    SimulatorRole::Setup setup{.identity = identity,
                               .make_block = make_block ? make_block : make_block_of(job_, factory_),
                               .layout = make_block_layout(factory_->spec(), rl_.envs, rl_.chunk),
                               .actions = layout_.rows * layout_.chunk * layout_.action_dim,
                               .executor = {.threads = 1},
                               .report_seconds = report_seconds,
                               .is_making = is_making,
                               .tell_every = std::chrono::milliseconds(10)};
    simulators_[identity.instance()] = std::make_unique<SimulatorRole>(setup, dial(), outbox());
    simulators_[identity.instance()]->start();
    tell_all();
    return identity.instance();
  }
  std::string add_rollout() {
    const ActorIdentity identity{.actor = "rollout/" + std::to_string(num_rollouts_++), .incarnation = 0};
    const auto block_bytes = static_cast<std::size_t>(make_block_layout(factory_->spec(), rl_.envs, rl_.chunk).bytes);
    RolloutRole::Setup setup{.identity = identity,
                             .config = job_,
                             .spec = factory_->spec(),
                             .net = net_,
                             .weights = {{.name = identity.instance() + "/weights",
                                          .slots = 4,
                                          .slot_bytes = 8192,
                                          .transport = Transport::inproc}},
                             .await_simulators = await_simulators,
                             .report_seconds = report_seconds};
    if (inline_threads > 0) {
      setup.inline_simulators = {.owner = identity.instance(),
                                 .make_block = make_block ? make_block : make_block_of(job_, factory_),
                                 .layout = make_block_layout(factory_->spec(), rl_.envs, rl_.chunk),
                                 .slots = 2 * rl_.blocks,
                                 .threads = inline_threads};
    } else {
      setup.simulators = {{.name = identity.instance(),
                           .slots = static_cast<std::uint32_t>(2 * rl_.blocks),
                           .slot_bytes = block_bytes,
                           .transport = Transport::inproc}};
    }
    rollouts_[identity.instance()] = std::make_unique<RolloutRole>(setup, nullptr, dial(), outbox());
    rollouts_[identity.instance()]->start();
    tell_all();
    return identity.instance();
  }
  /// The process ends; everybody hears of it, its exit confirmed.
  void end(const std::string& instance) {
    simulators_.erase(instance);
    rollouts_.erase(instance);
    {
      const std::lock_guard lock(mutex_);
      up_.erase(instance);
    }
    for (auto& [name, rollout] : rollouts_)
      rollout->handle("controller", Peers{.fence = 1, .channels = {consumer_->address()}, .gone = {instance}});
    feed_->producer_gone(instance);
    tell_all();
  }
  const ScriptedNet& net() const { return *net_; }
  RolloutRole& rollout(const std::string& instance) { return *rollouts_.at(instance); }
  std::vector<Event> events(const std::string& kind) const {
    const std::lock_guard lock(mutex_);
    std::vector<Event> found;
    for (const Event& event : events_) {
      if (event.kind == kind) found.push_back(event);
    }
    return found;
  }
  std::vector<StuckProducer> stuck() const {
    const std::lock_guard lock(mutex_);
    return stuck_;
  }
  /// What an actor has reported of its time.
  std::vector<ProducerTimes> times(const std::string& actor) const {
    const std::lock_guard lock(mutex_);
    std::vector<ProducerTimes> found;
    for (const ProducerTimes& times : times_) {
      if (times.actor == actor) found.push_back(times);
    }
    return found;
  }
  bool wait_for_times(const std::string& actor, std::ptrdiff_t reports) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] {
      return std::count_if(times_.begin(), times_.end(), [&](const auto& t) { return t.actor == actor; }) >= reports;
    });
  }
  bool wait_for_stuck() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return !stuck_.empty(); });
  }
  /// What was told of control steps once it is told of so many, or kPatience is over.
  ProducerTimes wait_for_steps(std::int64_t steps) {
    std::unique_lock lock(mutex_);
    ProducerTimes told;
    changed_.wait_for(lock, kPatience, [&] {
      told = {};
      for (const ProducerTimes& times : times_) told += times;
      return told.env_steps >= steps;
    });
    return told;
  }
  Feed& feed() { return *feed_; }
  const TrajectoryLayout& layout() const { return layout_; }
  const RlShape& shape() const { return rl_; }
  std::int64_t given_up() const {
    std::int64_t sum = 0;
    for (const auto& [name, rollout] : rollouts_) sum += rollout->stats().given_up;
    return sum;
  }

 private:
  ConsumerDial dial() {
    return [](const std::string& address, const std::string& producer) {
      return open_producer(nullptr, address, producer, 64, 5s);
    };
  }
  Outbox outbox() {
    return [this](const std::string&, const Message& message) {
      const std::lock_guard lock(mutex_);
      if (const auto* up = std::get_if<ActorUp>(&message)) up_[up->actor + "#" + std::to_string(up->incarnation)] = *up;
      if (const auto* event = std::get_if<Event>(&message)) events_.push_back(*event);
      if (const auto* stuck = std::get_if<StuckProducer>(&message)) stuck_.push_back(*stuck);
      if (const auto* times = std::get_if<ProducerTimes>(&message)) times_.push_back(*times);
      changed_.notify_all();
    };
  }
  void tell_all() {
    std::vector<std::string> channels, weights;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [name, up] : up_) {
        channels.insert(channels.end(), up.channels.begin(), up.channels.end());
        weights.insert(weights.end(), up.weights.begin(), up.weights.end());
      }
    }
    publisher_->set_peers(weights, {});
    for (auto& [name, simulator] : simulators_)
      simulator->handle("controller", Peers{.fence = 1, .channels = channels});
    for (auto& [name, rollout] : rollouts_)
      rollout->handle("controller", Peers{.fence = 1, .channels = {consumer_->address()}});
  }

  const JobConfig job_;
  const RlShape rl_;
  const std::shared_ptr<const ScriptedNet> net_;
  std::shared_ptr<const EnvFactory> factory_;
  TrajectoryLayout layout_;
  Feed::Options feed_options_;
  Moments observed_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, ActorUp> up_;
  std::vector<Event> events_;
  std::vector<ProducerTimes> times_;
  std::vector<StuckProducer> stuck_;
  int num_simulators_ = 0, num_rollouts_ = 0;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<ChannelConsumer> consumer_;
  std::unique_ptr<WeightPublisher> publisher_;
  std::map<std::string, std::unique_ptr<RolloutRole>> rollouts_;
  std::map<std::string, std::unique_ptr<SimulatorRole>> simulators_;
};

/// The items of a job's first rounds.
using Items = std::vector<std::vector<std::byte>>;
inline Items play(RolloutJob& job, std::int64_t rounds) {
  Items all;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (auto& item : job.turn(round)) all.push_back(std::move(item));
  }
  return all;
}

inline void expect_equal(const Items& a, const Items& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i] == b[i]) << "position " << i;
}

}  // namespace troupe::testing
