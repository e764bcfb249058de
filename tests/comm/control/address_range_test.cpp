// Ranges of addresses, as a line of an allow-list names them.
#include "comm/control/address_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::comm {
namespace {

using ::testing::HasSubstr;

AddressRange range(const std::string& text) {
  auto parsed = AddressRange::parse(text);
  EXPECT_TRUE(parsed) << parsed.error().message();
  return *parsed;
}

TEST(AddressRangeTest, ARangeHasTheAddressesThatBeginWithItsBits) {
  EXPECT_TRUE(range("10.1.0.0/16").contains("10.1.0.0"));
  EXPECT_TRUE(range("10.1.0.0/16").contains("10.1.255.255"));
  EXPECT_FALSE(range("10.1.0.0/16").contains("10.0.255.255"));
  EXPECT_FALSE(range("10.1.0.0/16").contains("10.2.0.0"));
  EXPECT_TRUE(range("10.1.2.128/25").contains("10.1.2.200"));
  EXPECT_FALSE(range("10.1.2.128/25").contains("10.1.2.127"));
  EXPECT_TRUE(range("10.1.2.3/32").contains("10.1.2.3"));
  EXPECT_FALSE(range("10.1.2.3/32").contains("10.1.2.2"));
  EXPECT_TRUE(range("fd00::/8").contains("fdab::1"));
  EXPECT_FALSE(range("fd00::/8").contains("fc00::1"));
  EXPECT_TRUE(range("2001:db8:0:8000::/49").contains("2001:db8:0:ffff::1"));
  EXPECT_FALSE(range("2001:db8:0:8000::/49").contains("2001:db8:0:7fff::1"));
  EXPECT_TRUE(range("::1/128").contains("::1"));
  EXPECT_FALSE(range("::1/128").contains("::2"));
}

TEST(AddressRangeTest, APeersAddressMayHaveItsPort) {
  EXPECT_TRUE(range("10.1.0.0/16").contains("10.1.2.3:51234"));
  EXPECT_FALSE(range("10.1.0.0/16").contains("10.2.2.3:51234"));
  EXPECT_TRUE(range("::1/128").contains("[::1]:3"));
  EXPECT_TRUE(range("::1/128").contains("[::1]"));
  EXPECT_FALSE(range("::1/128").contains("[::2]:3"));
}

TEST(AddressRangeTest, AnAddressOfEitherFamilyIsInRangesOfItsOwn) {
  EXPECT_TRUE(range("10.0.0.0/8").contains("[::ffff:10.0.0.1]:51234")) << "as a listener on [::] sees IPv4";
  EXPECT_FALSE(range("10.0.0.0/8").contains("[::ffff:11.0.0.1]:51234"));
  EXPECT_EQ(range("::ffff:10.0.0.0/104"), range("10.0.0.0/8"));
  EXPECT_TRUE(range("0.0.0.0/0").contains("192.0.2.1"));
  EXPECT_FALSE(range("0.0.0.0/0").contains("::1"));
  EXPECT_TRUE(range("::/0").contains("2001:db8::1"));
  EXPECT_FALSE(range("::/0").contains("192.0.2.1"));
  EXPECT_FALSE(range("::/0").contains("::ffff:192.0.2.1"));
}

TEST(AddressRangeTest, WhatIsNoAddressIsInNoRange) {
  for (const char* all : {"0.0.0.0/0", "::/0"})
    for (const char* peer : {"", "?", "localhost:3", ":1000:1000:4711", "/tmp/a.ipc", "[", "[]", "[::1", "10.0.0", ":"})
      EXPECT_FALSE(range(all).contains(peer)) << peer << " in " << all;
}

TEST(AddressRangeTest, ARangeIsWrittenAsItIsRead) {
  for (const char* text : {"10.1.0.0/16", "0.0.0.0/0", "127.0.0.1/32", "fd00::/8", "::1/128", "::/0", "2001:db8::/33"})
    EXPECT_EQ(range(text).to_string(), text);
  EXPECT_EQ(range("fd00:0::/8").to_string(), "fd00::/8");
}

TEST(AddressRangeTest, AMistakeIsNamedWithWhatToWrite) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "wanted a range of addresses, such as 10.1.0.0/16 or fd00::/8"},
           {"/8", "wanted a range of addresses"},
           {"10.1/16", "wanted a range of addresses"},
           {"example.org/16", "wanted a range of addresses"},
           {"[fd00::]/8", "wanted a range of addresses"},
           {"10.1.2.3", "write 10.1.2.3/32"},
           {"fd00::1", "write fd00::1/128"},
           {"10.1.0.0/33", "a number of bits up to 32"},
           {"10.1.0.0/-1", "a number of bits up to 32"},
           {"10.1.0.0/", "a number of bits up to 32"},
           {"10.1.0.0/+8", "a number of bits up to 32"},
           {"10.1.0.0/8x", "a number of bits up to 32"},
           {"10.1.0.0/255.255.0.0", "a number of bits up to 32"},
           {"10.1.0.0/99999999999", "a number of bits up to 32"},
           {"fd00::/129", "a number of bits up to 128"},
           {"10.1.2.3/16", "bits are set behind the first 16; write 10.1.0.0/16"},
           {"10.1.2.3/0", "write 0.0.0.0/0"},
           {"fd00::1/8", "bits are set behind the first 8; write fd00::/8"}}) {
    const auto parsed = AddressRange::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), Errc::invalid_argument);
    EXPECT_THAT(parsed.error().message(), HasSubstr(why));
    EXPECT_THAT(parsed.error().message(), HasSubstr("'" + text + "'"));
  }
}

}  // namespace
}  // namespace troupe::comm
