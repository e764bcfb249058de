#include "comm/channel/channel_messages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "comm/channel/channel_address.h"

namespace troupe::comm {
namespace {

std::vector<std::byte> raw(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(ChannelMessagesTest, ACreditKeepsItsExtremes) {
  const Credit credit{.slot = std::numeric_limits<std::uint32_t>::max(),
                      .tag = std::numeric_limits<std::uint64_t>::max(),
                      .fence = std::numeric_limits<std::uint64_t>::max(),
                      .request_bytes = std::numeric_limits<std::uint32_t>::max()};
  const auto data = raw({7, 8});
  const auto payload = encode(CreditMessage{credit, 77, data});
  const auto decoded = decode_credit(payload);
  EXPECT_EQ(decoded->credit.slot, credit.slot);
  EXPECT_EQ(decoded->credit.tag, credit.tag);
  EXPECT_EQ(decoded->credit.fence, credit.fence);
  EXPECT_EQ(decoded->credit.request_bytes, credit.request_bytes);
  EXPECT_EQ(decoded->serial, 77U);
  EXPECT_EQ(std::vector<std::byte>(decoded->data.begin(), decoded->data.end()), data);
}

TEST(ChannelMessagesTest, ACreditIsTheseBytes) {
  const auto bytes = encode(CreditMessage{{.slot = 3, .tag = 5, .fence = 1}, 9});
  // The writer gives integers their full width.
  ASSERT_FALSE(bytes.empty());
  EXPECT_EQ(bytes[0], std::byte{static_cast<unsigned char>(bytes.size() - 4)});
  EXPECT_EQ(bytes[4], std::byte{0x85});
  const auto compact = raw({11, 0, 0, 0, 0x85, 1, 3, 4, 1, 5, 9, 6, 2, 8, 5, 40, 41});
  const auto decoded = decode_credit(compact);
  EXPECT_EQ(decoded->credit.slot, 3U);
  EXPECT_EQ(decoded->credit.tag, 5U);
  EXPECT_EQ(decoded->serial, 9U);
  EXPECT_EQ(decoded->credit.request_bytes, 2U);
  EXPECT_EQ(decoded->data.size(), 2U);
}

TEST(ChannelMessagesTest, AnItemKeepsItsFieldsAndItsBytes) {
  const Item item{.credit = {.slot = 1, .tag = 12, .fence = 3}, .bytes = 4, .xxh3 = 99, .error = "because"};
  const auto data = raw({1, 2, 3, 4});
  const auto payload = encode(ItemMessage{item, data});
  const auto decoded = decode_item(payload);
  EXPECT_EQ(decoded->item.credit.tag, 12U);
  EXPECT_EQ(decoded->item.bytes, 4U);
  EXPECT_EQ(decoded->item.xxh3, 99U);
  EXPECT_EQ(decoded->item.error, "because");
  EXPECT_EQ(std::vector<std::byte>(decoded->data.begin(), decoded->data.end()), data);
}

TEST(ChannelMessagesTest, TheOtherMessagesRoundTrip) {
  EXPECT_EQ(decode_hello(encode(Hello{"decoder/0#3", 4}))->producer, "decoder/0#3");
  EXPECT_EQ(decode_hello(encode(Hello{"decoder/0#3", 4}))->capacity, 4U);
  EXPECT_EQ(decode_welcome(encode(Welcome{8, 1ULL << 33}))->slot_bytes, 1ULL << 33);
  EXPECT_EQ(decode_hello(encode(Hello{"decoder/0#3", 4, 9}))->number, 9U);
  EXPECT_EQ(decode_welcome(encode(Welcome{8, 1, 1ULL << 40}))->number, 1ULL << 40);
  const auto progress = decode_progress(encode(ItemProgress{{.slot = 4, .tag = 9, .fence = 8}}));
  EXPECT_EQ(progress->credit.slot, 4U);
  EXPECT_EQ(progress->credit.tag, 9U);
  EXPECT_EQ(progress->credit.fence, 8U);
  const auto taken = decode_taken(encode(Taken{{.slot = 3, .tag = 1ULL << 60, .fence = 7}}));
  EXPECT_EQ(taken->credit.slot, 3U);
  EXPECT_EQ(taken->credit.tag, 1ULL << 60);
  EXPECT_EQ(taken->credit.fence, 7U);
  EXPECT_EQ(decode_bye(encode(Bye{"done"}))->reason, "done");
}

TEST(ChannelMessagesTest, EveryTruncationIsRefused) {
  const Item item{.credit = {.slot = 1, .tag = 300, .fence = 3}, .bytes = 0, .xxh3 = 99, .error = "e"};
  const auto payload = encode(ItemMessage{item, {}});
  for (std::size_t length = 0; length < payload.size(); ++length) {
    EXPECT_FALSE(decode_item(std::span(payload).first(length))) << length;
  }
  const auto credit = encode(CreditMessage{item.credit, 1});
  for (std::size_t length = 0; length < credit.size(); ++length) {
    EXPECT_FALSE(decode_credit(std::span(credit).first(length))) << length;
  }
}

TEST(ChannelMessagesTest, HostileBytesAreRefused) {
  EXPECT_TRUE(decode_credit(raw({11, 0, 0, 0, 0x85, 1, 3, 4, 1, 5, 9, 6, 0, 8, 5})));
  EXPECT_TRUE(decode_credit(raw({13, 0, 0, 0, 0x86, 1, 3, 3, 5, 4, 1, 5, 9, 6, 0, 8, 5}))) << "key 3 is skipped";
  EXPECT_FALSE(decode_credit(raw({9, 0, 0, 0, 0x84, 1, 3, 4, 1, 6, 0, 8, 5}))) << "no serial";
  EXPECT_FALSE(decode_credit(raw({11, 0, 0, 0, 0x85, 1, 3, 4, 1, 4, 1, 6, 0, 8, 5}))) << "key 4 twice";
  EXPECT_FALSE(decode_credit(raw({11, 0, 0, 0, 0x85, 1, 0xff, 4, 1, 5, 9, 6, 0, 8, 5}))) << "slot -1";
  EXPECT_FALSE(decode_credit(raw({11, 0, 0, 0, 0x85, 1, 3, 4, 1, 5, 9, 6, 0, 8, 0xff}))) << "tag -1";
  EXPECT_FALSE(decode_credit(raw({19, 0, 0, 0, 0x85, 1, 0xcf, 0, 0, 0, 1, 0, 0, 0, 0, 4, 1, 5, 9, 6, 0, 8, 5})))
      << "slot 2^32";
  EXPECT_FALSE(decode_credit(raw({12, 0, 0, 0, 0x85, 1, 3, 4, 1, 5, 9, 6, 0, 8, 5, 0}))) << "a byte too many";
  EXPECT_FALSE(decode_item(raw({0xff, 0xff, 0xff, 0xff, 0x80}))) << "a map of 4 GiB";
  EXPECT_FALSE(decode_item(raw({1, 0, 0, 0, 0x80}))) << "an empty map";
  EXPECT_FALSE(decode_hello(raw({0x82, 1, 0xa1, 0xff, 2, 4}))) << "not UTF-8";
}

TEST(ChannelMessagesTest, AReasonIsCutAndMadeUtf8) {
  const Item item{.credit = {}, .bytes = 0, .xxh3 = 0, .error = std::string(5000, 'x') + "\xff"};
  const auto decoded = decode_item(encode(ItemMessage{item, {}}));
  EXPECT_EQ(decoded->item.error, std::string(kMaxReasonBytes, 'x'));
  EXPECT_EQ(decode_bye(encode(Bye{"bad \xff byte"}))->reason, "bad ? byte");
}

TEST(ChannelAddressTest, EveryKindRoundTrips) {
  const std::string key(40, 'k');
  for (const std::string& text :
       {std::string("inproc:learner/0"), std::string("shm:ipc:///run/a;memfd:1:2:8192:4;4000;2"),
        std::string("zmq:tcp://10.0.0.1:7000;4000;2"), "zmq:tcp://10.0.0.1:7000;4000;2;" + key}) {
    const auto address = ChannelAddress::parse(text);
    EXPECT_EQ(address->text(), text);
  }
}

TEST(ChannelAddressTest, OthersAreRefused) {
  for (const char* text :
       {"", "inproc", "inproc:", "inproc:Learner", "inproc:a;b", "nccl:a", "shm:ipc:///a;h;0;2", "shm:ipc:///a;h;5",
        "shm:ipc:///a;h;5;2;k", "zmq:;5;2", "zmq:tcp://a:1;5;-2", "zmq:tcp://a:1;5;2;short", "zmq:tcp://a:1;5;2x",
        "zmq:tcp://a:1;99999999999999999999;2", "zmq:tcp://a:1;17179869185;1", "zmq:tcp://a:1;1;65537"}) {
    EXPECT_FALSE(ChannelAddress::parse(text)) << text;
  }
}

}  // namespace
}  // namespace troupe::comm
