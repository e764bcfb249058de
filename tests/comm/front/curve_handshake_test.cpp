// The form of a CurveZMQ handshake, before libzmq sees it.
#include "comm/front/curve_handshake.h"

#include <gtest/gtest.h>

#include "tests/comm/front/zmtp_bytes.h"

namespace troupe::comm {
namespace {

using Stage = CurveHandshake::Stage;

const char* add(CurveHandshake& handshake, const std::string& bytes, std::size_t piece = 4096) {
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const std::string part = bytes.substr(at, piece);
    if (const char* wrong = handshake.add_client(std::as_bytes(std::span(part)))) return wrong;
  }
  return nullptr;
}
std::string refused(const std::string& bytes) {
  CurveHandshake handshake;
  const char* wrong = add(handshake, bytes);
  return wrong == nullptr ? "" : wrong;
}
void answer(CurveHandshake& handshake, const std::string& bytes) {
  handshake.add_server(std::as_bytes(std::span(bytes)));
}

TEST(CurveHandshakeTest, AHandshakeIsFollowedInAnyPieces) {
  for (const std::size_t piece : {1, 7, 64, 4096}) {
    CurveHandshake handshake;
    EXPECT_EQ(add(handshake, zmtp_greeting("CURVE"), piece), nullptr);
    EXPECT_EQ(add(handshake, curve_hello(), piece), nullptr);
    EXPECT_EQ(handshake.stage(), Stage::welcome);
    answer(handshake, zmtp_greeting("CURVE") + zmtp_command("\x07WELCOME" + std::string(160, 'w')));
    EXPECT_EQ(handshake.stage(), Stage::welcome);
    EXPECT_EQ(add(handshake, curve_initiate().substr(0, 100), piece), nullptr);
    EXPECT_EQ(handshake.stage(), Stage::initiate);
    EXPECT_EQ(add(handshake, curve_initiate().substr(100), piece), nullptr);
    EXPECT_EQ(handshake.stage(), Stage::asked);
    answer(handshake, zmtp_command("\x05READY" + std::string(60, 'r')));
    EXPECT_EQ(handshake.stage(), Stage::ready);
  }
}

TEST(CurveHandshakeTest, TheServersErrorIsARefusal) {
  CurveHandshake handshake;
  answer(handshake, zmtp_greeting("CURVE") + zmtp_command("\x07WELCOME" + std::string(160, 'w')) +
                        zmtp_command("\005ERROR\003400"));
  EXPECT_EQ(handshake.stage(), Stage::refused);
}

TEST(CurveHandshakeTest, AnotherGreetingIsRefused) {
  EXPECT_EQ(refused("GET / HTTP/1.1"), "it does not speak ZMTP 3");
  EXPECT_EQ(refused(zmtp_greeting("NULL")), "it offers another mechanism than CURVE");
  EXPECT_EQ(refused(zmtp_greeting("PLAIN")), "it offers another mechanism than CURVE");
  EXPECT_EQ(refused(zmtp_greeting("CURVE2")), "it offers another mechanism than CURVE");
  std::string old = zmtp_greeting("CURVE"), server = old;
  old[10] = 2;
  server[32] = 1;
  EXPECT_EQ(refused(old), "it speaks an older ZMTP than 3");
  EXPECT_EQ(refused(server), "it wants to be the server");
}

TEST(CurveHandshakeTest, AnotherHelloIsRefused) {
  const std::string greeting = zmtp_greeting("CURVE");
  EXPECT_EQ(refused(greeting + zmtp_command("\x05HELLO" + std::string(100, 'x'))), "its HELLO has the wrong length");
  EXPECT_EQ(refused(greeting + std::string("\x06\xff\xff\xff\xff\xff\xff\xff\xff", 9)),
            "its HELLO has the wrong length");
  std::string version = curve_hello();
  version[8] = 9;  // behind two bytes of head and the name's six
  EXPECT_EQ(refused(greeting + version), "its first command is no HELLO of version 1.0");
  EXPECT_EQ(refused(greeting + zmtp_command(std::string(200, 'x'))), "its first command is no HELLO of version 1.0");
  EXPECT_EQ(refused(greeting + zmtp_frame("a message")), "it sends a message before the handshake has ended");
}

TEST(CurveHandshakeTest, AnotherInitiateIsRefused) {
  const std::string start = zmtp_greeting("CURVE") + curve_hello();
  EXPECT_EQ(refused(start + zmtp_command(std::string(256, 'x'))), "its INITIATE has a wrong length");
  EXPECT_EQ(refused(start + zmtp_command(std::string(8193, 'x'))), "its INITIATE has a wrong length");
  EXPECT_EQ(refused(start + zmtp_command(std::string(300, 'x'))), "its second command is no INITIATE");
  EXPECT_EQ(refused(start + curve_initiate() + "x"), "it sends more before the server has answered its INITIATE");
}

}  // namespace
}  // namespace troupe::comm
