// What a rank does around a trainer: groups, ledger, snapshots, reports, void steps.
#include "workers/learner/rank.h"

#include <gmock/gmock.h>

#include <limits>

#include "base/fault.h"
#include "comm/channel/arena_desk.h"
#include "tests/model/shard/actor_critic_network.h"
#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"
#include "workers/checkpoint/checkpoint_state.h"
#include "workers/checkpoint/role.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// Messages as they come, from any thread.
class Inbox {
 public:
  void push(const Message& message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(message);
    changed_.notify_all();
  }
  /// Waits for the next message of one type; others stay.
  template <class T>
  T take() {
    std::unique_lock lock(mutex_);
    T found{};
    const auto arrived = [&] {
      for (auto at = messages_.begin(); at != messages_.end(); ++at) {
        if (!std::holds_alternative<T>(*at)) continue;
        found = std::get<T>(*at);
        earlier.assign(messages_.begin(), at);
        messages_.erase(at);
        return true;
      }
      return false;
    };
    EXPECT_TRUE(changed_.wait_for(lock, 20s, arrived)) << "waited for a report of type " << T::kType;
    return found;
  }
  /// What had come before the message taken last, and was not taken.
  std::vector<Message> earlier;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Message> messages_;
};

/// A critic update each step, an actor update every second; two items are consumed.
class ScriptedTrainer final : public Trainer {
 public:
  std::shared_ptr<const Network> network() const override { return network_; }
  EngineOptions engine_options() const override { return {.param_slots = 4, .grad_slots = 4, .ema_decay = ema_decay}; }
  std::int64_t resident_bytes() const override { return 7; }
  Result<void> begin(const TrainerSession& session) override {
    session_ = session;
    begun_with = session.state;
    groups_at_begin = session.engine->group_updates();
    const volatile float subnormal = std::numeric_limits<float>::denorm_min();
    flushes_subnormals = subnormal * 1.0f == 0.0f;
    return {};
  }
  Result<StepOutcome> step(std::int64_t step, bool finish_requested) override {
    Engine& engine = *session_.engine;
    TROUPE_TRY(engine.accumulate(actor_critic_batch(step), 1.0, true));
    TROUPE_ASSIGN(const StepVote vote, engine.vote({}, {}));
    StepOutcome outcome;
    outcome.applied = !is_void;
    GroupRates rates = {{"critic", 1e-2}};
    if (step % 2 == 1) rates["actor"] = 1e-2;
    outcome.applied ? engine.commit(rates, vote) : engine.discard();
    outcome.consumed = {{.position = 2 * step, .xxh3 = 5, .void_reason = ""},
                        {.position = 2 * step + 1, .xxh3 = 6, .void_reason = step == 1 ? "lost" : ""}};
    outcome.counters = {{"produced", 10 * (step + 1)}, {"resident", 10 * (step + 1)}};
    outcome.metrics = {{"train/kl", 0.5}};
    outcome.finish = finish_requested;
    return outcome;
  }
  void committed(std::int64_t step, StepOutcome&) override { state_ = "{\"rounds\":" + std::to_string(step + 1) + "}"; }
  Result<std::map<std::string, double>> evaluate(std::int64_t step) override {
    return std::map<std::string, double>{{"eval/return", static_cast<double>(step)}};
  }
  Result<void> conclude(std::int64_t step) override {
    concluded_at = step;
    return {};
  }
  std::string state() const override { return state_; }
  void cancel(const std::string&) override {}

  bool is_void = false;
  double ema_decay = 0;
  std::string begun_with;
  std::map<std::string, std::int64_t> groups_at_begin;
  std::int64_t concluded_at = -1;
  bool flushes_subnormals = false;

 private:
  std::shared_ptr<const Network> network_ = std::make_shared<ActorCriticNetwork>(ActorCriticNetwork::Loss::policy);
  TrainerSession session_;
  std::string state_;
};

struct LearnerRankTest : ::testing::Test {
  LearnerRankTest() {
    config.training.steps = 4;
    config.checkpoint.interval = 2;
    config.job.seed = 3;
  }
  std::unique_ptr<LearnerRank> make_rank() {
    const LearnerRank::Setup setup{.config = config,
                                   .actor = "learner/0",
                                   .incarnation = 0,
                                   .run_dir = folder.path(),
                                   .runtime_dir = folder.path()};
    const auto join = [](const GroupPlan&) -> Result<std::unique_ptr<Collective>> {
      return join_thread_group(make_thread_group(1, 20s), 0);
    };
    return std::make_unique<LearnerRank>(setup, trainer, join, [this](const Message& message) { inbox.push(message); });
  }
  static GroupPlan plan(std::uint64_t fence) {
    GroupPlan plan;
    plan.fence = fence;
    plan.backend = "thread";
    return plan;
  }
  static void settle(LearnerRank& rank, const SnapshotReady& snapshot) {
    rank.snapshot_settled({.step = snapshot.step, .fence = snapshot.fence, .committed = true});
  }
  std::unique_ptr<LearnerRank> formed_rank() {
    auto rank = make_rank();
    rank->form(plan(1));
    return rank;
  }
  /// What the checkpointer makes of a snapshot; returns the folder.
  std::string write(const SnapshotReady& snapshot) {
    const ActorCriticNetwork network(ActorCriticNetwork::Loss::policy);
    std::vector<FlatLayout> layouts;
    for (const auto& unit : network.units()) layouts.push_back(make_flat_layout(unit.params));
    Manifest manifest;
    manifest.step = snapshot.step;
    manifest.fence = snapshot.fence;
    manifest.units = manifest_units(network.units(), layouts, saved_state(config));
    manifest.optimizer.updates = snapshot.updates;
    Inbox answers;
    const auto describe = [&](const CheckpointBegin&) {
      return CheckpointerRole::Description{.manifest = manifest, .attachments = {}};
    };
    CheckpointerRole checkpointer({.actor = "checkpointer/0", .incarnation = 0}, describe,
                                  [&](const std::string&, const Message& message) { answers.push(message); });
    checkpointer.start();
    CheckpointBegin request{.step = snapshot.step,
                            .fence = snapshot.fence,
                            .snapshots = {snapshot.handle},
                            .directory = folder / ("step_" + std::to_string(snapshot.step) + ".tmp-1"),
                            .updates = snapshot.updates,
                            .group_updates = snapshot.group_updates,
                            .trainer_state = snapshot.trainer_state};
    checkpointer.handle("controller", request);
    EXPECT_EQ(answers.take<CheckpointDone>().error, "");
    return request.directory;
  }

  /// Trains to a checkpoint with one ema.decay and goes on from it with another; returns what is told of it.
  Event resumed_with(double before, double after) {
    std::string checkpoint;
    config.ema.decay = trainer.ema_decay = before;
    {
      const auto rank = formed_rank();
      checkpoint = write(inbox.take<SnapshotReady>());
    }
    config.ema.decay = trainer.ema_decay = after;
    const auto rank = make_rank();
    GroupPlan resumed = plan(2);
    resumed.resume_step = 2;
    resumed.checkpoint = checkpoint;
    rank->form(resumed);
    return inbox.take<Event>();
  }

  ScratchFolder folder;
  std::unique_ptr<ArenaDesk> desk = ArenaDesk::open(folder.path()).value();
  JobConfig config;
  Inbox inbox;
  ScriptedTrainer trainer;
};

TEST_F(LearnerRankTest, StepsAreReportedWithTheTrainersMetrics) {
  const auto rank = formed_rank();
  EXPECT_EQ(inbox.take<GroupUp>().bytes.at("resident"), 7);
  EXPECT_EQ(inbox.take<EvalReport>().step, 0);
  const auto first = inbox.take<StepReport>();
  EXPECT_EQ(first.step, 1);
  EXPECT_EQ(first.metrics.at("train/kl"), 0.5);
  EXPECT_EQ(first.metrics.at("train/applied"), 1.0);
  EXPECT_THAT(first.void_positions, IsEmpty());
  settle(*rank, inbox.take<SnapshotReady>());
  EXPECT_THAT(inbox.take<StepReport>().void_positions, ElementsAre(3));
  settle(*rank, inbox.take<SnapshotReady>());
  EXPECT_EQ(inbox.take<Finished>().step, 4);
  EXPECT_EQ(inbox.take<EvalReport>().metrics.at("eval/return"), 4.0) << "after the last step";
  EXPECT_EQ(trainer.concluded_at, 4);
}

TEST_F(LearnerRankTest, ItsThreadTakesSubnormalNumbersForZero) {
  const auto rank = formed_rank();
  inbox.take<GroupUp>();
  settle(*rank, inbox.take<SnapshotReady>());
  EXPECT_TRUE(trainer.flushes_subnormals) << "moments that decay into them would make every update many times slower";
}

TEST_F(LearnerRankTest, TheLedgerHasWhatTheTrainerConsumedAndItsCounters) {
  const auto rank = formed_rank();
  for (int i = 0; i < 2; ++i) settle(*rank, inbox.take<SnapshotReady>());
  inbox.take<Finished>();
  std::vector<LedgerRecord> records;
  ASSERT_TRUE(scan_ledger(folder / ("ledger/" + ledger_file_name(1, 0)), [&](const LedgerRecord& r) -> Result<void> {
    records.push_back(r);
    return {};
  }));
  ASSERT_EQ(records.size(), 4u);
  EXPECT_THAT(records[2].positions, ElementsAre(4, 5));
  EXPECT_THAT(records[2].counters, ElementsAre(Pair("produced", 30), Pair("resident", 30)));
  ASSERT_EQ(records[1].voids.size(), 1u);
  EXPECT_EQ(records[1].voids[0].reason, "lost");
}

TEST_F(LearnerRankTest, ARestoredRankGivesTheTrainerItsStateAndTheEngineItsCounts) {
  std::string checkpoint;
  {
    const auto rank = formed_rank();
    const auto snapshot = inbox.take<SnapshotReady>();
    EXPECT_EQ(snapshot.step, 2);
    checkpoint = write(snapshot);
    EXPECT_EQ(trainer.begun_with, "");
  }
  EXPECT_THAT(read_manifest(checkpoint)->optimizer.groups,
              ElementsAre(Pair("actor", 1), Pair("critic", 2), Pair("temperature", 0)));
  const auto rank = make_rank();
  GroupPlan resumed = plan(2);
  resumed.resume_step = 2;
  resumed.checkpoint = checkpoint;
  rank->form(resumed);
  inbox.take<GroupUp>();
  settle(*rank, inbox.take<SnapshotReady>());
  EXPECT_EQ(trainer.begun_with, "{\"rounds\":2}");
  EXPECT_THAT(trainer.groups_at_begin, ElementsAre(Pair("actor", 1), Pair("critic", 2), Pair("temperature", 0)));
}

TEST_F(LearnerRankTest, AnAverageThatACheckpointLacksStartsFromItsWeightsAndThatIsTold) {
  const Event told = resumed_with(/*before=*/0, /*after=*/0.9);
  EXPECT_EQ(told.kind, "average_started");
  EXPECT_THAT(told.text, ::testing::HasSubstr("checkpoint of step 2"));
}

TEST_F(LearnerRankTest, AnAverageThatTheJobDoesNotKeepIsDroppedAndThatIsTold) {
  const Event told = resumed_with(/*before=*/0.9, /*after=*/0);
  EXPECT_EQ(told.kind, "average_dropped");
  EXPECT_THAT(told.text, ::testing::HasSubstr("ema.decay is 0"));
}

TEST_F(LearnerRankTest, ThereIsNothingToSayOfOneGroupWithoutState) {
  const auto rank = formed_rank();
  auto snapshot = inbox.take<SnapshotReady>();
  snapshot.group_updates = {{"model", snapshot.updates}};
  snapshot.trainer_state.clear();
  const std::string checkpoint = write(snapshot);
  EXPECT_THAT(read_manifest(checkpoint)->optimizer.groups, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(checkpoint + "/trainer_state.json"));
}

TEST_F(LearnerRankTest, WhileTheLedgersDiskIsFullItTrainsWithoutCheckpoints) {
  // The lines of steps 0 and 1, and both before the snapshot of step 2.
  ASSERT_TRUE(arm_faults("ledger.append:enospc:3"));
  const auto rank = formed_rank();
  const auto without = inbox.take<SnapshotReady>();
  ASSERT_TRUE(arm_faults(""));
  EXPECT_EQ(without.step, 2);
  EXPECT_EQ(without.handle, "");
  EXPECT_THAT(without.error, ::testing::HasSubstr("No space left on device"));
  EXPECT_EQ(inbox.take<Event>().kind, "ledger_waits");
  rank->snapshot_settled({.step = 2, .fence = without.fence, .committed = false});
  const auto snapshot = inbox.take<SnapshotReady>();
  EXPECT_EQ(snapshot.error, "");
  settle(*rank, snapshot);
  EXPECT_EQ(inbox.take<Finished>().step, 4);
  int lines = 0;
  const std::string ledger = folder / ("ledger/" + ledger_file_name(1, 0));
  ASSERT_TRUE(scan_ledger(ledger, [&](const LedgerRecord& record) -> Result<void> {
    EXPECT_EQ(record.step, lines++);
    return {};
  }));
  EXPECT_EQ(lines, 4);
}

TEST_F(LearnerRankTest, ADamagedCheckpointIsNoEndOfTheJob) {
  const auto rank = formed_rank();
  const auto snapshot = inbox.take<SnapshotReady>();
  const std::string checkpoint = write(snapshot);
  settle(*rank, snapshot);
  flip_byte(checkpoint + "/rank-00000-of-00001.safetensors", -1);
  GroupPlan resumed = plan(2);
  resumed.resume_step = 2;
  resumed.checkpoint = checkpoint;
  rank->form(resumed);
  auto told = inbox.take<GroupAbort>();
  EXPECT_EQ(told.fence, 2u);
  EXPECT_EQ(told.damaged_step, 2);
  EXPECT_THAT(told.reason, ::testing::HasSubstr("XXH3-128"));
  resumed.fence = 3;
  resumed.checkpoint = folder / "absent";
  rank->form(resumed);
  EXPECT_EQ(inbox.take<GroupAbort>().damaged_step, 2);
}

TEST_F(LearnerRankTest, WhatDidNotCountInAStepIsToldBeforeItsSnapshot) {
  const auto rank = formed_rank();
  ASSERT_EQ(inbox.take<SnapshotReady>().step, 2);
  std::vector<std::int64_t> told;
  for (const Message& message : inbox.earlier) {
    const auto* report = std::get_if<StepReport>(&message);
    if (report) told.insert(told.end(), report->void_positions.begin(), report->void_positions.end());
  }
  EXPECT_THAT(told, ElementsAre(3)) << "the checkpoint would not know of it";
}

TEST_F(LearnerRankTest, TenVoidStepsInARowEndTheJob) {
  config.training.steps = 100;
  config.checkpoint.interval = 100;
  trainer.is_void = true;
  const auto rank = formed_rank();
  EXPECT_EQ(inbox.take<Event>().kind, "void_step") << "of the first alone";
  EXPECT_THAT(inbox.take<Fatal>().text, ::testing::HasSubstr("training diverged: 10 steps in a row, from step 1 on"));
}

TEST_F(LearnerRankTest, ACommitOfAnOlderFenceDoesNotFreeTheSnapshot) {
  config.checkpoint.timeout = Seconds(0.05);
  const auto rank = formed_rank();
  const auto older = inbox.take<SnapshotReady>();
  rank->form(plan(2));
  const auto newer = inbox.take<SnapshotReady>();
  ASSERT_EQ(newer.step, older.step);
  settle(*rank, older);
  // With its arena free the rank would hand over step 4 and wait for that.
  EXPECT_THAT(inbox.take<GroupAbort>().reason, ::testing::HasSubstr("(step 2)"));
}

TEST_F(LearnerRankTest, AFinishedRankLeavesACheckpointAndDoesNotConclude) {
  config.training.steps = 1'000'000;
  config.checkpoint.interval = 1'000'000;
  const auto rank = formed_rank();
  inbox.take<StepReport>();
  rank->finish();
  const auto snapshot = inbox.take<SnapshotReady>();
  settle(*rank, snapshot);
  EXPECT_EQ(inbox.take<Finished>().step, snapshot.step);
  EXPECT_EQ(trainer.concluded_at, -1);
}

}  // namespace
}  // namespace troupe::workers
