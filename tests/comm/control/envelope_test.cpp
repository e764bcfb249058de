#include "comm/control/envelope.h"

#include <gtest/gtest.h>

#include <set>

#include "base/crc32c.h"
#include "base/utf8.h"
#include "wire_samples.h"

namespace troupe::comm {
namespace {

Envelope sample() {
  Envelope e = make_envelope(0x40, "node-0/learner/3", "controller", (std::uint64_t{7} << 32) | 9);
  e.re = {1, 2, 3};
  e.incarnation = 0xFFFFFFFFFFFFFFFFULL;
  e.ttl_ms = 1234;
  return e;
}

Errc refusal(std::span<const std::byte> frame, std::span<const std::byte> payload) {
  const auto back = decode_envelope(frame, payload);
  return back ? Errc{} : back.error().code();
}

/// The frame of an envelope for an empty payload, with one byte string replaced by another.
std::vector<std::byte> edited(std::string_view from, std::string_view to) {
  Envelope e;
  e.type = 5;
  e.from = "abc";
  e.id = {9};
  const auto frame = *encode_envelope(e, {});
  std::string text(reinterpret_cast<const char*>(frame.data()), frame.size());
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return to_bytes(text.replace(at, from.size(), to));
}

TEST(EnvelopeTest, ComesBackAsItWasSent) {
  const Envelope e = sample();
  const auto payload = to_bytes("payload");
  const auto frame = encode_envelope(e, payload);
  const auto back = decode_envelope(*frame, payload);
  EXPECT_EQ(back->version, 0x0100);
  EXPECT_EQ(back->type, e.type);
  EXPECT_EQ(back->id, e.id);
  EXPECT_EQ(back->re, e.re);
  EXPECT_EQ(back->from, e.from);
  EXPECT_EQ(back->to, e.to);
  EXPECT_EQ(back->incarnation, e.incarnation);
  EXPECT_EQ(back->fence, e.fence);
  EXPECT_EQ(back->ttl_ms, e.ttl_ms);
}

TEST(EnvelopeTest, IdsAreFreshAndRepliesPointBack) {
  std::set<std::array<std::uint8_t, 16>> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(make_envelope(1, "a", "b", 0).id);
  EXPECT_EQ(ids.size(), 1000U);
  const Envelope request = sample(), reply = make_reply(0x8040, request);
  EXPECT_EQ(reply.re, request.id);
  EXPECT_NE(reply.id, request.id);
  EXPECT_EQ(reply.to, request.from);
  EXPECT_EQ(reply.from, request.to);
  EXPECT_EQ(reply.fence, request.fence);
}

TEST(EnvelopeTest, PayloadMustMatchLengthAndChecksum) {
  const auto payload = to_bytes("payload"), longer = to_bytes("payload."), other = to_bytes("paYload");
  const auto frame = *encode_envelope(sample(), payload);
  EXPECT_EQ(refusal(frame, longer), Errc::invalid_argument);
  EXPECT_EQ(refusal(frame, other), Errc::invalid_argument);
  EXPECT_EQ(refusal(frame, {}), Errc::invalid_argument);
}

TEST(EnvelopeTest, AFrameCutAnywhereIsRefused) {
  const auto frame = *encode_envelope(sample(), {});
  for (std::size_t size = 0; size < frame.size(); ++size)
    EXPECT_EQ(refusal(std::span(frame).first(size), {}), Errc::invalid_argument) << size;
}

TEST(EnvelopeTest, OverlongFramesAndTrailingBytesAreRefused) {
  auto frame = *encode_envelope(sample(), {});
  frame.push_back(std::byte{0xC0});
  EXPECT_EQ(refusal(frame, {}), Errc::invalid_argument);
  frame.resize(1025);
  EXPECT_EQ(refusal(frame, {}), Errc::invalid_argument);
}

TEST(EnvelopeTest, NamesAreShortAndPrintable) {
  Envelope e = sample();
  e.from = std::string(64, 'n');
  EXPECT_TRUE(encode_envelope(e, {}));
  e.from = std::string(65, 'n');
  EXPECT_FALSE(encode_envelope(e, {}));
  e.from = "two\nlines";
  EXPECT_FALSE(encode_envelope(e, {}));
  EXPECT_EQ(refusal(edited("\xA3"
                           "abc",
                           "\xA3"
                           "a\nc"),
                    {}),
            Errc::invalid_argument);
}

TEST(EnvelopeTest, ATtlOverAnHourIsRefused) {
  Envelope e = sample();
  e.ttl_ms = 3'600'001;
  EXPECT_FALSE(encode_envelope(e, {}));
  EXPECT_EQ(
      refusal(edited(std::string_view("\x07\xCD\xEA\x60", 4), std::string_view("\x07\xCE\x7F\xFF\xFF\xFF", 6)), {}),
      Errc::invalid_argument);
}

TEST(EnvelopeTest, AnotherMajorVersionNamesBoth) {
  const auto frame = edited(std::string_view("\x00\xCD\x01\x00", 4), std::string_view("\x00\xCD\x02\x03", 4));
  const auto back = decode_envelope(frame, {});
  EXPECT_NE(back.error().message().find("2.3"), std::string::npos) << back.error().message();
  EXPECT_EQ(refusal(edited(std::string_view("\x00\xCD\x01\x00", 4), std::string_view("\x00\xCD\x01\x07", 4)), {}),
            Errc{});  // a later minor is fine
}

TEST(EnvelopeTest, RequiredKeysAreRequired) {
  // a map of one pair less, its last pair (12: psum) cut off
  auto frame = *encode_envelope(Envelope{}, {});
  frame[0] = std::byte(std::to_integer<int>(frame[0]) - 1);
  for (int i = 0; i < 2; ++i) frame.pop_back();
  const auto back = decode_envelope(frame, {});
  EXPECT_NE(back.error().message().find("key 12 is missing"), std::string::npos) << back.error().message();
}

TEST(EnvelopeTest, AnIdHasSixteenBytes) {
  EXPECT_EQ(refusal(edited("\xC4\x10", "\xC4\x0F"), {}), Errc::invalid_argument);
}

TEST(EnvelopeTest, MutatedFramesNeverCrash) {
  const auto frame = *encode_envelope(sample(), {});
  std::uint64_t state = 88'172'645'463'325'252ULL;
  std::size_t refused = 0;
  for (int round = 0; round < 5000; ++round) {
    auto bytes = frame;
    for (int edit = 0; edit < 2; ++edit) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      bytes[(state >> 33) % bytes.size()] = std::byte((state >> 20) & 0xFF);
    }
    if (!decode_envelope(bytes, {})) ++refused;
  }
  EXPECT_GT(refused, 1000U);
}

TEST(Crc32cTest, MatchesPublishedValues) {
  // RFC 3720 B.4
  EXPECT_EQ(crc32c(to_bytes("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32)), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32cTest, InstructionAndTableAgreeAtEveryLength) {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(crc32c(bytes), crc32c_by_table(bytes)) << i;
    bytes.push_back(std::byte(i * 37 + 11));
  }
}

TEST(Utf8Test, TakesWellFormedTextOnly) {
  for (const char* good : {"", "plain", "\u00e9", "\u20ac", "\U0001F916", "\xEF\xBF\xBD"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8", "a\xFF"})
    EXPECT_FALSE(is_utf8(bad));
}

TEST(Utf8Test, ReplacesEachBadByte) {
  EXPECT_EQ(to_utf8("ab\xFF\xC3\xA9\xC3"), "ab?\u00e9?");
  EXPECT_TRUE(is_utf8(to_utf8("\xE2\x82")));
}

}  // namespace
}  // namespace troupe::comm
