// The ZeroMQ server with REQ clients and with sockets that misbehave.
#include "comm/serve/rep_server.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "comm/control/zmq_handles.h"
#include "comm/serve/serve_client.h"
#include "tests/comm/front/zmtp_bytes.h"
#include "tests/comm/serve/serve_bytes.h"
#include "tests/support/raw_client.h"

namespace troupe::comm {
namespace {

/// Answers in upper case, but keeps "hold" until `release`.
class RepServerTest : public ::testing::Test {
 protected:
  void start(RepServerOptions options = {}) {
    auto server = RepServer::start(options, [this](const RepPeer& peer, std::span<const std::byte> message) {
      const std::lock_guard lock(mutex_);
      if (text_of(message) == "hold") {
        held_.push_back(peer);
        changed_.notify_all();
      } else {
        server_->reply(peer, bytes_of("re:" + text_of(message)));
      }
    });
    const std::lock_guard lock(mutex_);
    server_ = std::move(*server);
  }
  void TearDown() override {
    if (server_) server_->stop();
  }
  /// A socket of another client, with these options.
  ZmqSocket connect(const ZmqContext& context, int type, const std::map<int, int>& options) const {
    ZmqSocket socket(zmq_socket(context.get(), type));
    set_option(socket.get(), ZMQ_LINGER, 0);
    set_option(socket.get(), ZMQ_RCVTIMEO, static_cast<int>(kPatience.count()));
    for (const auto& [option, value] : options) set_option(socket.get(), option, value);
    EXPECT_EQ(zmq_connect(socket.get(), ("tcp://127.0.0.1:" + std::to_string(server_->port())).c_str()), 0);
    return socket;
  }
  std::string ask(const std::string& text) {
    const auto reply = ask_rep_server("127.0.0.1", server_->port(), bytes_of(text), kPatience);
    return reply ? text_of(*reply) : reply.error().message();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RepPeer> held_;
  std::unique_ptr<RepServer> server_;
};

TEST_F(RepServerTest, AHeldRequestHoldsUpNobodyElse) {
  start();
  std::string late;
  std::thread slow([&] { late = ask("hold"); });
  {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, kPatience, [&] { return held_.size() == 1; }));
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask("a"), "re:a");
  server_->reply(held_.front(), bytes_of("at last"));
  slow.join();
  EXPECT_EQ(late, "at last");
}

TEST_F(RepServerTest, CorrelatedRequestsGetTheirRouteBack) {
  start();
  const ZmqContext context(zmq_ctx_new());
  const ZmqSocket socket = connect(context, ZMQ_REQ, {{ZMQ_REQ_CORRELATE, 1}, {ZMQ_REQ_RELAXED, 1}});
  ASSERT_GE(zmq_send(socket.get(), "x", 1, 0), 0);
  char reply[16] = {};
  ASSERT_EQ(zmq_recv(socket.get(), reply, sizeof reply, 0), 4);
  EXPECT_STREQ(reply, "re:x");
}

TEST_F(RepServerTest, AMessageOverTheLimitDisconnectsItsSenderOnly) {
  start({.max_message_bytes = 1000});
  const ZmqContext context(zmq_ctx_new());
  const ZmqSocket large = connect(context, ZMQ_REQ, {{ZMQ_RCVTIMEO, 300}});
  const std::string text(2000, 'x');
  ASSERT_GE(zmq_send(large.get(), text.data(), text.size(), 0), 0);
  EXPECT_EQ(ask("small"), "re:small");
  char reply[16] = {};
  EXPECT_EQ(zmq_recv(large.get(), reply, sizeof reply, 0), -1);
  EXPECT_EQ(server_->stats().requests, 1U);
}

TEST_F(RepServerTest, FramesThatNoReqSendsAreCountedAndDropped) {
  start();
  const ZmqContext context(zmq_ctx_new());
  const ZmqSocket dealer = connect(context, ZMQ_DEALER, {});
  ASSERT_GE(zmq_send(dealer.get(), "no delimiter", 12, 0), 0);
  for (const std::string part : {"", "two"})
    ASSERT_GE(zmq_send(dealer.get(), part.data(), part.size(), ZMQ_SNDMORE), 0);
  ASSERT_GE(zmq_send(dealer.get(), "parts", 5, 0), 0);
  ASSERT_GE(zmq_send(dealer.get(), "", 0, ZMQ_SNDMORE), 0);
  ASSERT_GE(zmq_send(dealer.get(), "good", 4, 0), 0);
  char reply[16] = {};
  ASSERT_EQ(zmq_recv(dealer.get(), reply, sizeof reply, 0), 0);
  ASSERT_EQ(zmq_recv(dealer.get(), reply, sizeof reply, 0), 7);
  EXPECT_STREQ(reply, "re:good");
  EXPECT_EQ(server_->stats().malformed, 2U);
}

TEST_F(RepServerTest, AFloodWithoutReadingHarmsNobodyElse) {
  start();
  const ZmqContext context(zmq_ctx_new());
  const ZmqSocket flood = connect(context, ZMQ_DEALER, {{ZMQ_RCVHWM, 1}, {ZMQ_SNDTIMEO, 0}});
  const std::string text(100'000, 'x');
  for (int i = 0; i < 300; ++i) {
    zmq_send(flood.get(), "", 0, ZMQ_SNDMORE);
    zmq_send(flood.get(), text.data(), text.size(), 0);
    if (i % 30 != 0) continue;
    EXPECT_EQ(ask("a"), "re:a");
  }
}

TEST_F(RepServerTest, AnAddressInUseIsNamed) {
  start();
  EXPECT_EQ(RepServer::start({.port = server_->port()}, {}).error().code(), Errc::unavailable);
}

/// As a client does: libzmq ends a peer that sends messages before both sides have greeted.
void shake_hands(const RawClient& client) {
  EXPECT_TRUE(client.send(zmtp_greeting()));
  client.receive(64);
  EXPECT_TRUE(client.send(zmtp_ready()));
  const std::string head = client.receive(2);
  client.receive(static_cast<unsigned char>(head.at(1)));
}

TEST_F(RepServerTest, FramesWithoutEndAreCutBeforeTheyAreKept) {
  RepServerOptions options;
  options.max_message_bytes = std::size_t{1} << 20;
  start(options);
  const RawClient client(server_->port());
  shake_hands(client);
  const std::string frame = zmtp_frame(std::string(100'000, 'x'), true);
  int frames = 0;
  while (frames < 1000 && client.send(frame)) ++frames;
  EXPECT_LT(frames, 1000) << "100 MB of one message were taken";
  EXPECT_TRUE(client.is_ended_by_server());
  EXPECT_EQ(ask("a"), "re:a");
}

TEST_F(RepServerTest, UnfinishedMessagesOfAllPeersHaveOneBound) {
  RepServerOptions options;
  options.max_message_bytes = std::size_t{1} << 20;
  options.max_unfinished_bytes = std::size_t{2} << 20;
  start(options);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(server_->port()));
    // all but the last byte
    shake_hands(*clients.back());
    ASSERT_TRUE(clients.back()->send(zmtp_head(900'000, false) + "x"));
    if (i < 2) {
      EXPECT_EQ(ask("a"), "re:a") << "what came before has been counted";
    }
  }
  EXPECT_TRUE(clients[2]->is_ended_by_server());
  EXPECT_EQ(ask("a"), "re:a");
}

TEST_F(RepServerTest, IdleConnectionsMakeRoomForAnHonestOne) {
  RepServerOptions options;
  options.max_connections = 4;
  start(options);
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 40; ++i) idle.push_back(std::make_unique<RawClient>(server_->port()));
  EXPECT_EQ(ask("a"), "re:a");
  EXPECT_TRUE(idle.front()->is_ended_by_server());
}

TEST_F(RepServerTest, WhatIsNoZmtpIsCutAtOnce) {
  start();
  const RawClient browser(server_->port());
  ASSERT_TRUE(browser.send("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(browser.is_ended_by_server());
  EXPECT_EQ(ask("a"), "re:a");
}

}  // namespace
}  // namespace troupe::comm
