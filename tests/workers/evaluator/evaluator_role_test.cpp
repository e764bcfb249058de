#include "workers/evaluator/evaluator_role.h"

#include <gmock/gmock.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <latch>
#include <mutex>

#include "placement/evaluation.h"
#include "tests/support/lottery_env.h"
#include "tests/support/scratch_folder.h"
#include "tests/workers/inference/agent/untrained_agent.h"
#include "workers/rollout/weight_publisher.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using Lottery = LotteryEnv<true>;

/// What the role says, in order.
class Inbox {
 public:
  void put(const Message& message) {
    {
      const std::lock_guard lock(mutex_);
      messages_.push_back(message);
    }
    changed_.notify_all();
  }
  template <class M>
  M take() {
    std::unique_lock lock(mutex_);
    const bool is_there = changed_.wait_for(lock, 20s, [&] { return !messages_.empty(); });
    if (!is_there) throw std::runtime_error("nothing was said");
    const Message next = messages_.front();
    messages_.pop_front();
    return std::get<M>(next);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> messages_;
};

/// A policy whose calls throw.
class BrokenNet final : public PolicyNet {
 public:
  explicit BrokenNet(std::shared_ptr<const PolicyNet> net) : net_(std::move(net)) {}
  const std::vector<UnitSpec>& units() const override { return net_->units(); }
  const std::vector<std::string>& acting_units() const override { return net_->acting_units(); }
  const std::vector<ExtraField>& extras() const override { return net_->extras(); }
  std::int64_t logp_width() const override { return net_->logp_width(); }
  std::int64_t value_width() const override { return net_->value_width(); }
  ActResult act(const UnitViews&, const ActRequest&) const override { throw std::runtime_error("no memory for this"); }
  at::Tensor value(const UnitViews& views, const Batch& batch) const override { return net_->value(views, batch); }
  std::shared_ptr<const Network> objective(const std::string& phase) const override { return net_->objective(phase); }

 private:
  const std::shared_ptr<const PolicyNet> net_;
};

/// An evaluator of episodes of the lottery, and the learner that publishes to it.
struct EvaluatorRoleTest : ::testing::Test {
  void SetUp() override {
    Lottery::add();
    Lottery::on_step() = {};
    job = small_rl_job("lottery-test-v1");
    job.training.steps = 50;
    job.eval.every = 10;
    job.eval.episodes = 6;
    agent.emplace(make_agent(job).value());
    learner = std::make_unique<WeightPublisher>(*agent->policy, WeightPublisher::Options{.producer = "learner/0#0"},
                                                [](const std::string& address, const std::string& producer) {
                                                  return open_producer(nullptr, address, producer, 2, 5s);
                                                });
    learner->begin(1, 1, 0);
  }
  void TearDown() override {
    role.reset();
    learner.reset();
    Lottery::on_step() = {};
  }
  void start() {
    EvaluatorRole::Setup setup{.identity = {.actor = "evaluator/0", .incarnation = starts++},
                               .config = job,
                               .agent = *agent,
                               .weights = {{.name = "evaluator/0.weights" + std::to_string(starts),
                                            .slots = 4,
                                            .slot_bytes = 1 << 16,
                                            .transport = Transport::inproc}},
                               .folder = scratch.path()};
    role = std::make_unique<EvaluatorRole>(std::move(setup), nullptr,
                                           [this](const std::string&, const Message& message) { inbox.put(message); });
    role->start();
    const auto addresses = inbox.take<ActorUp>().weights;
    learner->set_peers(addresses, addresses);
  }
  void publish(std::int64_t version, bool is_evaluated = true) {
    const PublishedWeights weights = untrained_weights(*agent->policy, 3);
    std::vector<std::span<const float>> shards;
    for (const at::Tensor& flat : weights.flats)
      shards.emplace_back(flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel()));
    learner->publish(version, shards, &weights.normaliser, is_evaluated);
  }
  void wait_until_sent(std::int64_t versions) const {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (learner->stats().sent < versions && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    ASSERT_EQ(learner->stats().sent, versions);
  }
  /// After so many versions: what they set off has happened. A learner has two credits, and versions of a fence before
  /// the newest are taken and forgotten; when the third of those is sent, the first is taken, and so is all before it.
  void wait_until_taken(std::int64_t versions) {
    wait_until_sent(versions);
    learner->begin(0, 1, 0);
    for (std::int64_t ignored = 1; ignored <= 3; ++ignored) {
      publish(ignored);
      wait_until_sent(versions + ignored);
    }
  }
  void expect_begun(std::int64_t step, std::uint64_t fence = 1) {
    const auto begun = inbox.take<EvalBegun>();
    EXPECT_EQ(begun.step, step);
    EXPECT_EQ(begun.fence, fence);
  }
  std::map<std::string, double> result(std::int64_t step, std::uint64_t fence = 1) {
    const auto report = inbox.take<EvalReport>();
    EXPECT_EQ(report.step, step);
    EXPECT_EQ(report.fence, fence);
    EXPECT_FALSE(report.metrics.empty());
    return report.metrics;
  }
  /// The mean return of the job's episodes but for this one.
  double mean_return(std::int64_t without = -1) const {
    double sum = 0;
    std::int64_t count = 0;
    for (std::int64_t seed = job.eval.seed; seed < job.eval.seed + job.eval.episodes; ++seed) {
      if (seed == without) continue;
      sum += Lottery::return_of(evaluation_seed(seed));
      ++count;
    }
    return sum / static_cast<double>(count);
  }

  const ScratchFolder scratch;
  JobConfig job;
  std::optional<Agent> agent;
  Inbox inbox;
  std::unique_ptr<WeightPublisher> learner;
  std::unique_ptr<EvaluatorRole> role;
  std::int64_t starts = 0;
};

TEST_F(EvaluatorRoleTest, PlaysTheVersionsThatAreToBeEvaluated) {
  start();
  publish(9, false);
  publish(10);
  expect_begun(10);
  const auto metrics = result(10);
  EXPECT_EQ(metrics.at("eval/num_trajectories"), 6);
  EXPECT_EQ(metrics.at("eval/lost"), 0);
  EXPECT_DOUBLE_EQ(metrics.at("eval/return"), mean_return());
  EXPECT_TRUE(metrics.contains("time/eval"));
}

TEST_F(EvaluatorRoleTest, WhatBecomesDueMeanwhileIsLeftOutButForTheLast) {
  std::int64_t sent = 1;
  std::latch may_go{1};
  Lottery::on_step() = [&](std::uint64_t, std::int64_t) { may_go.wait(); };
  start();
  publish(10);
  expect_begun(10);
  for (const std::int64_t version : {20, 30, 40, 50}) {
    publish(version);
    wait_until_sent(++sent);
  }
  wait_until_taken(sent);
  may_go.count_down();
  result(10);
  expect_begun(50);
  result(50);
}

TEST_F(EvaluatorRoleTest, AnEvaluationThatAProcessLeftGoesOnInTheNext) {
  const std::int64_t first = job.eval.seed;
  {
    EvaluationJournal earlier(scratch.path(), *agent->policy);
    PublishedWeights weights = untrained_weights(*agent->policy, 3);
    weights.fence = 1;
    weights.version = 20;
    earlier.begin(weights, 0);
    earlier.episode_begins(first, false);
    earlier.episode_ended({.seed = first, .total_return = 1e6, .length = 1});
    earlier.episode_begins(first + 1, true);
    earlier.episode_begins(first + 2, false);
  }
  start();
  expect_begun(20);
  const auto metrics = result(20);
  EXPECT_EQ(metrics.at("eval/num_trajectories"), 5);
  EXPECT_EQ(metrics.at("eval/lost"), 1) << "the process ended in its repeat";
  EXPECT_EQ(metrics.at("eval/return_max"), 1e6) << "what has ended is not played again";
  publish(20);
  publish(30);
  expect_begun(30);
}

TEST_F(EvaluatorRoleTest, AnEvaluationThatEndsEveryProcessIsLost) {
  {
    EvaluationJournal earlier(scratch.path(), *agent->policy);
    PublishedWeights weights = untrained_weights(*agent->policy, 3);
    weights.fence = 1;
    weights.version = 20;
    earlier.begin(weights, 0);
    earlier.episode_begins(job.eval.seed, false);
    earlier.episode_ended({.seed = job.eval.seed, .total_return = 2, .length = 1});
  }
  for (std::int64_t process = 2; process <= kMostEvaluationStarts; ++process)
    ASSERT_TRUE(EvaluationJournal(scratch.path(), *agent->policy).recover().value());
  start();
  expect_begun(20);
  const auto metrics = result(20);
  EXPECT_EQ(metrics.at("eval/num_trajectories"), 1);
  EXPECT_EQ(metrics.at("eval/lost"), 5);
}

TEST_F(EvaluatorRoleTest, EndsInTheMidstOfAnEvaluationThatTheNextOneGoesOnWith) {
  std::latch may_go{1};
  Lottery::on_step() = [&](std::uint64_t, std::int64_t) { may_go.wait(); };
  start();
  publish(10);
  expect_begun(10);
  role->stop();
  may_go.count_down();
  role.reset();
  start();
  expect_begun(10);
  EXPECT_DOUBLE_EQ(result(10).at("eval/return"), mean_return());
}

TEST_F(EvaluatorRoleTest, WeightsOfAGroupThatWentBackEndTheEvaluationUnderWay) {
  std::latch may_go{1};
  Lottery::on_step() = [&](std::uint64_t, std::int64_t) { may_go.wait(); };
  start();
  publish(30);
  expect_begun(30);
  learner->begin(2, 1, 0);
  publish(20);
  wait_until_taken(2);
  may_go.count_down();
  expect_begun(20, 2);
  EXPECT_DOUBLE_EQ(result(20, 2).at("eval/return"), mean_return());
}

TEST_F(EvaluatorRoleTest, AnExceptionCostsTheEvaluationAndNotTheProcess) {
  agent->policy = std::make_shared<BrokenNet>(agent->policy);
  start();
  for (const std::int64_t step : {10, 20}) {
    publish(step);
    expect_begun(step);
    const auto failed = inbox.take<Event>();
    EXPECT_EQ(failed.kind, "evaluation_failed");
    EXPECT_THAT(failed.text, ::testing::HasSubstr("no memory for this"));
    EXPECT_EQ(result(step).at("eval/lost"), 6);
  }
}

}  // namespace
}  // namespace troupe::workers
