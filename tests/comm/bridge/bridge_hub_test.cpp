// The hub with workers that say what the test tells them to.
#include "comm/bridge/bridge_hub.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "comm/bridge/message_fields.h"
#include "comm/serve/msgpack_numpy.h"
#include "tests/comm/bridge/hub_fixture.h"
#include "tests/support/scratch_folder.h"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST_F(BridgeHubTest, AQuestionIsAnsweredByTheWorkerThatHoldsTheLease) {
  start();
  ScriptedWorker worker(hub_->endpoint());
  EXPECT_EQ(worker.hello("w0").type, "WELCOME");
  auto lease = this->lease(worker);
  auto asked = std::async(std::launch::async, [&] { return lease->call("STEP", {{"x", 3}}, kPatience); });
  const BridgeMessage question = worker.hear("STEP");
  EXPECT_EQ(*find(question.body, "x"), WireValue(3));
  worker.answer(question, "RESULT", {{"y", 4}});
  const auto answer = asked.get();
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(*find(*answer, "y"), WireValue(4));
  lease.reset();
  EXPECT_EQ(worker.hear().type, "RELEASE");
  EXPECT_EQ(hub_->stats().leases, 0);
}

TEST_F(BridgeHubTest, ALeaseWaitsForTheFirstWorkerAndSaysWhyNoneComes) {
  start();
  EXPECT_THAT(hub_->lease(1, 1ms).error().message(), HasSubstr("no worker came within 0.0 s"));
  hub_->announce_outage({Errc::not_found, "there is no python3"});
  const auto none = hub_->lease(1, kPatience);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Errc::unavailable);
  EXPECT_EQ(none.error().message(), "there is no python3");
}

TEST_F(BridgeHubTest, TheWorkerWithTheFewestLeasesGetsTheNext) {
  start();
  ScriptedWorker first(hub_->endpoint()), second(hub_->endpoint());
  first.hello("w0");
  const auto a = lease(first);
  second.hello("w1");
  const auto b = lease(second);
  const auto c = lease(first);
  EXPECT_EQ(a->worker() + b->worker() + c->worker(), "w0w1w0");
}

TEST_F(BridgeHubTest, LeasesWaitForAllWorkersThatThereAreToBeUnlessOneIsOut) {
  start({.awaited = 2});
  ScriptedWorker first(hub_->endpoint()), second(hub_->endpoint());
  first.hello("w0");
  auto a = std::async(std::launch::async, [&] { return hub_->lease(1, kPatience); });
  auto b = std::async(std::launch::async, [&] { return hub_->lease(1, kPatience); });
  second.hello("w1");
  first.answer(first.hear("LEASE"), "LEASED");
  second.answer(second.hear("LEASE"), "LEASED");
  const auto held = a.get(), other = b.get();
  EXPECT_TRUE(held && other);
  second.say("BYE");
  next_gone();
  hub_->announce_outage({Errc::unavailable, "w1 does not come again"});
  lease(first);
}

TEST_F(BridgeHubTest, AWorkerOfAnotherVersionOrThatIsNotAcceptedIsToldWhy) {
  start({.accept = [](const BridgeHello& hello) -> Result<void> {
    if (hello.env == "toy") return {};
    return invalid_argument("this simulator steps toy");
  }});
  ScriptedWorker worker(hub_->endpoint());
  const auto answer = worker.hello(WireMap{{"name", "w0"}, {"env", "Ant-v5"}});
  EXPECT_EQ(answer.type, "REJECT");
  EXPECT_EQ(text(answer.body, "reason"), "this simulator steps toy");
  EXPECT_THAT(text(worker.hello(WireMap{}).body, "reason"), HasSubstr("no name"));
  ScriptedWorker old(hub_->endpoint());
  const std::string message(
      "\x85\xa1v\x92\x02\x00\xa1t\xa5HELLO\xa1s\x00\xa1q\x00\xa1"
      "b\x80",
      23);
  old.send({kBridgeMagic, message});
  EXPECT_THAT(text(old.hear("REJECT").body, "reason"), HasSubstr("its version is 2"));
}

TEST_F(BridgeHubTest, AnAnswerAfterTheDeadlineIsDroppedAndTheWorkerGivenUp) {
  start();
  ScriptedWorker worker(hub_->endpoint());
  worker.hello("w0");
  const auto held = lease(worker), other = lease(worker);
  const auto late = held->call("STEP", {}, 1ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(late.error().message(), HasSubstr("worker w0 gave no answer to STEP in 0.0 s"));
  EXPECT_THAT(next_gone(), HasSubstr("w0: worker w0 gave no answer"));
  EXPECT_EQ(other->call("STEP", {}, kPatience).error().code(), Errc::aborted);
  worker.answer(worker.hear("STEP"), "RESULT", {{"y", 1}});
  // its session is over, which it is told, and comes again
  EXPECT_EQ(*find(worker.hear("ERR").body, "fatal"), WireValue(true));
  EXPECT_EQ(worker.hello("w0").type, "ERR");  // the answer to its late RESULT
  EXPECT_EQ(worker.hear().type, "WELCOME");
  EXPECT_EQ(hub_->stats().late, 1);
}

TEST_F(BridgeHubTest, AnErrorOfAWorkerIsTheQuestionsAloneUnlessItIsFatal) {
  start();
  ScriptedWorker worker(hub_->endpoint());
  worker.hello("w0");
  const auto lease = this->lease(worker);
  for (const bool fatal : {false, true}) {
    auto asked = std::async(std::launch::async, [&] { return lease->call("STEP", {}, kPatience); });
    worker.answer(worker.hear("STEP"), "ERR", {{"text", "boom"}, {"fatal", fatal}});
    EXPECT_EQ(asked.get().error().message(), "worker w0: boom");
  }
  EXPECT_EQ(lease->call("STEP", {}, kPatience).error().code(), Errc::aborted);
}

TEST_F(BridgeHubTest, ASecondWorkerOfANameReplacesTheFirst) {
  start();
  ScriptedWorker first(hub_->endpoint()), second(hub_->endpoint());
  first.hello("w0");
  const auto lost = lease(first);
  EXPECT_EQ(second.hello("w0").type, "WELCOME");
  EXPECT_THAT(lost->call("STEP", {}, kPatience).error().message(), HasSubstr("another worker came as w0"));
  EXPECT_EQ(lease(second)->worker(), "w0");
  EXPECT_EQ(hub_->stats().workers, 1);
}

TEST_F(BridgeHubTest, AnAnswerInAnotherWorkersNameIsNoAnswer) {
  start();
  ScriptedWorker honest(hub_->endpoint()), liar(hub_->endpoint());
  honest.hello("w0");
  const auto lease = this->lease(honest);
  liar.hello("w1");
  auto asked = std::async(std::launch::async, [&] { return lease->call("STEP", {}, kPatience); });
  const BridgeMessage question = honest.hear("STEP");
  liar.answer(question, "RESULT", {{"y", 1}});
  EXPECT_EQ(liar.hear("ERR").type, "ERR");
  honest.answer(question, "RESULT", {{"y", 2}});
  EXPECT_EQ(*find(*asked.get(), "y"), WireValue(2));
}

TEST_F(BridgeHubTest, AProcessThatEndsInAStepIsKnownAtOnce) {
  start({.why_ended = [](const std::string& name) { return name + " was tired"; }});
  const std::string endpoint = hub_->endpoint();
  pid_t child = 0;
  char program[] = "sleep", seconds[] = "600";
  char* const words[] = {program, seconds, nullptr};
  ASSERT_EQ(::posix_spawnp(&child, program, nullptr, nullptr, words, environ), 0);
  ScriptedWorker worker(endpoint);
  worker.hello(WireMap{{"name", "w0"}, {"pid", child}, {"host", host_id()}});
  const auto lease = this->lease(worker);
  auto asked = std::async(std::launch::async, [&] { return lease->call("STEP", {}, kPatience); });
  worker.hear("STEP");
  ::kill(child, SIGKILL);
  EXPECT_THAT(asked.get().error().message(), HasSubstr("of worker w0 has ended: w0 was tired"));
  int status = 0;
  ::waitpid(child, &status, 0);
}

TEST_F(BridgeHubTest, AWorkerThatCannotBeWatchedLivesByItsBeatsAndUntilTheDeadlineOfAQuestion) {
  start({.liveness = 2s});
  ScriptedWorker asked(hub_->endpoint()), beating(hub_->endpoint()), silent(hub_->endpoint());
  asked.hello("asked");
  const auto lease = this->lease(asked);
  auto answer = std::async(std::launch::async, [&] { return lease->call("STEP", {}, kPatience); });
  const BridgeMessage question = asked.hear("STEP");
  beating.hello("beating");
  silent.hello("silent");
  const auto is_anyone_gone = [this] {
    const std::lock_guard lock(mutex_);
    return !gone_.empty();
  };
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!is_anyone_gone() && std::chrono::steady_clock::now() < end) {
    beating.say("PING", {{"progress", 1}});
    beating.hear("PONG");
  }
  EXPECT_THAT(next_gone(), HasSubstr("worker silent has sent no beat for"));
  EXPECT_EQ(hub_->stats().workers, 2);
  asked.answer(question, "RESULT");
  EXPECT_TRUE(answer.get());
}

TEST_F(BridgeHubTest, APatienceBeginsWhenTheWorkerHasMadeWhatItWasAskedForBefore) {
  start();
  ScriptedWorker worker(hub_->endpoint());
  worker.hello("w0");
  const auto first = lease(worker), second = lease(worker);
  auto making = std::async(std::launch::async, [&] { return first->call("RESET", {}, 1ms, kPatience); });
  const BridgeMessage reset = worker.hear("RESET");
  for (const bool is_last : {false, true}) {
    auto behind = std::async(std::launch::async, [&] { return second->call("STEP", {}, 1ms); });
    const BridgeMessage step = worker.hear("STEP");
    for (int i = 0; i < 100; ++i) {  // longer than the step may take by itself
      worker.say("PING");
      worker.hear("PONG");
    }
    EXPECT_NE(behind.wait_for(0s), std::future_status::ready);
    worker.answer(is_last ? reset : step, "RESULT");
    EXPECT_EQ(behind.get().has_value(), !is_last);
  }
  EXPECT_TRUE(making.get());
}

TEST_F(BridgeHubTest, MemoryOfAWorkerIsMappedWhenItIsSealedAndHoldsTheHubsNumber) {
  start();
  ScriptedWorker worker(hub_->endpoint());
  worker.hello(WireMap{{"name", "w0"}, {"pid", ::getpid()}, {"host", host_id()}, {"features", WireArray{"shm"}}});
  const auto lease = this->lease(worker);
  const auto share = [&](const std::function<base::FileDescriptor(const BridgeMessage&)>& make) {
    auto asked = std::async(std::launch::async, [&] { return lease->share(4096, {}, kPatience); });
    const BridgeMessage question = worker.hear("SHARE");
    EXPECT_EQ(*find(question.body, "bytes"), WireValue(4096));
    const base::FileDescriptor file = make(question);
    worker.answer(question, "RESULT", {{"fd", file.get()}});
    return asked.get();
  };
  const auto memory = share([](const BridgeMessage& question) { return memory_of(4096, question); });
  ASSERT_TRUE(memory) << memory.error().message();
  EXPECT_EQ(memory->bytes().size(), 4096u);
  const auto why = [&](const auto& make) { return share(make).error().message(); };
  EXPECT_THAT(why([](const BridgeMessage& question) { return memory_of(4096, question, F_SEAL_GROW); }),
              HasSubstr("not a sealed memfd"));
  EXPECT_THAT(why([](const BridgeMessage& question) { return memory_of(8192, question); }),
              HasSubstr("holds 8192 bytes"));
  EXPECT_THAT(why([](BridgeMessage question) {
                question.body = {{"nonce", 1}};
                return memory_of(4096, question);
              }),
              HasSubstr("memory that is not its own"));
  EXPECT_THAT(why([](const BridgeMessage&) { return base::FileDescriptor(); }), HasSubstr("cannot be opened"));
  auto asked = std::async(std::launch::async, [&] { return lease->call("STEP", {}, kPatience); });
  worker.answer(worker.hear("STEP"), "RESULT");
  EXPECT_TRUE(asked.get()) << "the lease goes on with messages";
}

TEST_F(BridgeHubTest, NoMemoryIsAskedOfAWorkerElsewhereOrThatCannot) {
  start();
  for (const WireMap& rest :
       {WireMap{{"host", host_id()}}, WireMap{{"host", "moon/1"}, {"features", WireArray{"shm"}}}}) {
    ScriptedWorker worker(hub_->endpoint());
    WireMap hello = rest;
    hello.insert(hello.end(), {{"name", "w0"}, {"pid", ::getpid()}});
    worker.hello(std::move(hello));
    EXPECT_EQ(lease(worker)->share(4096, {}, kPatience).error().code(), Errc::failed_precondition);
  }
}

TEST_F(BridgeHubTest, CallsThatWaitForAWorkerOrForItsEnvironmentsAreCounted) {
  start();
  auto asked = std::async(std::launch::async, [&] { return hub_->lease(1, kPatience); });
  const auto is_making = [&] { return hub_->stats().making > 0; };
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!is_making() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(is_making()) << "for a worker";
  ScriptedWorker worker(hub_->endpoint());
  worker.hello("w0");
  const BridgeMessage question = worker.hear("LEASE");
  EXPECT_TRUE(is_making()) << "for its environments";
  worker.answer(question, "LEASED");
  const auto lease = std::move(*asked.get());
  EXPECT_FALSE(is_making());
  for (const auto making : {0ms, 1000ms}) {
    auto reset = std::async(std::launch::async, [&] { return lease->call("RESET", {}, kPatience, making); });
    const BridgeMessage open = worker.hear("RESET");
    EXPECT_EQ(is_making(), making > 0ms);
    worker.answer(open, "RESULT");
    EXPECT_TRUE(reset.get());
  }
}

TEST_F(BridgeHubTest, AFarewellGivesLeasesBackAndTheHubsEndIsTold) {
  start();
  ScriptedWorker first(hub_->endpoint()), second(hub_->endpoint());
  first.hello("w0");
  {
    const auto lease = this->lease(first);
    first.say("BYE", {{"reason", "tired"}});
    EXPECT_EQ(next_gone(), "w0: worker w0 left: tired");
    EXPECT_EQ(lease->call("STEP", {}, kPatience).error().code(), Errc::aborted);
  }
  second.hello("w1");
  auto ended = std::async(std::launch::async, [&] { hub_.reset(); });
  second.hear("DRAIN");
  second.say("BYE", {{"reason", "drained"}});
  ended.get();
}

TEST_F(BridgeHubTest, GarbageIsCountedAndHoldsUpNobody) {
  start();
  ScriptedWorker worker(hub_->endpoint()), stranger(hub_->endpoint());
  worker.hello("w0");
  const auto lease = this->lease(worker);
  const std::vector<std::vector<std::string>> garbage{{""},
                                                      {"TRB1"},
                                                      {"TRB2", "x"},
                                                      {"TRB1", "x"},
                                                      {"TRB1", ""},
                                                      {"TRB1", "\x80", "more"},
                                                      std::vector<std::string>(50, "x")};
  for (const auto& frames : garbage) stranger.send(frames);
  stranger.say(BridgeMessage{.type = "STEP", .session = worker.session()});
  stranger.say(BridgeMessage{.type = "NONSENSE", .session = 99});
  worker.say("NONSENSE");
  EXPECT_THAT(text(worker.hear("ERR").body, "text"), HasSubstr("no message 'NONSENSE'"));
  auto asked = std::async(std::launch::async, [&] { return lease->call("STEP", {}, kPatience); });
  worker.answer(worker.hear("STEP"), "RESULT");
  EXPECT_TRUE(asked.get());
  EXPECT_EQ(stranger.hello("w1").type, "REJECT");  // the first answer to what could not be read
}

TEST_F(BridgeHubTest, MessagesThatAreNearlyRightEndNeitherHubNorOtherWorkers) {
  start({.accept = [](const BridgeHello&) -> Result<void> { return invalid_argument("no more of them"); }});
  const std::vector<BridgeMessage> good{
      {.type = "HELLO", .body = {{"name", "w"}, {"pid", 7}, {"host", host_id()}, {"features", WireArray{"shm", 3}}}},
      {.type = "RESULT",
       .session = 1,
       .request = 1,
       .body = {{"obs", NdArray{.dtype = "<f4", .shape = {1}, .data = WireBytes(4)}}}},
      {.type = "ERR", .session = 1, .request = 1, .body = {{"text", "x"}, {"fatal", true}}},
      {.type = "PING", .session = 1, .body = {{"progress", 1}}}};
  std::mt19937 draw(7);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(draw); };
  ScriptedWorker stranger(hub_->endpoint());
  for (int i = 0; i < 3000; ++i) {
    const std::vector<std::byte> bytes = encode_bridge_message(good[below(good.size())]);
    std::string frame(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (std::size_t change = 1 + below(3); change > 0; --change) {
      const std::size_t at = below(frame.size());
      if (below(4) == 0)
        frame.resize(at + 1);
      else
        frame[at] = static_cast<char>(below(256));
    }
    stranger.send({kBridgeMagic, frame});
    if (i % 100 != 99) continue;
    // the hub's answers are read, so that its queue to this worker does not fill
    stranger.say(BridgeMessage{.type = "HELLO", .body = {{"name", "last"}}});
    while (text(stranger.hear("REJECT").body, "reason") != "no more of them") {
    }
  }
  EXPECT_GT(hub_->stats().malformed, 0);
  EXPECT_EQ(hub_->stats().workers, 0);
}

TEST_F(BridgeHubTest, AWorkerOfALaterMinorVersionIsServed) {
  start();
  ScriptedWorker worker(hub_->endpoint());
  const WireMap hello{{"v", WireArray{1, 1}},
                      {"t", "HELLO"},
                      {"s", 0},
                      {"q", 0},
                      {"b", WireMap{{"name", "w0"}, {"colour", "blue"}}},
                      {"new", 1}};
  const auto bytes = encode_wire_tree(hello, ArrayForm::openpi);
  worker.send({kBridgeMagic, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
  EXPECT_EQ(worker.hear().type, "WELCOME");
  EXPECT_EQ(lease(worker)->worker(), "w0");
}

TEST_F(BridgeHubTest, WorkersThatJoinAndLeaveShareLeasesOnceEach) {
  start();
  std::vector<std::unique_ptr<ScriptedWorker>> workers;
  std::vector<std::unique_ptr<BridgeLease>> leases;
  std::set<std::int64_t> numbers;
  for (int round = 0; round < 30; ++round) {
    auto worker = std::make_unique<ScriptedWorker>(hub_->endpoint());
    worker->hello("w" + std::to_string(round));
    auto asked = std::async(std::launch::async, [&] { return hub_->lease(1, kPatience); });
    const BridgeMessage question = worker->hear("LEASE");
    EXPECT_TRUE(numbers.insert(*find(question.body, "lease")->as<std::int64_t>()).second);
    worker->answer(question, "LEASED");
    leases.push_back(std::move(*asked.get()));
    workers.push_back(std::move(worker));
    if (workers.size() < 3) continue;
    workers.front()->say("BYE");
    next_gone();
    EXPECT_FALSE(leases.front()->call("STEP", {}, kPatience));
    leases.erase(leases.begin());
    workers.erase(workers.begin());
  }
  EXPECT_EQ(hub_->stats().workers, 2);
  EXPECT_EQ(hub_->stats().leases, 2);
}

TEST(BridgeHubBindTest, OnlyThisMachineAndOneHubAnAddress) {
  EXPECT_THAT(BridgeHub::start({.bind = "tcp://0.0.0.0:5757"}).error().message(),
              HasSubstr("wanted ipc://PATH or tcp://127.0.0.1:PORT"));
  const auto first = BridgeHub::start({.bind = "tcp://127.0.0.1:*"});
  ASSERT_TRUE(first) << first.error().message();
  const auto second = BridgeHub::start({.bind = (*first)->endpoint()});
  EXPECT_THAT(second.error().message(), HasSubstr("each simulator wants an address of its own"));
  const testing::ScratchFolder folder("/tmp");
  const std::string path = "ipc://" + (folder / "sim.sock");
  auto holder = BridgeHub::start({.bind = path});
  ASSERT_TRUE(holder) << holder.error().message();
  EXPECT_THAT(BridgeHub::start({.bind = path}).error().message(), HasSubstr("is another simulator's"));
  ScriptedWorker worker(path);
  EXPECT_EQ(worker.hello("w0").type, "WELCOME");  // the first has not lost it
  holder->reset();
  EXPECT_TRUE(BridgeHub::start({.bind = path}));
}

}  // namespace
}  // namespace troupe::comm
