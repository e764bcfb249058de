#include "comm/bridge/bridge_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/serve/msgpack_numpy.h"
#include "tests/support/folder_files.h"
#include "tests/support/visible.h"

namespace troupe::comm {
namespace {

constexpr std::size_t kMost = 1 << 20;

/// Bytes that python/troupe_env/wire.py wrote; also the seeds of the fuzzer.
Result<BridgeMessage> from_python(const std::string& name) {
  const std::string text = text_of(std::string(TROUPE_SOURCE_DIR) + "/tests/fuzz/corpus/bridge_message/" + name);
  return decode_bridge_message(std::as_bytes(std::span(text)), kMost);
}

std::string why(const WireValue& header) {
  return decode_bridge_message(encode_wire_tree(header, ArrayForm::openpi), kMost).error().message();
}

TEST(BridgeMessageTest, WhatPythonWroteIsRead) {
  const auto hello = from_python("hello");
  ASSERT_TRUE(hello) << hello.error().message();
  EXPECT_EQ(hello->type, "HELLO");
  EXPECT_EQ(*find(hello->body, "pid"), WireValue(71));
  const auto result = from_python("result");
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->session, 3);
  EXPECT_EQ(result->request, 9);
  const auto* obs = find(result->body, "obs")->as<WireMap>();
  ASSERT_NE(obs, nullptr);
  const auto* state = find(*obs, "state")->as<NdArray>();
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->dtype, "<f4");
  EXPECT_EQ(state->shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(reinterpret_cast<const float*>(state->data.data())[3], 4);
}

TEST(BridgeMessageTest, AMessageComesBackAsItWas) {
  const BridgeMessage sent{.type = "STEP", .session = 5, .request = 1 << 20, .body = {{"lease", 7}}};
  const auto back = decode_bridge_message(encode_bridge_message(sent), kMost);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->type, "STEP");
  EXPECT_EQ(back->session, 5);
  EXPECT_EQ(back->request, 1 << 20);
  EXPECT_EQ(back->body, sent.body);
}

TEST(BridgeMessageTest, AnotherMinorVersionAndUnknownKeysAreTaken) {
  const WireMap header{{"v", WireArray{1, 7}}, {"t", "PING"}, {"s", 1}, {"q", 0}, {"b", WireMap{}}, {"new", "key"}};
  EXPECT_TRUE(decode_bridge_message(encode_wire_tree(header, ArrayForm::openpi), kMost));
}

TEST(BridgeMessageTest, WhatIsNoMessageIsRefusedInWords) {
  using ::testing::HasSubstr;
  EXPECT_THAT(why(7), HasSubstr("an integer in the place of a map"));
  EXPECT_THAT(why(WireMap{{"v", 1}}), HasSubstr("it wants v, a list of two integers"));
  EXPECT_THAT(why(WireMap{{"v", WireArray{2, 0}}}), HasSubstr("its version is 2, this program's is 1.1"));
  WireMap header{{"v", WireArray{1, 0}}};
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, WireValue>>{{"t", "PING"}, {"s", 1}, {"q", 0}, {"b", WireMap{}}}) {
    EXPECT_THAT(why(header), HasSubstr(std::string("it wants ") + name + ", "));
    header.push_back({name, value});
  }
  const std::string large(kMost + 1, 'x');
  EXPECT_THAT(decode_bridge_message(std::as_bytes(std::span(large)), kMost).error().message(),
              HasSubstr("at most 1048576 are taken"));
}

}  // namespace
}  // namespace troupe::comm
