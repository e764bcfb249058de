#include "configs/scalar.h"

#include <gtest/gtest.h>

namespace troupe::configs {
namespace {

TEST(ScalarTest, IntegersAreDecimalWithoutLeadingZeros) {
  EXPECT_EQ(parse_integer("42"), 42);
  EXPECT_EQ(parse_integer("-7"), -7);
  EXPECT_EQ(parse_integer("+7"), 7);
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
  for (const char* bad : {"", "-", "010", "0x10", "1_000", "1e3", "2.0", "9223372036854775808", "1 ", "++1", "+-1"}) {
    EXPECT_EQ(parse_integer(bad), std::nullopt) << bad;
  }
}

TEST(ScalarTest, NumbersTakeFractionsAndExponents) {
  EXPECT_EQ(parse_number("1.0e-5"), 1e-5);
  EXPECT_EQ(parse_number("1e-5"), 1e-5);
  EXPECT_EQ(parse_number(".5"), 0.5);
  EXPECT_EQ(parse_number("5."), 5.0);
  EXPECT_EQ(parse_number("3"), 3.0);
  EXPECT_EQ(parse_number("0.25"), 0.25);
  for (const char* bad : {"", ".", "1e", "e5", "nan", "inf", ".inf", "1e400", "00.5", "1,5", "0x1p3", "1.5f"}) {
    EXPECT_EQ(parse_number(bad), std::nullopt) << bad;
  }
}

TEST(ScalarTest, OnlyTrueAndFalseAreBooleans) {
  EXPECT_EQ(parse_boolean("true"), true);
  EXPECT_EQ(parse_boolean("false"), false);
  for (const char* bad : {"yes", "no", "on", "off", "True", "TRUE", "1", ""})
    EXPECT_EQ(parse_boolean(bad), std::nullopt) << bad;
}

TEST(ScalarTest, PrintedNumbersReadBackToTheSameBits) {
  for (const double v : {0.1, 1e-5, 1.0 / 3.0, 1e300, 5e-324, 0.0, -2.5, 123456789.0}) {
    EXPECT_EQ(parse_number(format_number(v)), v) << format_number(v);
  }
}

TEST(ScalarTest, StringsAreQuotedWhereAPlainScalarWouldChangeTheirMeaning) {
  EXPECT_EQ(format_string("gr1_unified"), "gr1_unified");
  EXPECT_EQ(format_string("observation.images.cam_high"), "observation.images.cam_high");
  EXPECT_EQ(format_string("0:0-1"), "\"0:0-1\"");
  EXPECT_EQ(format_string(""), "\"\"");
  EXPECT_EQ(format_string("null"), "\"null\"");
  EXPECT_EQ(format_string("-1"), "\"-1\"");
  EXPECT_EQ(format_string("a \"b\"\\\n\t\x01"), "\"a \\\"b\\\"\\\\\\n\\t\\x01\"");
  EXPECT_EQ(format_string("${x}"), "\"$${x}\"");
}

TEST(ScalarTest, TextIsWellFormedUtf8WithoutNul) {
  EXPECT_TRUE(is_text("gr\u00fc\u00df \U0001F916"));
  EXPECT_FALSE(is_text(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_text("\xC3"));
  EXPECT_EQ(count_code_points("gr\u00fc\u00df"), 4);
}

}  // namespace
}  // namespace troupe::configs
