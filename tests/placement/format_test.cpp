#include "placement/format.h"

#include <gtest/gtest.h>

namespace troupe::placement {
namespace {

TEST(FormatTest, CountsAreGroupedByThreeDigits) {
  EXPECT_EQ(format_grouped(0), "0");
  EXPECT_EQ(format_grouped(999), "999");
  EXPECT_EQ(format_grouped(1000), "1,000");
  EXPECT_EQ(format_grouped(-1234567), "-1,234,567");
}

TEST(FormatTest, BytesHaveTheLargestUnitThatGivesAtLeastOne) {
  EXPECT_EQ(format_bytes(812), "812 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(60'022'480'077), "55.9 GiB");
  EXPECT_EQ(format_bytes(std::int64_t{1} << 50), "1.0 PiB");
}

}  // namespace
}  // namespace troupe::placement
