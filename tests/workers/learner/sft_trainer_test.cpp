// How supervised training goes through its samples: what is made ahead, and what becomes of it.
#include "workers/learner/sft_trainer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <limits>

#include "tests/model/shard/chain_network.h"
#include "tests/workers/stream/fake_consumer.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// First positions of what was made, in order: of batches for training, and -1 for one for evaluation.
class Record {
 public:
  void add(std::int64_t position) {
    const std::lock_guard lock(mutex_);
    made_.push_back(position);
    changed_.notify_all();
  }
  std::vector<std::int64_t> made() {
    const std::lock_guard lock(mutex_);
    return made_;
  }
  /// Once there are so many.
  std::vector<std::int64_t> made(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 20s, [&] { return made_.size() >= count; }));
    return made_;
  }
  /// Whether the batch that begins with `position` was made, by now or soon.
  bool await(std::int64_t position) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return std::find(made_.begin(), made_.end(), position) != made_.end(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::int64_t> made_;
};

/// A small network that calls a function when a batch comes in, with the first position of that batch.
class HookedNetwork final : public Network {
 public:
  explicit HookedNetwork(std::function<void(std::int64_t)> hook) : hook_(std::move(hook)) {}
  const std::vector<UnitSpec>& units() const override { return chain_.units(); }
  Carry prologue(const ParamView& params, const Batch& batch) const override {
    hook_(batch.at("position").item<std::int64_t>());
    return chain_.prologue(params, batch);
  }
  at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry, const Batch& batch) const override {
    return chain_.block(index, params, carry, batch);
  }
  Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const override {
    return chain_.epilogue(params, carry, batch);
  }

 private:
  const ChainNetwork chain_;
  const std::function<void(std::int64_t)> hook_;
};

class ScriptedTask final : public TrainingTask {
 public:
  ScriptedTask(Record& record, std::shared_ptr<const Network> network)
      : record_(record), network_(std::move(network)) {}
  std::shared_ptr<const Network> network() const override { return network_; }
  std::vector<std::string> metrics() const override { return {}; }
  Result<Batch> train_batch(const std::vector<Feed::Sample>& samples) override {
    const std::int64_t position = samples.front().position;
    Batch batch = chain_batch(position, static_cast<std::int64_t>(samples.size()));
    batch["position"] = at::scalar_tensor(position, at::kLong);
    if (position == not_finite_once) {
      not_finite_once = -1;
      batch.at("input").fill_(std::numeric_limits<float>::quiet_NaN());
    }
    record_.add(position);
    return batch;
  }
  Result<void> draw_labels(const std::vector<Feed::Sample>&, Batch&) const override { return {}; }
  Result<Batch> eval_batch(const std::vector<Feed::Sample>& samples, std::size_t) override {
    record_.add(-1);
    Batch batch = chain_batch(1000, static_cast<std::int64_t>(samples.size()));
    batch["position"] = at::scalar_tensor(-1, at::kLong);
    return batch;
  }
  Result<void> predict(const Feed::Sample&, const Forward&, const std::string&, bool) override { return {}; }
  std::int64_t resident_bytes() const override { return 0; }

  std::int64_t not_finite_once = -1;

 private:
  Record& record_;
  const std::shared_ptr<const Network> network_;
};

/// One rank, steps of two micro-batches of two samples: step 0 is positions 0 to 3, step 1 is 4 to 7.
struct SftTrainerTest : ::testing::Test {
  SftTrainerTest() {
    config.training.steps = 3;
    config.eval.every = 0;
  }
  /// A group forms at the first step; the producer delivers `items` of what it is asked for.
  void begin(std::uint64_t fence, int items = 100) {
    if (!trainer) make_trainer();
    engine->initialise(3);
    GroupPlan plan;
    plan.fence = fence;
    plan.num_eval = config.eval.every > 0 ? 2 : 0;
    EXPECT_TRUE(trainer->begin({.engine = &*engine,
                                .group = group.get(),
                                .plan = plan,
                                .step_timeout = step_timeout,
                                .state = "",
                                .report = [](const Message&) {}}));
    deliver(items);
  }
  void make_trainer() {
    auto owned = std::make_unique<ScriptedTask>(record, network);
    task = owned.get();
    const LearnerSetup setup{.config = config, .actor = "learner/0", .run_dir = "", .runtime_dir = ""};
    const BatchPlan batch{.global = 4, .micro = 2, .data_ranks = 1, .accumulation = 2};
    trainer.emplace(setup, batch, std::move(owned), feed);
    EngineOptions options{.param_slots = 8, .grad_slots = 8};
    if (config.optimizer.name == "sophia") options.sophia = SophiaOptions{};
    engine.emplace(network, options);
    EXPECT_TRUE(engine->attach(*group));
    feed.set_consumer(&consumer);
    feed.callbacks().on_producer("decoder/0#0", 100);
  }
  void deliver(int items) {
    while (items-- > 0 && !consumer.grants["decoder/0#0"].empty()) consumer.deliver(feed, "decoder/0#0");
  }
  Result<StepOutcome> step(std::int64_t step) { return trainer->step(step, /*finish_requested=*/false); }
  /// Trains the step, commits it, and returns the positions that it consumed.
  std::vector<std::int64_t> train(std::int64_t number) {
    auto outcome = step(number);
    EXPECT_TRUE(outcome && outcome->applied) << (outcome ? "not applied" : outcome.error().message());
    if (!outcome) return {};
    trainer->committed(number, *outcome);
    deliver(100);
    std::vector<std::int64_t> positions;
    for (const ConsumedItem& item : outcome->consumed) positions.push_back(item.position);
    return positions;
  }

  JobConfig config;
  std::chrono::milliseconds step_timeout = 20s;
  Record record;
  /// Called when a batch enters the network.
  std::function<void(std::int64_t)> hook = [](std::int64_t) {};
  std::shared_ptr<const Network> network = std::make_shared<HookedNetwork>([this](std::int64_t p) { hook(p); });
  std::unique_ptr<Collective> group = join_thread_group(make_thread_group(1, 20s), 0);
  std::optional<Engine> engine;
  FakeConsumer consumer{8};
  Feed feed{{.order = {.global_batch = 4, .micro_batch = 2, .accumulation = 2}, .total_steps = 3, .item_deadline = 60s},
            Feed::OnStuck()};
  ScriptedTask* task = nullptr;
  std::optional<SftTrainer> trainer;
};

TEST_F(SftTrainerTest, TheNextMicroBatchIsMadeWhileThisOneIsInTheNetwork) {
  hook = [this](std::int64_t position) { EXPECT_TRUE(position == 10 || record.await(position + 2)) << position; };
  begin(1);
  EXPECT_THAT(train(0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(train(1), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(train(2), ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(record.made(), ElementsAre(0, 2, 4, 6, 8, 10)) << "nothing behind the last step";
}

TEST_F(SftTrainerTest, AStepThatIsTriedAgainHasItsOwnSamplesAndTheNextStepToo) {
  begin(1);
  task->not_finite_once = 2;
  EXPECT_THAT(train(0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(train(1), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(record.made(7), ElementsAre(0, 2, 4, 0, 2, 6, 8)) << "what was ahead is not made twice";
}

TEST_F(SftTrainerTest, NothingIsMadeAheadOfAnEvaluation) {
  config.eval.every = 1;
  begin(1);
  train(0);
  EXPECT_TRUE(trainer->evaluate(1));
  train(1);
  EXPECT_TRUE(trainer->evaluate(2));
  EXPECT_THAT(record.made(), ElementsAre(0, 2, -1, 4, 6, -1)) << "encoders see samples in one order in every run";
}

TEST_F(SftTrainerTest, AfterARequestToFinishNothingIsMade) {
  begin(1);
  ASSERT_TRUE(trainer->step(0, /*finish_requested=*/true)->finish);
  EXPECT_THAT(record.made(), ElementsAre(0, 2));
}

TEST_F(SftTrainerTest, WhatTheCurvatureTookTheStepTakesOnceMore) {
  config.optimizer.name = "sophia";
  config.optimizer.sophia.every = 2;
  config.optimizer.sophia.curvature_batch = 1;
  begin(1);
  EXPECT_THAT(train(0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(train(1), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(train(2), ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(record.made(), ElementsAre(0, 0, 2, 4, 6, 8, 8, 10));
}

TEST_F(SftTrainerTest, ANewGroupForgetsWhatWasAhead) {
  begin(1);
  train(0);
  ASSERT_TRUE(record.await(4));
  begin(2);
  EXPECT_THAT(train(0), ElementsAre(0, 1, 2, 3)) << "from the first step again";
  EXPECT_THAT(record.made(6), ElementsAre(0, 2, 4, 0, 2, 4));
}

TEST_F(SftTrainerTest, SamplesThatAreLateAreAnErrorOfTheirOwnStep) {
  step_timeout = 50ms;
  begin(1, /*items=*/4);
  ASSERT_TRUE(step(0)) << "those of step 1 do not come, and are waited for already";
  const auto late = step(1);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(late.error().message(), HasSubstr("waited 50 ms for training position 4, owed by decoder/0#0"));
}

TEST_F(SftTrainerTest, ACancelledWaitAheadIsAnErrorOfItsStep) {
  begin(1, /*items=*/4);
  ASSERT_TRUE(step(0));
  trainer->cancel("a peer died");
  const auto cancelled = step(1);
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code(), Errc::aborted);
  EXPECT_EQ(cancelled.error().message(), "feed: a peer died");
}

TEST_F(SftTrainerTest, ItEndsWhileItWaitsForTheNextSamples) {
  step_timeout = 1h;
  begin(1, /*items=*/4);
  ASSERT_TRUE(step(0));
  trainer.reset();
}

}  // namespace
}  // namespace troupe::workers
