#include "base/ids.h"

#include <gtest/gtest.h>

#include <set>

namespace troupe::base {
namespace {

TEST(IdsTest, NamesAreLowerCaseAndStartWithALetterOrDigit) {
  for (const char* good : {"a", "7", "dz5b-droid", "a.b_c-9", "quickstart-sft"}) EXPECT_TRUE(is_name(good)) << good;
  for (const char* bad : {"", "-a", ".a", "_a", "A", "a b", "a/b", "\u00fc", "a\n"}) EXPECT_FALSE(is_name(bad)) << bad;
  EXPECT_TRUE(is_name(std::string(64, 'a')));
  EXPECT_FALSE(is_name(std::string(65, 'a')));
}

TEST(IdsTest, RunIdsAreUtcTimeAndRandomBits) {
  const FakeClock clock(1795260840.9);  // 2026-11-21 11:34:00 UTC
  const std::string id = new_run_id(clock);
  EXPECT_EQ(id.substr(0, 16), "20261121-113400-");
  EXPECT_EQ(id.size(), 20u);
  EXPECT_EQ(id.substr(16).find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_TRUE(is_name(id));
  std::set<std::string> ids;
  for (int i = 0; i < 20; ++i) ids.insert(new_run_id(clock));
  EXPECT_GT(ids.size(), 15u);
}

TEST(IdsTest, IncarnationsAndMessageIdsDoNotRepeat) {
  std::set<std::uint64_t> incarnations;
  std::set<MessageId> messages;
  for (int i = 0; i < 1000; ++i) {
    incarnations.insert(new_incarnation());
    messages.insert(new_message_id());
  }
  EXPECT_EQ(incarnations.size(), 1000u);
  EXPECT_EQ(messages.size(), 1000u);
  EXPECT_FALSE(incarnations.contains(0));
}

TEST(IdsTest, MessageIdsPrintAsThirtyTwoDigits) {
  MessageId id{};
  id[0] = 0xAB;
  id[15] = 1;
  EXPECT_EQ(to_hex(id), "ab000000000000000000000000000001");
}

}  // namespace
}  // namespace troupe::base
