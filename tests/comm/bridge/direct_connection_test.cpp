// Connections of leases, by themselves and between a hub and a worker.
#include "comm/bridge/direct_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <future>

#include "tests/comm/bridge/hub_fixture.h"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;
using Clock = DirectConnection::Clock;

constexpr std::size_t kMostBytes = 1 << 16;

/// The worker's socket, connected to the listener `name`; closed where no listener has that name.
base::FileDescriptor connect_to(const std::string& name) {
  base::FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin() + 1, name.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) socket.reset();
  return socket;
}

Bytes bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

class DirectConnectionTest : public ::testing::Test {
 protected:
  DirectConnectionTest() {
    auto listener = DirectListener::open();
    EXPECT_TRUE(listener);
    other_ = connect_to(listener->name());
    auto accepted = listener->accept(::getpid());
    EXPECT_TRUE(accepted);
    here_.emplace(std::move(*accepted));
  }
  void write(const Bytes& bytes) {
    EXPECT_EQ(::send(other_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  auto receive(Clock::duration patience = kPatience) { return here_->receive(Clock::now() + patience, kMostBytes); }

  base::FileDescriptor other_;
  std::optional<DirectConnection> here_;
};

TEST_F(DirectConnectionTest, MessagesComeWholeInOrderHoweverTheirBytesCome) {
  const Bytes two = bytes_of(std::string("\3\0\0\0abc\0\0\0\0\2\0\0\0de", 17));
  for (const std::size_t cut : {two.size(), std::size_t{0}, std::size_t{2}, std::size_t{5}, std::size_t{12}}) {
    write({two.begin(), two.begin() + static_cast<std::ptrdiff_t>(cut)});
    if (cut < 7) {
      const auto early = receive(0ms);
      ASSERT_TRUE(early) << cut;
      EXPECT_FALSE(*early) << cut;
    }
    write({two.begin() + static_cast<std::ptrdiff_t>(cut), two.end()});
    for (const char* text : {"abc", "", "de"}) {
      const auto message = receive();
      ASSERT_TRUE(message && *message) << cut;
      EXPECT_EQ(**message, bytes_of(text)) << cut;
    }
  }
}

TEST_F(DirectConnectionTest, WhatIsSentHasItsSizeBeforeIt) {
  ASSERT_TRUE(here_->send(bytes_of("abc")));
  char got[16];
  ASSERT_EQ(::recv(other_.get(), got, sizeof got, 0), 7);
  EXPECT_EQ(std::memcmp(got, "\3\0\0\0abc", 7), 0);
}

TEST_F(DirectConnectionTest, AMessageThatIsTooLongIsNotTaken) {
  write(bytes_of(std::string("\1\0\1\0", 4)));
  const auto message = receive();
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().message(), "it sends a message of 65537 bytes; at most 65536 are taken");
}

TEST_F(DirectConnectionTest, AReaderIsWokenByEitherEnd) {
  auto reading = std::async(std::launch::async, [&] { return receive(); });
  here_->shut_down();
  EXPECT_EQ(reading.get().error().code(), Errc::aborted);
  char byte;
  EXPECT_EQ(::recv(other_.get(), &byte, 1, 0), 0);
  EXPECT_FALSE(here_->send(bytes_of("abc")));
}

TEST_F(DirectConnectionTest, NoWriterWaitsForAReader) {
  const Bytes much(kMostBytes);
  int sent = 0;
  while (sent < 1000 && here_->send(much)) ++sent;
  EXPECT_LT(sent, 1000);
}

TEST(DirectListenerTest, OnlyTheWorkersProcessIsTaken) {
  auto listener = DirectListener::open();
  ASSERT_TRUE(listener);
  const base::FileDescriptor stranger = connect_to(listener->name());
  ASSERT_TRUE(stranger.is_open());
  const auto accepted = listener->accept(::getppid());
  ASSERT_FALSE(accepted);
  EXPECT_EQ(accepted.error().code(), Errc::failed_precondition);
  EXPECT_THAT(accepted.error().message(), HasSubstr("has not connected"));
  char byte;
  EXPECT_EQ(::recv(stranger.get(), &byte, 1, 0), 0) << "it is told";
}

/// The test is a worker that shares memory and connects for each lease.
class DirectLeaseTest : public BridgeHubTest {
 protected:
  void SetUp() override {
    start();
    worker_.emplace(hub_->endpoint());
    worker_->hello(WireMap{{"name", "w0"}, {"pid", ::getpid()}, {"host", host_id()}, {"features", WireArray{"shm"}}});
  }
  struct Connected {
    std::unique_ptr<BridgeLease> lease;
    std::optional<DirectConnection> worker;
  };
  Connected connected() {
    Connected out{.lease = lease(*worker_), .worker = {}};
    auto asked = std::async(std::launch::async, [&] { return out.lease->share(4096, {}, kPatience); });
    const BridgeMessage question = worker_->hear("SHARE");
    const base::FileDescriptor memory = memory_of(4096, question);
    out.worker.emplace(connect_to(*find(question.body, "connect")->as<std::string>()));
    worker_->answer(question, "RESULT", {{"fd", memory.get()}, {"connected", true}});
    const auto shared = asked.get();
    EXPECT_TRUE(shared) << (shared ? "" : shared.error().message());
    return out;
  }
  static BridgeMessage hear(DirectConnection& worker) {
    auto bytes = worker.receive(Clock::now() + kPatience, kMostBytes);
    if (!bytes || !*bytes) {
      ADD_FAILURE() << "the hub asked nothing";
      return {};
    }
    return *decode_bridge_message(**bytes, kMostBytes);
  }
  static void answer(DirectConnection& worker, const BridgeMessage& question, WireMap body) {
    EXPECT_TRUE(worker.send(encode_bridge_message(
        {.type = "RESULT", .session = question.session, .request = question.request, .body = std::move(body)})));
  }
  static auto ask(BridgeLease& lease, std::chrono::milliseconds patience = kPatience) {
    return std::async(std::launch::async, [&lease, patience] { return lease.call("STEP", {{"count", 2}}, patience); });
  }

  std::optional<ScriptedWorker> worker_;
};

TEST_F(DirectLeaseTest, QuestionsAndAnswersGoByIt) {
  auto one = connected(), two = connected();
  for (const std::int64_t number : {1, 2, 3}) {
    auto first = ask(*one.lease), second = ask(*two.lease);
    const BridgeMessage asked = hear(*one.worker), besides = hear(*two.worker);
    EXPECT_EQ(asked.type, "STEP");
    EXPECT_EQ(asked.session, worker_->session());
    EXPECT_EQ(*find(asked.body, "count"), WireValue(2));
    answer(*two.worker, besides, {{"y", -number}});
    answer(*one.worker, asked, {{"y", number}});
    EXPECT_EQ(*find(*first.get(), "y"), WireValue(number));
    EXPECT_EQ(*find(*second.get(), "y"), WireValue(-number));
  }
  EXPECT_EQ(hub_->stats().late, 0);
}

TEST_F(DirectLeaseTest, AnAnswerToAnotherQuestionIsLate) {
  auto held = connected();
  auto asked = ask(*held.lease);
  const BridgeMessage question = hear(*held.worker);
  for (const auto& [session, request] : {std::pair{1, -1}, std::pair{-1, 1}}) {
    BridgeMessage other = question;
    other.session *= session;
    other.request *= request;
    answer(*held.worker, other, {{"y", 1}});
  }
  answer(*held.worker, question, {{"y", 2}});
  EXPECT_EQ(*find(*asked.get(), "y"), WireValue(2));
  EXPECT_EQ(hub_->stats().late, 2);
}

TEST_F(DirectLeaseTest, AWorkerThatClosesItOrSendsNoMessageIsGivenUp) {
  for (const bool closes : {true, false}) {
    auto held = connected();
    auto asked = ask(*held.lease);
    hear(*held.worker);
    if (closes)
      held.worker.reset();
    else
      EXPECT_TRUE(held.worker->send(bytes_of("rubbish")));
    const auto answer = asked.get();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), Errc::aborted);
    EXPECT_THAT(answer.error().message(), HasSubstr("worker w0 cannot be asked any more: "));
    EXPECT_THAT(next_gone(), HasSubstr("w0: worker w0 cannot be asked any more"));
    EXPECT_EQ(held.lease->call("STEP", {}, kPatience).error().code(), Errc::aborted);
    worker_->hear("ERR");  // its session is over
    worker_->hello(WireMap{{"name", "w0"}, {"pid", ::getpid()}, {"host", host_id()}, {"features", WireArray{"shm"}}});
  }
}

TEST_F(DirectLeaseTest, TheDeadlineOfOneLeaseEndsTheWaitOfAnother) {
  auto one = connected(), two = connected();
  auto waiting = ask(*one.lease);
  hear(*one.worker);
  EXPECT_EQ(ask(*two.lease, 1ms).get().error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(waiting.get().error().message(), HasSubstr("worker w0 gave no answer to STEP"));
}

TEST_F(DirectLeaseTest, AWorkerThatLeavesEndsTheWait) {
  auto held = connected();
  auto asked = ask(*held.lease);
  hear(*held.worker);
  worker_->say("BYE", {{"reason", "stopped"}});
  EXPECT_EQ(asked.get().error().message(), "worker w0 left: stopped");
}

TEST_F(DirectLeaseTest, AWorkerThatOnlySaysThatItHasConnectedSharesNothing) {
  const auto lease = this->lease(*worker_);
  auto asked = std::async(std::launch::async, [&] { return lease->share(4096, {}, kPatience); });
  const BridgeMessage question = worker_->hear("SHARE");
  const base::FileDescriptor memory = memory_of(4096, question);
  worker_->answer(question, "RESULT", {{"fd", memory.get()}, {"connected", true}});
  EXPECT_THAT(asked.get().error().message(), HasSubstr("has not connected"));
  auto step = ask(*lease);
  worker_->answer(worker_->hear("STEP"), "RESULT");
  EXPECT_TRUE(step.get()) << "the lease goes on with messages";
}

}  // namespace
}  // namespace troupe::comm
