#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zmq.h>

#include <atomic>
#include <filesystem>

#include "comm/control/endpoint.h"
#include "comm/control/io_loop.h"
#include "loop_fixture.h"

namespace troupe::comm {
namespace {

class IoLoopNetworkTest : public LoopTest {
 protected:
  /// A request from a dealer and the router's answer, over `endpoint`.
  void talk_over(const std::string& endpoint) {
    auto server = start("server"), client = start("client");
    auto router = server->bind_router(endpoint, at_server_.receiver());
    auto dealer = client->connect_dealer(server->bound_endpoint(*router), "node-1/decoder/0#2", at_client_.receiver());
    Envelope request = make_envelope(0x52, "cli", "controller", 42);
    request.incarnation = 77;
    client->send(*dealer, "", request, {std::byte{'?'}});
    ASSERT_TRUE(at_server_.wait_for(1));
    const auto got = at_server_.all()[0];
    EXPECT_EQ(got.peer, "node-1/decoder/0#2");
    EXPECT_EQ(got.socket, *router);
    EXPECT_EQ(got.payload, "?");
    EXPECT_EQ(got.envelope.id, request.id);
    EXPECT_EQ(got.envelope.incarnation, 77U);
    EXPECT_EQ(got.envelope.fence, 42U);
    server->send(*router, got.peer, make_reply(0x8052, got.envelope), {std::byte{'!'}});
    ASSERT_TRUE(at_client_.wait_for(1));
    const auto answer = at_client_.all()[0];
    EXPECT_EQ(answer.peer, "");
    EXPECT_EQ(answer.payload, "!");
    EXPECT_EQ(answer.envelope.re, request.id);
    EXPECT_EQ(server->stats().malformed + client->stats().malformed, 0U);
  }

  Inbox at_server_, at_client_;  // outlive every loop of a test
};

TEST_F(IoLoopNetworkTest, TwoLoopsTalkOverIpc) { talk_over(ipc()); }
TEST_F(IoLoopNetworkTest, TwoLoopsTalkOverLoopback) { talk_over("tcp://127.0.0.1:*"); }

TEST_F(IoLoopNetworkTest, AWildcardPortIsReported) {
  auto loop = start("wildcard");
  auto router = loop->bind_router("tcp://127.0.0.1:*", at_server_.receiver());
  const auto endpoint = parse_endpoint(loop->bound_endpoint(*router));
  EXPECT_EQ(endpoint->host, "127.0.0.1");
  EXPECT_GT(std::stoi(endpoint->port), 0);
  loop->close(*router);
  EXPECT_EQ(loop->bound_endpoint(*router), "");
}

TEST_F(IoLoopNetworkTest, AnswersGoToTheNamedPeerOnly) {
  auto server = start("server"), client = start("client");
  Inbox at_a, at_b;
  const auto router = *server->bind_router(ipc(), at_server_.receiver());
  const auto a = *client->connect_dealer(ipc(), "a", at_a.receiver());
  const auto b = *client->connect_dealer(ipc(), "b", at_b.receiver());
  send(*client, a, "", "from a");
  send(*client, b, "", "from b");
  ASSERT_TRUE(at_server_.wait_for(2));
  for (int i = 0; i < 10; ++i) {
    send(*server, router, "a", "to a");
    send(*server, router, "b", "to b");
  }
  ASSERT_TRUE(at_a.wait_for(10));
  ASSERT_TRUE(at_b.wait_for(10));
  for (const auto& arrival : at_a.all()) EXPECT_EQ(arrival.payload, "to a");
  for (const auto& arrival : at_b.all()) EXPECT_EQ(arrival.payload, "to b");
}

TEST_F(IoLoopNetworkTest, AClientDialsBeforeTheServerListensAndAgainAfterItRestarts) {
  auto client_owner = start("client");
  IoLoop* const client = client_owner.get();  // what callbacks use
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
  const auto dealer = *client->connect_dealer(ipc(), "early", at_client_.receiver());
  send(*client, dealer, "", "waiting");  // queued until somebody listens
  {
    auto server = start("server");
    ASSERT_TRUE(server->bind_router(ipc(), at_server_.receiver()));
    ASSERT_TRUE(at_server_.wait_for(1));
    EXPECT_EQ(at_server_.all()[0].payload, "waiting");
  }
  auto server = start("server");
  ASSERT_TRUE(server->bind_router(ipc(), at_server_.receiver()));
  // one sent into the old connection may be lost with it: callers retry with the same id, so does this
  std::function<void()> again = [&] {
    send(*client, dealer, "", "once more");
    if (at_server_.all().size() < 2) client->after(50ms, again);
  };
  client->post(again);
  ASSERT_TRUE(at_server_.wait_for(2));
  EXPECT_EQ(at_server_.all()[1].payload, "once more");
  client_owner.reset();  // before `again` goes
}

TEST_F(IoLoopNetworkTest, AFloodArrivesCompleteAndInOrder) {
  constexpr int kMessages = 20'000, kWindow = 600;
  auto server = start("server"), client_owner = start("client");
  IoLoop* const client = client_owner.get();  // what callbacks use
  std::atomic<int> sent{0};
  Signal done;
  std::vector<int> got;  // server's thread only
  SocketId dealer{};
  const auto send_next = [&] {
    const int i = sent.fetch_add(1);
    if (i < kMessages) send(*client, dealer, "", std::to_string(i));
  };
  auto router = server->bind_router(
      "tcp://127.0.0.1:*", [&](SocketId socket, const std::string& peer, Envelope, std::vector<std::byte> payload) {
        got.push_back(std::stoi(std::string(reinterpret_cast<const char*>(payload.data()), payload.size())));
        server->send(socket, peer, make_envelope(2, "server", "", 0), {});
        if (got.size() == kMessages) done.raise();
      });
  // every answer is a credit for one more
  auto connected =
      client->connect_dealer(server->bound_endpoint(*router), "flood",
                             [&](SocketId, const std::string&, Envelope, std::vector<std::byte>) { send_next(); });
  client->post([&, id = *connected] {
    dealer = id;
    for (int i = 0; i < 200; ++i) send_next();
  });
  // the first window goes out once the connection stands, so that it does not meet the 256 of the queue
  ASSERT_TRUE(eventually(*client, [&] { return client->stats().received >= 1; }));
  client->post([&] {
    for (int i = 200; i < kWindow; ++i) send_next();
  });
  ASSERT_TRUE(done.wait_for());
  for (int i = 0; i < kMessages; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(client->stats().undeliverable, 0U);
  client_owner.reset();
}

TEST_F(IoLoopNetworkTest, LargePayloadsArriveWholeAndOversizedOnesAreNotSent) {
  auto server = start("server"), client = start("client");
  constexpr std::size_t kBound = std::size_t{8} << 20;
  ASSERT_TRUE(server->bind_router(ipc(), at_server_.receiver(), {}, kBound));
  const auto dealer = *client->connect_dealer(ipc(), "big", at_client_.receiver(), {}, kBound);
  std::string large(kBound, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 >> 7);
  send(*client, dealer, "", large + "x");
  send(*client, dealer, "", large);
  ASSERT_TRUE(at_server_.wait_for(1));
  EXPECT_TRUE(at_server_.all()[0].payload == large);
  EXPECT_EQ(client->stats().undeliverable, 1U);
}

TEST_F(IoLoopNetworkTest, MessagesForNobodyAreReported) {
  auto server = start("server");
  const auto router = *server->bind_router(ipc(), at_server_.receiver());
  Signal reported;
  std::vector<std::string> peers;
  server->set_on_undeliverable([&](SocketId, const std::string& peer, const Envelope& envelope) {
    EXPECT_EQ(envelope.type, 0x14);
    peers.push_back(peer);
    reported.raise();
  });
  send(*server, router, "nobody", "hello", 0x14);
  send(*server, SocketId{4711}, "no-socket", "hello", 0x14);
  ASSERT_TRUE(reported.wait_for(2));
  EXPECT_EQ(peers, (std::vector<std::string>{"nobody", "no-socket"}));
  EXPECT_EQ(server->stats().undeliverable, 2U);
}

TEST_F(IoLoopNetworkTest, AFullQueueRefusesTheNewestAndKeepsTheRest) {
  auto client = start("client");
  Signal reported;
  client->set_on_undeliverable([&](SocketId, const std::string&, const Envelope&) { reported.raise(); });
  const auto dealer = *client->connect_dealer(ipc(), "late", at_client_.receiver());
  for (int i = 0; i < 300; ++i) send(*client, dealer, "", std::to_string(i));
  ASSERT_TRUE(reported.wait_for(300 - 256));
  auto server = start("server");
  ASSERT_TRUE(server->bind_router(ipc(), at_server_.receiver()));
  ASSERT_TRUE(at_server_.wait_for(256));
  const auto arrived = at_server_.all();
  for (int i = 0; i < 256; ++i) ASSERT_EQ(arrived[static_cast<std::size_t>(i)].payload, std::to_string(i));
  EXPECT_EQ(client->stats().undeliverable, 44U);
}

TEST_F(IoLoopNetworkTest, AQueuedMessageExpiresWithItsTtl) {
  auto client = start("client");
  Signal reported;
  client->set_on_undeliverable([&](SocketId, const std::string&, const Envelope&) { reported.raise(); });
  const auto dealer = *client->connect_dealer(ipc("nobody-listens"), "patient", at_server_.receiver());
  Envelope envelope = make_envelope(1, "tester", "", 0);
  envelope.ttl_ms = 1;
  client->send(dealer, "", envelope, {});
  EXPECT_TRUE(reported.wait_for());
}

TEST_F(IoLoopNetworkTest, AClosedSocketCallsNobody) {
  auto server = start("server"), client = start("client");
  Signal first;
  std::atomic<int> calls{0};
  const auto router =
      *server->bind_router(ipc(), [&](SocketId socket, const std::string&, Envelope, std::vector<std::byte>) {
        ++calls;
        server->close(socket);  // from its own callback, with more to read
        first.raise();
      });
  (void)router;
  const auto dealer = *client->connect_dealer(ipc(), "chatty", at_client_.receiver());
  client->post([&] {
    for (int i = 0; i < 50; ++i) send(*client, dealer, "", "again");
  });
  ASSERT_TRUE(first.wait_for());
  Signal turned;
  server->after(20ms, [&] { turned.raise(); });
  ASSERT_TRUE(turned.wait_for());
  EXPECT_EQ(calls.load(), 1);
}

/// A peer that speaks ZeroMQ but not our protocol.
class RawDealer {
 public:
  explicit RawDealer(const std::string& endpoint) : context_(zmq_ctx_new()), socket_(zmq_socket(context_, ZMQ_DEALER)) {
    const int linger = 500;
    zmq_setsockopt(socket_, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(socket_, ZMQ_ROUTING_ID, "raw", 3);
    zmq_connect(socket_, endpoint.c_str());
  }
  ~RawDealer() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  void send(const std::vector<std::string>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      ASSERT_GE(zmq_send(socket_, frames[i].data(), frames[i].size(), i + 1 < frames.size() ? ZMQ_SNDMORE : 0), 0);
    }
  }

 private:
  void* context_;
  void* socket_;
};

TEST_F(IoLoopNetworkTest, MalformedFramesAreCountedAndHarmless) {
  auto server = start("server");
  ASSERT_TRUE(server->bind_router(ipc(), at_server_.receiver()));
  const auto frame = *encode_envelope(make_envelope(3, "raw", "", 0), {});
  const std::string good(reinterpret_cast<const char*>(frame.data()), frame.size());
  RawDealer raw(ipc());
  raw.send({"alone"});
  raw.send({good, "", "one too many"});
  raw.send({good, "", "", "", "", ""});
  raw.send({"not an envelope", ""});
  raw.send({good, "another payload"});
  raw.send({std::string(2000, 'x'), ""});
  raw.send({"", ""});
  raw.send({good, ""});
  ASSERT_TRUE(at_server_.wait_for(1));
  EXPECT_EQ(at_server_.all().size(), 1U);
  EXPECT_EQ(at_server_.all()[0].envelope.type, 3);
  EXPECT_EQ(server->stats().malformed, 7U);
  EXPECT_EQ(server->stats().exceptions, 0U);
}

TEST_F(IoLoopNetworkTest, APeerThatKeepsSendingRubbishIsIgnoredAndOthersAreNot) {
  auto server = start("server"), client = start("client");
  ASSERT_TRUE(server->bind_router(ipc(), at_server_.receiver()));
  const auto frame = *encode_envelope(make_envelope(3, "raw", "", 0), {});
  RawDealer raw(ipc());
  for (int i = 0; i < 10; ++i) raw.send({"rubbish", ""});
  raw.send({std::string(reinterpret_cast<const char*>(frame.data()), frame.size()), ""});
  ASSERT_TRUE(eventually(*server, [&] { return server->stats().malformed == 11; }));
  const auto honest = *client->connect_dealer(ipc(), "honest", at_client_.receiver());
  send(*client, honest, "", "hello");
  ASSERT_TRUE(at_server_.wait_for(1));
  EXPECT_EQ(at_server_.all()[0].peer, "honest");
}

TEST_F(IoLoopNetworkTest, AnOversizedFrameCutsThePeerNotTheServer) {
  auto server = start("server"), client = start("client");
  ASSERT_TRUE(server->bind_router(ipc(), at_server_.receiver(), {}, 1000));
  const auto greedy = *client->connect_dealer(ipc(), "greedy", at_client_.receiver());
  send(*client, greedy, "", std::string(1 << 20, 'x'));
  const auto modest = *client->connect_dealer(ipc(), "modest", at_client_.receiver());
  send(*client, modest, "", "small");
  ASSERT_TRUE(at_server_.wait_for(1));
  EXPECT_EQ(at_server_.all()[0].peer, "modest");
}

TEST_F(IoLoopNetworkTest, EndsWithMessagesStillQueued) {
  auto client = start("client");
  const auto dealer = *client->connect_dealer(ipc("nobody"), "quitter", at_server_.receiver());
  for (int i = 0; i < 100; ++i) send(*client, dealer, "", "never read");
  client.reset();  // returns: linger is bounded
  SUCCEED();
}

TEST_F(IoLoopNetworkTest, LastWordsArrive) {
  auto server = start("server");
  ASSERT_TRUE(server->bind_router(ipc(), at_server_.receiver()));
  {
    auto client = start("client");
    const auto dealer = *client->connect_dealer(ipc(), "leaver", at_client_.receiver());
    send(*client, dealer, "", "hello");
    ASSERT_TRUE(at_server_.wait_for(1));
    for (int i = 0; i < 50; ++i) send(*client, dealer, "", "bye");
  }
  EXPECT_TRUE(at_server_.wait_for(51));
}

TEST_F(IoLoopNetworkTest, BadEndpointsAndIdsAreRefusedWithASentence) {
  auto loop = start("bad");
  for (const char* endpoint : {"", "http://x:1", "tcp://127.0.0.1", "tcp://127.0.0.1:99999", "tcp://:5",
                               "ipc://relative", "ipc://@abstract", "inproc://x"}) {
    auto bound = loop->bind_router(endpoint, at_server_.receiver());
    EXPECT_EQ(bound.error().code(), Errc::invalid_argument) << endpoint;
  }
  EXPECT_FALSE(loop->bind_router("ipc:///" + std::string(200, 'x'), at_server_.receiver()));
  EXPECT_FALSE(loop->connect_dealer(ipc(), "", at_server_.receiver()));
  EXPECT_FALSE(loop->connect_dealer(ipc(), "Upper", at_server_.receiver()));
  EXPECT_FALSE(loop->connect_dealer(ipc(), std::string(65, 'a'), at_server_.receiver()));
  EXPECT_FALSE(loop->connect_dealer("tcp://127.0.0.1:*", "x", at_server_.receiver()));
}

TEST_F(IoLoopNetworkTest, AnAddressInUseIsUnavailable) {
  auto loop = start("twice");
  const auto first = *loop->bind_router("tcp://127.0.0.1:*", at_server_.receiver());
  EXPECT_EQ(loop->bind_router(loop->bound_endpoint(first), at_server_.receiver()).error().code(), Errc::unavailable);
}

TEST_F(IoLoopNetworkTest, AnIpcSocketIsMadeInAPrivateFolderOrNotAtAll) {
  auto loop = start("folder");
  ASSERT_TRUE(loop->bind_router("ipc://" + folder_ + "/deep/er/ctl", at_server_.receiver()));
  struct stat info {};
  ASSERT_EQ(::stat((folder_ + "/deep/er").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  auto open = loop->bind_router(ipc("open"), at_server_.receiver());
  EXPECT_EQ(open.error().code(), Errc::failed_precondition);
  EXPECT_NE(open.error().message().find("chmod 700"), std::string::npos);
}

}  // namespace
}  // namespace troupe::comm
