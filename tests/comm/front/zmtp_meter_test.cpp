// Counting what a ZeroMQ peer sends, before libzmq keeps it.
#include "comm/front/zmtp_meter.h"

#include <gtest/gtest.h>

#include "tests/comm/front/zmtp_bytes.h"

namespace troupe::comm {
namespace {

/// What the meter says of these bytes in pieces of so many; "" for nothing.
std::string metered(const std::string& bytes, std::size_t piece, ZmtpMeter::Limits limits = {.message_bytes = 1000}) {
  ZmtpMeter meter(limits);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    if (const char* wrong = meter.add(std::as_bytes(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)))))
      return wrong;
  }
  return "";
}

TEST(ZmtpMeterTest, AMessageWithinItsLimitsPassesInAnyPieces) {
  const std::string bytes = zmtp_greeting() + zmtp_ready() + zmtp_frame("", true) + zmtp_frame(std::string(900, 'x')) +
                            zmtp_frame("", true) + zmtp_frame("second");
  for (const std::size_t piece : {1, 2, 63, 64, 65, 4096}) EXPECT_EQ(metered(bytes, piece), "") << piece;
}

TEST(ZmtpMeterTest, ItTellsWhatIsUnfinished) {
  ZmtpMeter meter({.message_bytes = 1000});
  const auto add = [&](const std::string& bytes) { return meter.add(std::as_bytes(std::span(bytes))); };
  EXPECT_EQ(add(zmtp_greeting()), nullptr);
  EXPECT_FALSE(meter.has_shaken_hands());
  EXPECT_EQ(add(zmtp_ready()), nullptr);
  EXPECT_TRUE(meter.has_shaken_hands());
  EXPECT_EQ(add(zmtp_frame("head", true)), nullptr);
  EXPECT_EQ(meter.pending_bytes(), 4u);
  const std::string last = zmtp_frame(std::string(300, 'x'));
  EXPECT_EQ(add(last.substr(0, 20)), nullptr);
  EXPECT_EQ(meter.pending_bytes(), 304u) << "as announced: libzmq allocates it now";
  EXPECT_EQ(add(last.substr(20)), nullptr);
  EXPECT_EQ(meter.pending_bytes(), 0u);
  EXPECT_EQ(meter.messages(), 1u);
}

TEST(ZmtpMeterTest, FramesOfOneMessageAreCountedTogether) {
  const std::string start = zmtp_greeting() + zmtp_ready();
  EXPECT_EQ(metered(start + zmtp_frame(std::string(600, 'x'), true) + zmtp_frame(std::string(401, 'x')), 7),
            "a message is too long");
  std::string many = start;
  for (int i = 0; i < 17; ++i) many += zmtp_frame("", true);
  EXPECT_EQ(metered(many, 7), "a message has too many frames");
  EXPECT_EQ(metered(start + zmtp_head(~std::uint64_t{0}, false), 7), "a message is too long");
}

TEST(ZmtpMeterTest, WhatIsNoZmtpIsRefused) {
  EXPECT_EQ(metered("GET / HTTP/1.1", 3), "it does not speak ZMTP 3");
  std::string old = zmtp_greeting();
  old[10] = 1;
  EXPECT_EQ(metered(old, 64), "it speaks an older ZMTP than 3");
  EXPECT_EQ(metered(zmtp_greeting() + "\x80", 64), "a frame has unknown flags");
  EXPECT_EQ(metered(zmtp_greeting() + "\x05", 64), "a frame has unknown flags") << "a command has no further frames";
  EXPECT_EQ(metered(zmtp_greeting() + std::string("\x06\0\0\0\0\0\1\0\0", 9), 64), "a command is too long");
}

}  // namespace
}  // namespace troupe::comm
