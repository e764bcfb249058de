#include "workers/controller/job_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/ids.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using TimePoint = JobController::TimePoint;

struct Sent {
  std::string to;
  Message message;
};

class RecordingEffects final : public ControllerEffects {
 public:
  void send(const std::string& to, const Message& message) override { sent.push_back({to, message}); }
  void event(Severity, const std::string& kind, const std::string& text) override {
    events.push_back(kind + ": " + text);
  }
  void step(const StepReport& report) override { steps.push_back(report.step); }
  void evaluated(const EvalReport&) override {}
  void producer_times(const std::string&, double idle_seconds, double busy_seconds) override {
    times.emplace_back(idle_seconds, busy_seconds);
  }
  std::vector<std::pair<double, double>> times;

  /// Messages of one type sent since the last call, by receiver.
  template <class T>
  std::vector<std::pair<std::string, T>> take() {
    std::vector<std::pair<std::string, T>> found;
    std::erase_if(sent, [&](const Sent& s) {
      const auto* message = std::get_if<T>(&s.message);
      if (message) found.emplace_back(s.to, *message);
      return message != nullptr;
    });
    return found;
  }

  std::vector<Sent> sent;
  std::vector<std::string> events;
  std::vector<std::int64_t> steps;
};

Plan two_ranks_two_decoders() {
  Plan plan;
  plan.job = "test";
  plan.nodes = {{.name = "local", .cpus = 4, .memory_bytes = std::int64_t{8} << 30, .devices = {}}};
  for (const auto& [role, count] : {std::pair{"learner", 2}, {"decoder", 2}, {"checkpointer", 1}}) {
    for (int rank = 0; rank < count; ++rank) {
      plan.actors.push_back({.name = std::string(role) + "/" + std::to_string(rank),
                             .role = role,
                             .process_rank = rank,
                             .node = 0,
                             .devices = {},
                             .cpus = 1,
                             .isolation = "process",
                             .memory_bytes = 1});
    }
  }
  plan.collective = "gloo";
  plan.batch = {.global = 8, .micro = 4, .data_ranks = 2, .accumulation = 1};
  return plan;
}

struct JobControllerTest : ::testing::Test {
  void SetUp() override {
    std::filesystem::create_directories(folder);
    db = std::move(StateDb::open(folder + "/state.db")).value();
    auto made = RunDirectory::create(folder, "test", "run");
    setup.run = *made;
    setup.plan = two_ranks_two_decoders();
    setup.config.training.steps = 100;
    setup.config.job.name = "test";
    setup.config.data.max_bad_fraction = 0.01;
    setup.runtime_dir = folder;
    setup.term = *db->next_term();
    job = std::make_unique<JobController>(setup, *db, effects);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void up(const std::string& actor, std::int64_t incarnation = 0) {
    job->handle(actor, ActorUp{.actor = actor, .incarnation = incarnation, .pid = 1, .channels = {"shm:" + actor}},
                now);
  }
  void died(const std::string& actor, std::int64_t incarnation, std::int64_t signal = 9) {
    job->handle("node/0",
                ActorExited{.actor = actor,
                            .incarnation = incarnation,
                            .exit_code = 0,
                            .signal = signal,
                            .killed_by_us = false,
                            .stderr_tail = "",
                            .out_of_memory = false},
                now);
  }
  void pass(std::chrono::milliseconds time) {
    now += time;
    job->tick(now);
  }
  void group_up(std::uint64_t fence) {
    for (const char* rank : {"learner/0", "learner/1"})
      job->handle(rank, GroupUp{.actor = rank, .fence = fence, .bytes = {}}, now);
  }
  /// Everything up, the first group formed.
  std::uint64_t begin() {
    job->start(now);
    for (const char* actor : {"checkpointer/0", "decoder/0", "decoder/1", "learner/0", "learner/1"}) up(actor);
    const std::uint64_t fence = effects.take<GroupPlan>().at(0).second.fence;
    group_up(fence);
    effects.sent.clear();
    return fence;
  }

  std::string folder = (std::filesystem::temp_directory_path() / ("troupe-job-" + to_hex(new_message_id()))).string();
  TimePoint now{1h};
  RecordingEffects effects;
  std::unique_ptr<StateDb> db;
  JobController::Setup setup;
  std::unique_ptr<JobController> job;
};

TEST_F(JobControllerTest, SpawnsThePlannedActorsThroughTheirNode) {
  job->start(now);
  const auto spawns = effects.take<Spawn>();
  ASSERT_EQ(spawns.size(), 5u);
  for (const auto& [to, spawn] : spawns) EXPECT_EQ(to, "node/0");
}

TEST_F(JobControllerTest, FormsTheGroupWhenTheLastLearnerIsUp) {
  job->start(now);
  up("learner/1");
  EXPECT_TRUE(effects.take<GroupPlan>().empty());
  up("decoder/0");
  up("learner/0");
  const auto plans = effects.take<GroupPlan>();
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[1].second.rank, 1);
  EXPECT_EQ(plans[1].second.world, 2);
  EXPECT_EQ(plans[1].second.fence, setup.term << 32 | 1);
  const auto peers = effects.take<Peers>();
  ASSERT_EQ(peers.size(), 1u);
  EXPECT_THAT(peers[0].second.channels, ElementsAre("shm:learner/0", "shm:learner/1"));
  EXPECT_EQ(db->epochs().value().size(), 1u);
}

TEST_F(JobControllerTest, ADecoderThatComesUpLaterIsToldOfTheFeeds) {
  begin();
  died("decoder/1", 0);
  pass(0ms);
  up("decoder/1", 1);
  const auto peers = effects.take<Peers>();
  EXPECT_EQ(peers.back().first, "decoder/1");
  EXPECT_EQ(peers.back().second.channels.size(), 2u);
}

TEST_F(JobControllerTest, ALostDecoderIsReportedToFeedsAndStartedAgain) {
  begin();
  died("decoder/0", 0);
  const auto peers = effects.take<Peers>();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_THAT(peers[0].second.gone, ElementsAre("decoder/0#0"));
  pass(0ms);
  const auto spawns = effects.take<Spawn>();
  ASSERT_EQ(spawns.size(), 1u);
  EXPECT_EQ(spawns[0].second.incarnation, 1);
  EXPECT_EQ(job->state(), JobState::running);
}

TEST_F(JobControllerTest, ALostLearnerSendsTheOthersBackToTheCommittedStep) {
  const std::uint64_t fence = begin();
  job->handle(
      "learner/0",
      StepReport{
          .actor = "learner/0", .fence = fence, .step = 7, .metrics = {{"train/loss", 1.0}}, .void_positions = {}},
      now);
  died("learner/1", 0);
  const auto aborts = effects.take<GroupAbort>();
  ASSERT_EQ(aborts.size(), 1u);
  EXPECT_EQ(aborts[0].first, "learner/0");
  EXPECT_EQ(job->state(), JobState::recovering);
  pass(0ms);
  up("learner/1", 1);
  const auto plans = effects.take<GroupPlan>();
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].second.fence, fence + 1);
  EXPECT_EQ(plans[0].second.resume_step, 0);
  EXPECT_NE(plans[0].second.store, "");
  group_up(fence + 1);
  EXPECT_EQ(job->state(), JobState::running);
  EXPECT_EQ(job->step(), 0);
}

TEST_F(JobControllerTest, AFailedCollectiveWithoutADeathFormsTheGroupAgain) {
  const std::uint64_t fence = begin();
  job->handle("learner/0", GroupAbort{.actor = "learner/0", .fence = fence, .reason = "connection reset"}, now);
  pass(100ms);
  EXPECT_TRUE(effects.take<GroupPlan>().empty()) << "waits for the obituary of a peer";
  pass(2s);
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u);
}

TEST_F(JobControllerTest, TheRankThatSaysNothingIsKilledAndNotTheOneThatWaitedForIt) {
  const std::uint64_t fence = begin();
  const auto complain = [&](std::uint64_t of) {
    job->handle("learner/0", GroupAbort{.actor = "learner/0", .fence = of, .reason = "timed out"}, now);
    pass(2s);
  };
  complain(fence);
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u);
  pass(std::chrono::seconds(static_cast<std::int64_t>(setup.config.training.step_timeout_s)));
  complain(fence + 1);
  EXPECT_TRUE(effects.take<GroupPlan>().empty());
  const auto stops = effects.take<Stop>();
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_EQ(stops[0].second.actor, "learner/1");
  died("learner/1", 0);
  pass(0ms);
  up("learner/1", 1);
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u);
}

TEST_F(JobControllerTest, AGroupInWhichNobodyReportsFormsAgainAndThenDies) {
  begin();
  pass(std::chrono::seconds(static_cast<std::int64_t>(5 * setup.config.training.step_timeout_s) - 1));
  EXPECT_TRUE(effects.take<GroupPlan>().empty());
  pass(2s);
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u);
  const double patience = std::max(setup.config.cluster.start_timeout_s, setup.config.training.step_timeout_s);
  pass(std::chrono::seconds(static_cast<std::int64_t>(patience) + 3));
  EXPECT_EQ(effects.take<Stop>().size(), 2u);
}

TEST_F(JobControllerTest, MessagesOfAnOlderFenceAreIgnored) {
  const std::uint64_t fence = begin();
  job->handle("learner/0",
              StepReport{.actor = "learner/0", .fence = fence - 1, .step = 9, .metrics = {}, .void_positions = {}},
              now);
  EXPECT_EQ(job->step(), 0);
  job->handle(
      "learner/0",
      SnapshotReady{.actor = "learner/0", .rank = 0, .step = 9, .fence = fence - 1, .handle = "h", .updates = 9}, now);
  EXPECT_TRUE(effects.take<CheckpointBegin>().empty());
}

TEST_F(JobControllerTest, GivesUpWhenALearnerDiesMoreOftenThanItsBudget) {
  begin();
  for (std::int64_t incarnation = 0; incarnation <= setup.config.cluster.restart.budget && job->failure().empty();
       ++incarnation) {
    died("learner/1", incarnation);
    for (int i = 0; i < 400 && effects.take<Spawn>().empty() && job->failure().empty(); ++i) pass(100ms);
    up("learner/1", incarnation + 1);
    // A step committed in between: it is this actor that fails, not the group.
    for (const auto& [to, plan] : effects.take<GroupPlan>()) {
      job->handle(to, GroupUp{.actor = to, .fence = plan.fence, .bytes = {}}, now);
      job->handle(to, StepReport{.actor = to, .fence = plan.fence, .step = 1, .metrics = {}, .void_positions = {}},
                  now);
    }
  }
  EXPECT_THAT(job->failure(), HasSubstr("learner/1"));
}

TEST_F(JobControllerTest, CollectsSnapshotsOfAllRanksBeforeTheCheckpointerWrites) {
  const std::uint64_t fence = begin();
  job->handle("learner/1",
              SnapshotReady{.actor = "learner/1", .rank = 1, .step = 10, .fence = fence, .handle = "b", .updates = 10},
              now);
  EXPECT_TRUE(effects.take<CheckpointBegin>().empty());
  job->handle("learner/0",
              SnapshotReady{.actor = "learner/0", .rank = 0, .step = 10, .fence = fence, .handle = "a", .updates = 10},
              now);
  const auto begun = effects.take<CheckpointBegin>();
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_THAT(begun[0].second.snapshots, ElementsAre("a", "b"));
  died("checkpointer/0", 0);
  pass(0ms);
  up("checkpointer/0", 1);
  EXPECT_EQ(effects.take<CheckpointBegin>().size(), 1u) << "asked again after its death";
}

TEST_F(JobControllerTest, AFailedWriteIsTriedAgainAndThenGivenUp) {
  const std::uint64_t fence = begin();
  for (const std::int64_t rank : {0, 1}) {
    job->handle("learner",
                SnapshotReady{.actor = "", .rank = rank, .step = 10, .fence = fence, .handle = "h", .updates = 10},
                now);
  }
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto begun = effects.take<CheckpointBegin>();
    ASSERT_EQ(begun.size(), 1u) << attempt;
    job->handle("checkpointer/0",
                CheckpointDone{.step = 10,
                               .fence = fence,
                               .directory = begun[0].second.directory,
                               .manifest_hash = "",
                               .error = "rank-0: No space left on device",
                               .seconds = 0},
                now);
    pass(5s);
  }
  const auto settled = effects.take<CheckpointCommitted>();
  ASSERT_EQ(settled.size(), 2u);
  EXPECT_FALSE(settled[0].second.committed);
  EXPECT_EQ(job->state(), JobState::running) << "training goes on";
}

TEST_F(JobControllerTest, AnInterruptFinishesTheStepAndAsksForACheckpoint) {
  begin();
  job->interrupt("SIGINT", now);
  EXPECT_EQ(effects.take<Finish>().size(), 2u);
  EXPECT_EQ(job->state(), JobState::draining);
  job->interrupt("SIGINT", now);
  EXPECT_EQ(effects.take<Stop>().size(), 5u) << "the second one does not wait";
  for (const char* actor : {"checkpointer/0", "decoder/0", "decoder/1", "learner/0", "learner/1"}) died(actor, 0, 15);
  pass(0ms);
  EXPECT_EQ(job->exit_code(), 130);
}

TEST_F(JobControllerTest, TooManyBadSamplesFailTheJob) {
  const std::uint64_t fence = begin();
  StepReport report{.actor = "learner/0", .fence = fence, .step = 1, .metrics = {}, .void_positions = {}};
  for (std::int64_t p = 0; p < 9; ++p) report.void_positions.push_back(p);  // 1% of 800 positions is 8
  job->handle("learner/0", report, now);
  EXPECT_THAT(job->failure(), HasSubstr("data.max_bad_fraction"));
}

TEST_F(JobControllerTest, TimesOfProducersAreCollectedAndNotShown) {
  const std::size_t shown = effects.events.size();
  job->handle("decoder/1",
              Event{.actor = "decoder/1", .kind = "producer_times", .text = "0.5 1.5", .subject = "decoder/1#0"}, now);
  job->handle("decoder/1",
              Event{.actor = "decoder/1", .kind = "producer_times", .text = "nonsense", .subject = "decoder/1#0"}, now);
  EXPECT_EQ(effects.times, (std::vector<std::pair<double, double>>{{0.5, 1.5}}));
  EXPECT_EQ(effects.events.size(), shown);
}

TEST_F(JobControllerTest, AStuckProducerIsKilledAndReplaced) {
  begin();
  job->handle("learner/0",
              Event{.actor = "learner/0", .kind = "stuck_producer", .text = "held too long", .subject = "decoder/1#0"},
              now);
  const auto stops = effects.take<Stop>();
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_EQ(stops[0].second.grace_ms, 0);
  died("decoder/1", 0);
  pass(0ms);
  EXPECT_EQ(effects.take<Spawn>().size(), 1u);
}

TEST_F(JobControllerTest, ScalingUpSpawnsOnlyNewDecodersAndDownRemovesThem) {
  begin();
  EXPECT_EQ(job->scale({.pool = "decoder", .target = 4, .dry_run = false}, now).code, 0);
  const auto spawns = effects.take<Spawn>();
  ASSERT_EQ(spawns.size(), 2u);
  EXPECT_EQ(spawns[0].second.actor, "decoder/2");
  up("decoder/2");
  up("decoder/3");
  EXPECT_EQ(job->scale({.pool = "decoder", .target = 1, .dry_run = false}, now).code, 0);
  const auto stops = effects.take<Stop>();
  ASSERT_EQ(stops.size(), 3u);
  for (const auto& [to, stop] : stops) died(stop.actor, stop.incarnation, 15);
  pass(1s);
  EXPECT_TRUE(effects.take<Spawn>().empty()) << "who was scaled away stays away";
  const auto status = nlohmann::json::parse(job->status_json(now));
  EXPECT_EQ(status["pools"]["decoder"]["target"], 1);
  EXPECT_EQ(status["pools"]["decoder"]["up"], 1);
}

TEST_F(JobControllerTest, ScalingWhatIsNotAPoolIsRefusedWithAReason) {
  begin();
  const Reply reply = job->scale({.pool = "decodr", .target = 2, .dry_run = false}, now);
  EXPECT_EQ(reply.code, 3);
  EXPECT_THAT(reply.text, HasSubstr("decoder"));
}

TEST_F(JobControllerTest, ANameThatComesBackGetsANewIncarnation) {
  begin();
  ASSERT_EQ(job->scale({.pool = "decoder", .target = 1, .dry_run = false}, now).code, 0);
  const auto stopped = effects.take<Stop>().at(0).second;
  died(stopped.actor, stopped.incarnation, 15);
  ASSERT_EQ(job->scale({.pool = "decoder", .target = 2, .dry_run = false}, now).code, 0);
  EXPECT_EQ(effects.take<Spawn>().at(0).second.incarnation, 1);
}

/// A job of reinforcement learning: one learner, two simulators, two rollout workers.
struct RlJobControllerTest : JobControllerTest {
  void SetUp() override {
    JobControllerTest::SetUp();
    setup.config.job.kind = "rl";
    setup.plan.actors.clear();
    for (const auto& [role, count] : {std::pair{"learner", 1}, {"env", 2}, {"rollout", 2}, {"checkpointer", 1}}) {
      for (int rank = 0; rank < count; ++rank) {
        setup.plan.actors.push_back({.name = std::string(role) + "/" + std::to_string(rank),
                                     .role = role,
                                     .process_rank = rank,
                                     .node = 0,
                                     .devices = {},
                                     .cpus = 1,
                                     .isolation = "process",
                                     .memory_bytes = 1});
      }
    }
    setup.plan.batch = {.global = 8, .micro = 1, .data_ranks = 1, .accumulation = 8};
    job = std::make_unique<JobController>(setup, *db, effects);
    job->start(now);
  }
  void rollout_up(const std::string& actor, std::int64_t incarnation = 0) {
    job->handle(actor,
                ActorUp{.actor = actor,
                        .incarnation = incarnation,
                        .pid = 1,
                        .channels = {"shm:" + actor},
                        .weights = {"shm:" + actor + ".weights"}},
                now);
  }
  void all_up() {
    for (const char* actor : {"checkpointer/0", "env/0", "env/1"}) up(actor);
    for (const char* actor : {"rollout/0", "rollout/1"}) rollout_up(actor);
    up("learner/0");
  }
  std::map<std::string, std::vector<std::string>> dialled() {
    std::map<std::string, std::vector<std::string>> channels;
    for (const auto& [to, peers] : effects.take<Peers>()) {
      if (peers.gone.empty()) channels[to] = peers.channels;
    }
    return channels;
  }
};

TEST_F(RlJobControllerTest, EveryProducerIsToldOfItsConsumersWhenTheGroupForms) {
  all_up();
  const auto channels = dialled();
  EXPECT_THAT(channels.at("env/0"), ElementsAre("shm:rollout/0", "shm:rollout/1"));
  EXPECT_THAT(channels.at("rollout/1"), ElementsAre("shm:learner/0"));
  EXPECT_THAT(channels.at("learner/0"), ElementsAre("shm:rollout/0.weights", "shm:rollout/1.weights"));
}

TEST_F(RlJobControllerTest, ARolloutWorkerThatComesBackIsIntroducedToSimulatorsAndLearners) {
  all_up();
  group_up(effects.take<GroupPlan>().at(0).second.fence);
  died("rollout/0", 0);
  pass(2s);
  effects.sent.clear();
  job->handle("rollout/0",
              ActorUp{.actor = "rollout/0",
                      .incarnation = 1,
                      .pid = 2,
                      .channels = {"shm:again"},
                      .weights = {"shm:again.weights"}},
              now);
  const auto channels = dialled();
  EXPECT_THAT(channels.at("env/1"), ElementsAre("shm:again", "shm:rollout/1"));
  EXPECT_THAT(channels.at("learner/0"), ElementsAre("shm:again.weights", "shm:rollout/1.weights"));
  EXPECT_THAT(channels.at("rollout/0"), ElementsAre("shm:learner/0"));
}

TEST_F(RlJobControllerTest, TheExitOfASimulatorIsToldToRolloutWorkersAndToNobodyElse) {
  all_up();
  effects.sent.clear();
  died("env/1", 0);
  std::vector<std::string> told;
  for (const auto& [to, peers] : effects.take<Peers>()) {
    if (!peers.gone.empty()) told.push_back(to + " " + peers.gone.front());
  }
  EXPECT_THAT(told, ElementsAre("rollout/0 env/1#0", "rollout/1 env/1#0"));
}

TEST_F(RlJobControllerTest, TheExitOfARolloutWorkerIsToldToLearners) {
  all_up();
  effects.sent.clear();
  died("rollout/1", 0);
  std::vector<std::string> told;
  for (const auto& [to, peers] : effects.take<Peers>()) {
    if (!peers.gone.empty()) told.push_back(to + " " + peers.gone.front());
  }
  EXPECT_THAT(told, ElementsAre("learner/0 rollout/1#0"));
}

TEST_F(RlJobControllerTest, SourcesAreStoppedBeforeWorkersAndSinks) {
  all_up();
  group_up(effects.take<GroupPlan>().at(0).second.fence);
  effects.sent.clear();
  job->interrupt("test", now);
  job->interrupt("test", now);
  std::vector<std::string> order;
  for (const auto& [to, stop] : effects.take<Stop>()) order.push_back(stop.actor);
  EXPECT_THAT(order, ElementsAre("env/0", "env/1", "rollout/0", "rollout/1", "learner/0", "checkpointer/0"));
}

}  // namespace
}  // namespace troupe::workers
