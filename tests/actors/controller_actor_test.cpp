// The controller's shell, on this thread.
#include "actors/controller_actor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/actors/test_scheduler.h"
#include "tests/support/inline_background.h"
#include "tests/support/scratch_folder.h"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A controller without actors, whose outbox can be made to throw.
struct ControllerActorTest : ::testing::Test {
  void plan_checkpointer() {
    plan.actors.push_back({.name = "checkpointer/0", .role = "checkpointer", .isolation = ""});
  }
  void spawn() {
    auto opened = StateDb::open(folder / "state.db");
    ASSERT_TRUE(opened) << opened.error().message();
    db = std::move(*opened);
    auto run = RunDirectory::create(folder.path(), "test", "run");
    ASSERT_TRUE(run) << run.error().message();
    ControllerService::Setup setup;
    setup.job.config.job.name = "test";
    setup.job.config.training.steps = 4;
    setup.job.plan = plan;
    setup.job.run = *run;
    setup.job.runtime_dir = folder.path();
    setup.wall_seconds = [] { return 0.0; };
    service = std::make_unique<ControllerService>(
        std::move(setup), membership, *db, std::vector<std::unique_ptr<MetricSink>>{},
        [this](const std::string& to, const Message&) {
          if (is_outbox_broken) throw std::runtime_error("no way to " + to);
          sent.push_back(to);
        },
        output, std::make_unique<testing::InlineBackground>());
    actor = scheduler.system().spawn(
        controller_actor, service.get(),
        std::function<void(const std::string&)>([this](const std::string& failure) { ends.push_back(failure); }));
    scheduler.run();
  }
  void start() {
    spawn();
    caf::anon_send(actor, Signal::start);
    scheduler.run();
  }
  void send(const std::string& from, Message message) {
    caf::anon_send(actor, ControlMessage{from, "controller", std::move(message)});
    scheduler.run();
  }
  void TearDown() override {
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    scheduler.run();
  }

  testing::ScratchFolder folder;
  /// Nobody listens.
  struct Silence final : RunOutput {
    void line(Severity, const std::string&) override {}
    void live(const LiveLine&) override {}
    void progress(const std::string&) override {}
  } output;
  Plan plan;
  Membership membership{{.name = "local", .cpus = 1, .memory_bytes = 1, .devices = {}}, 10s};
  std::unique_ptr<StateDb> db;
  std::unique_ptr<ControllerService> service;
  bool is_outbox_broken = false;
  std::vector<std::string> sent, ends;
  testing::TestScheduler scheduler;
  MailboxActor actor;
};

TEST_F(ControllerActorTest, ActorsAreSpawnedWhenTheirAnswersCanReachIt) {
  plan_checkpointer();
  spawn();
  EXPECT_THAT(sent, IsEmpty()) << "the join queue still has its name";
  caf::anon_send(actor, Signal::start);
  scheduler.run();
  EXPECT_THAT(sent, ElementsAre("node/0#0"));
}

TEST_F(ControllerActorTest, AnInterruptBeforeTheStartSpawnsNothingAndEnds) {
  plan_checkpointer();
  spawn();
  caf::anon_send(actor, Signal::interrupt);
  caf::anon_send(actor, Signal::start);
  scheduler.run();
  EXPECT_THAT(sent, IsEmpty());
  scheduler.advance(50ms);
  EXPECT_THAT(ends, ElementsAre(""));
  EXPECT_EQ(service->exit_code(), 130);
}

TEST_F(ControllerActorTest, TheTickThatFindsTheExitCodeEndsTheJob) {
  start();
  scheduler.advance(50ms);
  EXPECT_THAT(ends, IsEmpty());
  caf::anon_send(actor, Signal::interrupt);
  scheduler.run();
  EXPECT_THAT(ends, IsEmpty()) << "the signal itself ends nothing";
  scheduler.advance(50ms);
  EXPECT_THAT(ends, ElementsAre(""));
  EXPECT_EQ(service->exit_code(), 130);
  scheduler.advance(50ms);
  EXPECT_EQ(ends.size(), 1u) << "the last tick is not armed again";
}

TEST_F(ControllerActorTest, AnExceptionInAHandlerEndsTheJobWithItsText) {
  start();
  send("cli.1", StatusQuery{});
  EXPECT_THAT(ends, IsEmpty());
  is_outbox_broken = true;
  send("cli.1", StatusQuery{});
  EXPECT_THAT(ends, ElementsAre("the controller failed while handling status_query: no way to cli.1"));
  send("cli.1", StatusQuery{});
  scheduler.advance(50ms);
  EXPECT_EQ(ends.size(), 1u);
}

TEST_F(ControllerActorTest, AnExceptionAtTheStartEndsTheJobWithItsText) {
  plan_checkpointer();
  is_outbox_broken = true;
  start();
  EXPECT_THAT(ends, ElementsAre("the controller could not start: no way to node/0#0"));
}

}  // namespace
}  // namespace troupe::actors
