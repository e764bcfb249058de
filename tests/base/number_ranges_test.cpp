#include "base/number_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::base {
namespace {

using ::testing::HasSubstr;

TEST(NumberRangesTest, NumbersAndRangesStandInAnyOrder) {
  const auto ranges = parse_number_ranges("3,8..11,0", "--seeds", "seed");
  ASSERT_TRUE(ranges) << ranges.error().message();
  ASSERT_EQ(ranges->size(), 3u);
  EXPECT_EQ((*ranges)[0].first, 3);
  EXPECT_EQ((*ranges)[0].last, 3);
  EXPECT_EQ((*ranges)[1].first, 8);
  EXPECT_EQ((*ranges)[1].last, 11);
  EXPECT_EQ((*ranges)[2].last, 0);
}

TEST(NumberRangesTest, NothingIsNoRange) { EXPECT_TRUE(parse_number_ranges("", "--seeds", "seed")->empty()); }

TEST(NumberRangesTest, WhatIsNoNumberIsNamedWithItsFlag) {
  for (const char* text : {"x", "1,x", "4..", "..4", "4..1", "-1", "1 2", "1,,2", "1..2..3"}) {
    const auto ranges = parse_number_ranges(text, "--seeds", "seed");
    ASSERT_FALSE(ranges) << text;
    EXPECT_EQ(ranges.error().code(), Errc::invalid_argument);
    EXPECT_THAT(ranges.error().message(), HasSubstr(std::string("--seeds ") + text + ": '")) << text;
    EXPECT_THAT(ranges.error().message(), HasSubstr("is no seed")) << text;
  }
}

}  // namespace
}  // namespace troupe::base
