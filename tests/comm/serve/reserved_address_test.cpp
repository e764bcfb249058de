#include "comm/serve/reserved_address.h"

#include <gmock/gmock.h>

#include "comm/serve/rep_server.h"
#include "comm/serve/websocket_server.h"

namespace troupe::comm {
namespace {

using ::testing::HasSubstr;

WebSocketServerOptions on(std::uint16_t port) {
  WebSocketServerOptions options;
  options.host = "127.0.0.1";
  options.port = port;
  return options;
}

TEST(ReservedAddressTest, APortThatIsListenedOnIsRefusedAtOnce) {
  const auto server = WebSocketServer::start(on(0), {});
  ASSERT_TRUE(server) << server.error().message();
  const auto second = ReservedAddress::take("127.0.0.1", (*server)->port());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::unavailable);
  EXPECT_THAT(second.error().message(), HasSubstr("Address already in use; end what listens there, or give --bind"));
}

TEST(ReservedAddressTest, BothServersListenOnAnAddressThatIsReserved) {
  const auto reserved = ReservedAddress::take("localhost", 0);
  ASSERT_TRUE(reserved) << reserved.error().message();
  ASSERT_NE(reserved->port(), 0);
  {
    const auto server = WebSocketServer::start(on(reserved->port()), {});
    ASSERT_TRUE(server) << server.error().message();
  }
  RepServerOptions groot;
  groot.host = "127.0.0.1";
  groot.port = reserved->port();
  const auto server = RepServer::start(groot, [](const RepPeer&, std::span<const std::byte>) {});
  EXPECT_TRUE(server) << server.error().message();
}

TEST(ReservedAddressTest, WhatIsNoAddressIsNamed) {
  const auto named = ReservedAddress::take("robot.example", 0);
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code(), Errc::invalid_argument);
  EXPECT_THAT(named.error().message(), HasSubstr("'robot.example' is no address to bind"));
  for (const char* host : {"0.0.0.0", "*", "::1", "::"}) EXPECT_TRUE(ReservedAddress::take(host, 0)) << host;
}

}  // namespace
}  // namespace troupe::comm
