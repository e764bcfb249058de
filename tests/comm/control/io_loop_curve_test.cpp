#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "comm/control/curve_keys.h"
#include "comm/control/endpoint.h"
#include "comm/control/handshake_monitor.h"
#include "comm/control/io_loop.h"
#include "comm/control/zap.h"
#include "loop_fixture.h"

namespace troupe::comm {
namespace {

/// Whether this machine's loopback interface is named "lo" and has an address of this family.
bool lo_has(sa_family_t family) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return false;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, &::freeifaddrs);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == family && std::string("lo") == one->ifa_name)
      return true;
  return false;
}

class IoLoopCurveTest : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    server_ = *generate_keypair();
    client_ = *generate_keypair();
    stranger_ = *generate_keypair();
    loop_ = start("server");
    router_ = listen({client_.public_key});
  }

  SocketId listen(std::vector<std::string> allowed, const std::string& host = "127.0.0.1") {
    auto router = loop_->bind_router("tcp://" + host + ":*", at_server_.receiver(),
                                     CurveServer{server_.secret_key, std::move(allowed)});
    EXPECT_TRUE(router) << router.error().to_string();
    return *router;
  }
  /// A socket on `host`, behind a front, has an endpoint that starts with `wanted`, and serves who dials it.
  void expect_served_on(const std::string& host, const std::string& wanted) {
    const SocketId router = listen({client_.public_key}, host);
    const auto endpoint = loop_->bound_endpoint(router);
    EXPECT_TRUE(endpoint.starts_with(wanted)) << endpoint;
    expect_only(router, "friend", keys_of(client_));
  }
  /// Dials and says "hello".
  void dial(IoLoop& loop, SocketId router, const std::string& id, std::optional<CurveClient> keys) {
    auto dealer = loop.connect_dealer(loop_->bound_endpoint(router), id, at_client_.receiver(), std::move(keys));
    send(loop, *dealer, "", "hello from " + id);
  }
  /// The server serves those it knows, and has heard nobody else.
  void expect_only(SocketId router, const std::string& id, const CurveClient& keys) {
    auto other = start("other");
    dial(*other, router, id, keys);
    ASSERT_TRUE(at_server_.wait_for(1));
    for (const auto& arrival : at_server_.all()) EXPECT_EQ(arrival.peer, id);
  }
  CurveClient keys_of(const CurveKeyPair& pair) const { return {server_.public_key, pair.public_key, pair.secret_key}; }

  CurveKeyPair server_, client_, stranger_;
  Inbox at_server_, at_client_;
  std::unique_ptr<IoLoop> loop_;
  SocketId router_{};
};

TEST_F(IoLoopCurveTest, AListedKeyTalks) {
  auto client = start("client");
  dial(*client, router_, "friend", keys_of(client_));
  ASSERT_TRUE(at_server_.wait_for(1));
  EXPECT_EQ(at_server_.all()[0].payload, "hello from friend");
  send(*loop_, router_, "friend", "welcome");
  EXPECT_TRUE(at_client_.wait_for(1));
  EXPECT_EQ(loop_->stats().refused, 0U);  // the self-test's own refusal is not counted
}

TEST_F(IoLoopCurveTest, AnUnlistedKeyIsRefusedAndCounted) {
  auto client = start("client");
  dial(*client, router_, "stranger", keys_of(stranger_));
  ASSERT_TRUE(eventually(*client, [&] { return client->stats().refused >= 1; }));
  ASSERT_TRUE(eventually(*loop_, [&] { return loop_->stats().refused >= 1; }));
  // the server still serves those it knows, and never heard the stranger
  expect_only(router_, "friend", keys_of(client_));
}

TEST_F(IoLoopCurveTest, AClientWithoutKeysIsRefused) {
  auto client = start("client");
  dial(*client, router_, "keyless", std::nullopt);
  ASSERT_TRUE(eventually(*client, [&] { return client->stats().refused >= 1; }));
  expect_only(router_, "friend", keys_of(client_));
}

TEST_F(IoLoopCurveTest, AClientThatExpectsAnotherServerDoesNotTalk) {
  auto client = start("client");
  CurveClient keys = keys_of(client_);
  keys.server_key = stranger_.public_key;
  dial(*client, router_, "mistaken", keys);
  ASSERT_TRUE(eventually(*client, [&] { return client->stats().refused >= 1; }));
  expect_only(router_, "friend", keys_of(client_));
}

TEST_F(IoLoopCurveTest, EachSocketHasItsOwnList) {
  const SocketId second = listen({stranger_.public_key});
  auto client = start("client");
  dial(*client, second, "wrong-door", keys_of(client_));
  ASSERT_TRUE(eventually(*loop_, [&] { return loop_->stats().refused >= 1; }));
  expect_only(second, "right-door", keys_of(stranger_));
}

TEST_F(IoLoopCurveTest, AFrontListensOnAnIpv6Address) {
  if (!lo_has(AF_INET6)) GTEST_SKIP() << "this machine has no ::1";
  expect_served_on("[::1]", "tcp://[::1]:");
}

TEST_F(IoLoopCurveTest, AFrontListensOnAnInterface) {
  if (!lo_has(AF_INET)) GTEST_SKIP() << "this machine has no interface lo with an IPv4 address";
  expect_served_on("lo", "tcp://127.");
}

TEST_F(IoLoopCurveTest, CurveWorksOverIpcToo) {
  auto router = loop_->bind_router(ipc(), at_server_.receiver(), CurveServer{server_.secret_key, {client_.public_key}});
  auto client = start("client");
  dial(*client, *router, "local", keys_of(client_));
  EXPECT_TRUE(at_server_.wait_for(1));
}

TEST_F(IoLoopCurveTest, ARemovedKeyIsDeafOnItsOpenConnectionToo) {
  auto keys = std::make_shared<ClientKeys>(
      ClientKeys::Ranges{{client_.public_key, std::nullopt}, {stranger_.public_key, std::nullopt}});
  const auto router =
      *loop_->bind_router("tcp://127.0.0.1:*", at_server_.receiver(), CurveServer{server_.secret_key, {}, keys});
  auto client = start("client"), other = start("other");
  const auto dealer =
      *client->connect_dealer(loop_->bound_endpoint(router), "friend", at_client_.receiver(), keys_of(client_));
  send(*client, dealer, "", "first");
  ASSERT_TRUE(at_server_.wait_for(1));
  keys->replace({{stranger_.public_key, std::nullopt}});
  send(*client, dealer, "", "second");
  ASSERT_TRUE(eventually(*loop_, [&] { return loop_->stats().refused >= 1; }));
  dial(*client, router, "friend-again", keys_of(client_));
  ASSERT_TRUE(eventually(*loop_, [&] { return loop_->stats().refused >= 2; })) << "nor does it get in again";
  dial(*other, router, "other", keys_of(stranger_));
  ASSERT_TRUE(at_server_.wait_for(2));
  EXPECT_EQ(at_server_.all()[1].peer, "other");
}

TEST_F(IoLoopCurveTest, AKeyThatIsBoundToAddressesIsTakenFromThemAlone) {
  const auto own = AddressRange::parse("127.0.0.0/8").value(), elsewhere = AddressRange::parse("10.1.0.0/16").value();
  auto keys =
      std::make_shared<ClientKeys>(ClientKeys::Ranges{{client_.public_key, own}, {stranger_.public_key, elsewhere}});
  const CurveServer curve{server_.secret_key, {}, keys};
  const auto router = *loop_->bind_router("tcp://127.0.0.1:*", at_server_.receiver(), curve);
  auto client = start("client"), other = start("other"), local = start("local");
  dial(*other, router, "other", keys_of(stranger_));
  ASSERT_TRUE(eventually(*other, [&] { return other->stats().refused >= 1; }));
  const auto dealer =
      *client->connect_dealer(loop_->bound_endpoint(router), "near", at_client_.receiver(), keys_of(client_));
  send(*client, dealer, "", "first");
  ASSERT_TRUE(at_server_.wait_for(1));
  EXPECT_EQ(at_server_.all()[0].peer, "near") << "the other was not heard";
  // a peer of an ipc socket has no address
  ASSERT_TRUE(loop_->bind_router(ipc("bound"), at_server_.receiver(), curve));
  (void)local->connect_dealer(ipc("bound"), "local", at_client_.receiver(), keys_of(client_));
  ASSERT_TRUE(eventually(*local, [&] { return local->stats().refused >= 1; }));
  // the list is read again, and the key counts elsewhere: its open connection is cut with the next message
  const std::uint64_t refused = loop_->stats().refused;
  keys->replace({{client_.public_key, elsewhere}, {stranger_.public_key, own}});
  send(*client, dealer, "", "second");
  ASSERT_TRUE(eventually(*loop_, [&] { return loop_->stats().refused > refused; }));
  dial(*client, router, "near-again", keys_of(client_));
  ASSERT_TRUE(eventually(*loop_, [&] { return loop_->stats().refused > refused + 1; })) << "nor does it get in again";
  dial(*other, router, "other-again", keys_of(stranger_));
  ASSERT_TRUE(at_server_.wait_for(2));
  EXPECT_EQ(at_server_.all()[1].peer, "other-again");
}

TEST_F(IoLoopCurveTest, AKeyThatIsBoundToIpv6AddressesIsTakenFromThemAlone) {
  if (!lo_has(AF_INET6)) GTEST_SKIP() << "this machine has no ::1";
  const auto keys =
      std::make_shared<ClientKeys>(ClientKeys::Ranges{{client_.public_key, AddressRange::parse("::1/128").value()},
                                                      {stranger_.public_key, AddressRange::parse("fd00::/8").value()}});
  const auto router =
      *loop_->bind_router("tcp://[::1]:*", at_server_.receiver(), CurveServer{server_.secret_key, {}, keys});
  auto client = start("client");
  dial(*client, router, "stranger", keys_of(stranger_));
  ASSERT_TRUE(eventually(*client, [&] { return client->stats().refused >= 1; }));
  expect_only(router, "friend", keys_of(client_));
}

TEST_F(IoLoopCurveTest, AnIpv4PeerOfAnIpv6SocketHasItsIpv4Address) {
  if (!lo_has(AF_INET6)) GTEST_SKIP() << "this machine has no ::1";
  const auto keys = std::make_shared<ClientKeys>(
      ClientKeys::Ranges{{client_.public_key, AddressRange::parse("127.0.0.1/32").value()}});
  const auto router =
      *loop_->bind_router("tcp://[::]:*", at_server_.receiver(), CurveServer{server_.secret_key, {}, keys});
  auto client = start("client");
  const auto dealer = client->connect_dealer("tcp://127.0.0.1:" + parse_endpoint(loop_->bound_endpoint(router))->port,
                                             "mapped", at_client_.receiver(), keys_of(client_));
  send(*client, *dealer, "", "hello");
  EXPECT_TRUE(at_server_.wait_for(1));
}

TEST_F(IoLoopCurveTest, WhatAClosingClientSentPassesTheFront) {
  constexpr int kWords = 50;
  auto client = start("client");
  const auto dealer =
      *client->connect_dealer(loop_->bound_endpoint(router_), "friend", at_client_.receiver(), keys_of(client_));
  send(*client, dealer, "", "hello");
  ASSERT_TRUE(at_server_.wait_for(1));
  for (int i = 0; i < kWords; ++i) send(*client, dealer, "", "bye");
  client.reset();
  EXPECT_TRUE(at_server_.wait_for(1 + kWords));
}

TEST_F(IoLoopCurveTest, WhatABusyLoopHasNotReadWaitsAndArrives) {
  constexpr std::size_t kMessages = 60;  // of 1 MiB: more than the front lets through unread
  auto client = start("client");
  const auto dealer =
      *client->connect_dealer(loop_->bound_endpoint(router_), "friend", at_client_.receiver(), keys_of(client_));
  send(*client, dealer, "", "hello");
  ASSERT_TRUE(at_server_.wait_for(1));
  Signal free;
  loop_->post([&] { free.wait_for(); });
  for (std::size_t i = 0; i < kMessages; ++i)
    send(*client, dealer, "", std::string(std::size_t{1} << 20, static_cast<char>('a' + i % 26)));
  EXPECT_TRUE(eventually(*client, [&] { return client->stats().sent == 1 + kMessages; }));
  free.raise();
  ASSERT_TRUE(at_server_.wait_for(1 + kMessages));
  const auto arrived = at_server_.all();
  for (std::size_t i = 0; i < kMessages; ++i) EXPECT_EQ(arrived[1 + i].payload[0], static_cast<char>('a' + i % 26));
}

TEST_F(IoLoopCurveTest, AClosedSocketsPortIsFreeAgain) {
  auto client = start("client");
  dial(*client, router_, "friend", keys_of(client_));
  ASSERT_TRUE(at_server_.wait_for(1));
  const std::string endpoint = loop_->bound_endpoint(router_);
  EXPECT_EQ(loop_->bind_router(endpoint, at_server_.receiver(), CurveServer{server_.secret_key, {client_.public_key}})
                .error()
                .code(),
            Errc::unavailable);
  loop_->close(router_);
  EXPECT_TRUE(eventually(*client, [&] {
    return loop_->bind_router(endpoint, at_server_.receiver(), CurveServer{server_.secret_key, {client_.public_key}})
        .has_value();
  }));
}

TEST_F(IoLoopCurveTest, AMessageComesWithTheKeyThatItsHandshakeProved) {
  std::string key;
  Signal heard;
  const auto router = *loop_->bind_router(
      "tcp://127.0.0.1:*",
      [&](SocketId, const std::string&, const Envelope&, const std::vector<std::byte>&) {
        key = loop_->sender().key;
        heard.raise();
      },
      CurveServer{server_.secret_key, {client_.public_key}});
  auto client = start("client");
  dial(*client, router, "friend", keys_of(client_));
  ASSERT_TRUE(heard.wait_for());
  EXPECT_EQ(key, client_.public_key);
}

TEST_F(IoLoopCurveTest, AMessageOverIpcComesWithItsProcessAndUser) {
  PeerProof proof;
  Signal heard;
  ASSERT_TRUE(loop_->bind_router(ipc("proof"),
                                 [&](SocketId, const std::string&, const Envelope&, const std::vector<std::byte>&) {
                                   proof = loop_->sender();
                                   heard.raise();
                                 }));
  auto client = start("client");
  const auto dealer = *client->connect_dealer(ipc("proof"), "local", at_client_.receiver());
  send(*client, dealer, "", "hello");
  ASSERT_TRUE(heard.wait_for());
  EXPECT_EQ(proof.pid, ::getpid());
  EXPECT_EQ(proof.uid, static_cast<std::int64_t>(::geteuid()));
  EXPECT_EQ(proof.key, "");
}

TEST_F(IoLoopCurveTest, AnOpenAddressWithoutKeysIsRefused) {
  for (const char* endpoint :
       {"tcp://0.0.0.0:*", "tcp://*:*", "tcp://[::]:*", "tcp://192.0.2.1:7710", "tcp://127.example.org:1"}) {
    auto bound = loop_->bind_router(endpoint, at_server_.receiver());
    EXPECT_EQ(bound.error().code(), Errc::invalid_argument) << endpoint;
    EXPECT_NE(bound.error().message().find("CURVE"), std::string::npos) << bound.error().message();
  }
  EXPECT_FALSE(loop_->connect_dealer("tcp://192.0.2.1:7710", "x", at_client_.receiver()));
}

TEST_F(IoLoopCurveTest, AnOpenAddressWithKeysListens) {
  auto router = loop_->bind_router("tcp://0.0.0.0:*", at_server_.receiver(),
                                   CurveServer{server_.secret_key, {client_.public_key}});
  const auto endpoint = *parse_endpoint(loop_->bound_endpoint(*router));
  auto client = start("client");
  auto dealer =
      client->connect_dealer("tcp://127.0.0.1:" + endpoint.port, "near", at_client_.receiver(), keys_of(client_));
  send(*client, *dealer, "", "hello");
  EXPECT_TRUE(at_server_.wait_for(1));
}

TEST_F(IoLoopCurveTest, BadKeysAreRefusedAtOnce) {
  EXPECT_FALSE(
      loop_->bind_router("tcp://127.0.0.1:*", at_server_.receiver(), CurveServer{"short", {client_.public_key}}));
  EXPECT_FALSE(
      loop_->bind_router("tcp://127.0.0.1:*", at_server_.receiver(), CurveServer{server_.secret_key, {"short"}}));
  EXPECT_FALSE(
      loop_->connect_dealer(loop_->bound_endpoint(router_), "x", at_client_.receiver(), CurveClient{"a", "b", "c"}));
}

TEST(CurveSelfTest, ASocketThatTakesEveryKeyFailsIt) {
  // a CURVE server in a context whose ZAP handler never hears of it: no ZAP domain is set, so every key gets in
  std::atomic<std::uint64_t> refused{0};
  ZmqContext context(zmq_ctx_new());
  auto zap = *ZapHandler::bind(context.get(), refused);
  const auto keys = *generate_keypair();
  ZmqContext other(zmq_ctx_new());
  ZmqSocket open(zmq_socket(other.get(), ZMQ_ROUTER));
  set_option(open.get(), ZMQ_CURVE_SERVER, 1);
  set_option(open.get(), ZMQ_CURVE_SECRETKEY, keys.secret_key);
  ASSERT_EQ(zmq_bind(open.get(), "tcp://127.0.0.1:*"), 0);
  const auto tested = test_curve_server(context.get(), *zap, "s1", last_endpoint(open.get()), keys.public_key);
  EXPECT_EQ(tested.error().code(), Errc::failed_precondition);
  EXPECT_NE(tested.error().message().find("not refused"), std::string::npos) << tested.error().message();
}

}  // namespace
}  // namespace troupe::comm
