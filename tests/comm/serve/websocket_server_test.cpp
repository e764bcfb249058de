// The WebSocket server alone, over loopback with our own client and raw ones.
#include "comm/serve/websocket_server.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "comm/serve/serve_client.h"
#include "tests/comm/serve/serve_bytes.h"
#include "tests/support/raw_client.h"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;

/// A server that sends back what it gets, unless told to hold it.
class WebSocketServerTest : public ::testing::Test {
 protected:
  void start(WebSocketServerOptions options = {}) {
    WebSocketCallbacks callbacks;
    callbacks.on_open = [this](ConnectionId id) { note([&] { open_.insert(id); }); };
    callbacks.on_close = [this](ConnectionId id) { note([&] { open_.erase(id), ++closed_; }); };
    callbacks.on_message = [this](ConnectionId id, std::vector<std::byte> message, bool) {
      note([&] { last_ = id, ++messages_; });
      if (!hold_) server_->send_binary(id, std::move(message));
    };
    callbacks.status_json = [] { return std::string("{}"); };
    auto server = WebSocketServer::start(options, std::move(callbacks));
    note([&] { server_ = std::move(*server); });
  }
  void TearDown() override {
    if (server_) server_->stop();
  }

  Result<std::unique_ptr<WebSocketClient>> connect(const std::string& token = "") {
    return WebSocketClient::connect("127.0.0.1", server_->port(), token, kPatience);
  }
  template <class Condition>
  bool wait_for(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
  }
  void note(const std::function<void()>& change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<ConnectionId> open_;
  ConnectionId last_ = 0;
  int messages_ = 0, closed_ = 0;
  std::atomic<bool> hold_{false};
  std::unique_ptr<WebSocketServer> server_;
};

/// Asks to speak WebSocket; the server's answer.
std::string upgrade(const RawClient& client, const std::string& headers = "") {
  EXPECT_TRUE(
      client.send("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
                  "dGhlIHNhbXBsZSBub25jZQ==\r\n"
                  "Sec-WebSocket-Version: 13\r\n" +
                  headers + "\r\n"));
  return client.read("\r\n\r\n");
}

TEST_F(WebSocketServerTest, MessagesComeBackAndAReplyIsOneFrame) {
  start();
  const auto client = connect();
  const std::string large(300'000, 'x');
  ASSERT_TRUE((*client)->send(bytes_of(large), kPatience));
  const auto reply = (*client)->receive(kPatience);
  EXPECT_EQ(text_of(reply->bytes), large);
  EXPECT_FALSE(reply->is_text);

  const RawClient bare(server_->port());
  EXPECT_NE(upgrade(bare, "Sec-WebSocket-Extensions: permessage-deflate\r\n").find("101 Switching Protocols"),
            std::string::npos);
  ASSERT_TRUE(bare.send(std::string_view("\x82\x82\x00\x00\x00\x00hi", 8)));
  EXPECT_EQ(bare.read("hi"), std::string_view("\x82\x02hi", 4));
}

TEST_F(WebSocketServerTest, PingsAreAnsweredWhileTheOwnerComputes) {
  hold_ = true;
  start();
  const RawClient bare(server_->port());
  upgrade(bare);
  ASSERT_TRUE(bare.send(std::string_view("\x82\x82\x00\x00\x00\x00hi", 8)));
  ASSERT_TRUE(wait_for([&] { return messages_ == 1; }));
  ASSERT_TRUE(bare.send(std::string_view("\x89\x84\x00\x00\x00\x00ping", 10)));
  EXPECT_EQ(bare.read("ping"), std::string_view("\x8a\x04ping", 6));
}

TEST_F(WebSocketServerTest, AnErrorIsATextFrameThenClose1011) {
  hold_ = true;
  start();
  const auto client = connect();
  ASSERT_TRUE((*client)->send(bytes_of("x"), kPatience));
  ASSERT_TRUE(wait_for([&] { return messages_ == 1; }));
  server_->send_text(last_, "invalid_argument: no");
  server_->close(last_, 1011, "invalid_argument");
  server_->send_text(last_, "never sent");
  const auto reply = (*client)->receive(kPatience);
  EXPECT_TRUE(reply->is_text);
  EXPECT_EQ(text_of(reply->bytes), "invalid_argument: no");
  const auto closed = (*client)->receive(kPatience);
  EXPECT_EQ(closed.error().message(), "the server closed with 1011 invalid_argument");
  EXPECT_TRUE(wait_for([&] { return closed_ == 1 && open_.empty(); }));
}

TEST_F(WebSocketServerTest, WithoutTheTokenNobodyIsUpgraded) {
  start({.token = "correct-horse-battery"});
  for (const std::string token : {"", "correct-horse-batterz", "correct-horse-battery2"}) {
    const auto client = connect(token);
    EXPECT_NE(client.error().message().find("401"), std::string::npos) << client.error().message();
  }
  EXPECT_TRUE(connect("correct-horse-battery"));
  const RawClient openpi(server_->port());
  EXPECT_NE(upgrade(openpi, "Authorization: Api-Key correct-horse-battery\r\n").find("101"), std::string::npos);
  EXPECT_EQ(server_->stats().unauthorized, 3U);
}

TEST_F(WebSocketServerTest, AWebPageIsRefusedWhereNoTokenIsWanted) {
  start();
  const RawClient page(server_->port());
  EXPECT_NE(upgrade(page, "Origin: http://evil.example\r\n").find("403"), std::string::npos);
}

TEST_F(WebSocketServerTest, HealthIsOpenAndStatusWantsTheToken) {
  start({.token = "correct-horse-battery"});
  const auto get = [&](const std::string& path, const std::string& token) {
    const RawClient bare(server_->port());
    EXPECT_TRUE(bare.send("GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n\r\n"));
    return bare.read();
  };
  EXPECT_TRUE(get("/healthz", "").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(get("/healthz", "").ends_with("\r\n\r\nOK\n<end>"));
  EXPECT_TRUE(get("/status", "").starts_with("HTTP/1.1 401"));
  EXPECT_TRUE(get("/status", "correct-horse-battery").ends_with("\r\n\r\n{}<end>"));
  EXPECT_TRUE(get("/", "").starts_with("HTTP/1.1 404"));
}

TEST_F(WebSocketServerTest, OneClientTooManyIsTurnedAway) {
  start({.max_connections = 1});
  const auto first = connect();
  ASSERT_TRUE(first);
  const auto second = connect();
  EXPECT_NE(second.error().message().find("503"), std::string::npos) << second.error().message();
}

TEST_F(WebSocketServerTest, AMessageOverTheLimitIsRefusedByItsHeader) {
  start({.max_message_bytes = 1000});
  const RawClient bare(server_->port());
  upgrade(bare);
  // a claim of 4 GiB, of which nothing follows
  ASSERT_TRUE(bare.send(std::string_view("\x82\xff\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00", 14)));
  const std::string reply = bare.read();
  EXPECT_EQ(reply.substr(0, 4), std::string_view("\x88\x02\x03\xf1", 4)) << "want close 1009";
  EXPECT_TRUE(reply.ends_with("<end>"));
}

TEST_F(WebSocketServerTest, UnfinishedMessagesOfAllClientsHaveOneBound) {
  start({.max_message_bytes = 1 << 20, .max_unfinished_bytes = 1'500'000});
  // 1,000,000 bytes are announced, and all but the last come
  const std::string most =
      std::string("\x82\xff\x00\x00\x00\x00\x00\x0f\x42\x40\x00\x00\x00\x00", 14) + std::string(999'999, 'x');
  const RawClient first(server_->port()), second(server_->port());
  upgrade(first);
  upgrade(second);
  ASSERT_TRUE(first.send(most));
  (void)second.send(most);  // may break off
  EXPECT_TRUE(wait_for([&] { return closed_ == 1; })) << "one of both";
  const auto client = connect();
  ASSERT_TRUE((*client)->send(bytes_of("hello"), kPatience));
  EXPECT_EQ(text_of((*client)->receive(kPatience).value().bytes), "hello");
  EXPECT_EQ(server_->stats().dropped, 1u);
}

TEST_F(WebSocketServerTest, DeadlinesEndWhatIsNeverFinished) {
  start({.handshake_timeout = 200ms, .message_timeout = 200ms, .idle_timeout = 400ms});
  const RawClient silent(server_->port()), slow(server_->port()), half(server_->port()), idle(server_->port());
  ASSERT_TRUE(slow.send("GET / HTTP/1.1\r\nHost:"));
  upgrade(half);
  upgrade(idle);
  ASSERT_TRUE(half.send(std::string_view("\x82\xfe\x10\x00\x00\x00\x00\x00half", 12)));
  EXPECT_TRUE(silent.read().ends_with("<end>"));
  EXPECT_TRUE(slow.read().ends_with("<end>"));
  EXPECT_TRUE(half.read().ends_with("<end>"));
  EXPECT_TRUE(idle.read().ends_with("<end>"));  // it never answers the server's ping
  EXPECT_TRUE(wait_for([&] { return closed_ == 2; }));
}

TEST_F(WebSocketServerTest, AClientThatStopsReadingIsDroppedAndOthersAreServed) {
  start({.max_queued_bytes = 8 << 20, .write_timeout = 300ms});
  const RawClient deaf(server_->port());
  upgrade(deaf);
  const std::string header("\x82\xff\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00", 14);  // 1 MiB
  std::string flood;
  for (int i = 0; i < 8; ++i) flood += header + std::string(1 << 20, 'x');
  // every message comes back, and is never read
  std::size_t sent = 0;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  bool dropped = false;
  while (!dropped && std::chrono::steady_clock::now() < until) {
    const ssize_t size = deaf.send_some(std::string_view(flood).substr(sent % flood.size()));
    if (size > 0) sent += static_cast<std::size_t>(size);
    const auto client = connect();
    ASSERT_TRUE((*client)->send(bytes_of("hello"), kPatience));
    EXPECT_EQ(text_of((*client)->receive(kPatience).value().bytes), "hello");
    dropped = server_->stats().dropped > 0;
  }
  EXPECT_TRUE(dropped);
}

TEST_F(WebSocketServerTest, ManySilentConnectionsDoNotKeepAClientOut) {
  start({.max_handshakes = 4});
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 20; ++i) crowd.push_back(std::make_unique<RawClient>(server_->port()));
  const auto client = connect();
  ASSERT_TRUE((*client)->send(bytes_of("hello"), kPatience));
  EXPECT_EQ(text_of((*client)->receive(kPatience).value().bytes), "hello");
}

TEST_F(WebSocketServerTest, StoppingClosesClientsWithGoingAway) {
  start();
  const auto client = connect();
  ASSERT_TRUE(wait_for([&] { return open_.size() == 1; }));
  std::thread stopper([&] { server_->stop(); });
  const auto closed = (*client)->receive(kPatience);
  stopper.join();
  EXPECT_EQ(closed.error().message(), "the server closed with 1001 the server stops");
  EXPECT_EQ(closed_, 1);
}

TEST_F(WebSocketServerTest, AnAddressInUseIsNamed) {
  start();
  EXPECT_EQ(WebSocketServer::start({.port = server_->port()}, {}).error().code(), Errc::unavailable);
  EXPECT_EQ(WebSocketServer::start({.host = "robots.example"}, {}).error().code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace troupe::comm
