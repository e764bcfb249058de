#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace troupe::base {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{Errc::invalid_argument, "odd"};
  return value / 2;
}
Result<int> quarter(int value) {
  TROUPE_ASSIGN(const int h, half(value));
  TROUPE_ASSIGN(const int q, half(h));
  return q;
}
Result<void> check_even(int value) {
  TROUPE_TRY(half(value));
  return {};
}

TEST(ResultTest, HoldsAValueOrAnError) {
  EXPECT_TRUE(half(4));
  EXPECT_EQ(*half(4), 2);
  const auto odd = half(3);
  EXPECT_EQ(odd.error().code(), Errc::invalid_argument);
  EXPECT_EQ(odd.error().to_string(), "invalid_argument: odd");
}

TEST(ResultTest, MacrosPassTheFirstErrorUp) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_FALSE(quarter(6));
  EXPECT_FALSE(quarter(7));
  EXPECT_TRUE(check_even(2));
  EXPECT_FALSE(check_even(1));
}

TEST(ResultTest, ContextStandsInFront) {
  EXPECT_EQ(Error(Errc::not_found, "gone").with("a.yaml").to_string(), "not_found: a.yaml: gone");
}

TEST(ResultTest, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(ResultTest, EveryCodeHasItsName) {
  EXPECT_EQ(enum_name(Errc::invalid_argument), "invalid_argument");
  EXPECT_EQ(enum_name(Errc::internal), "internal");
  EXPECT_EQ(static_cast<int>(Errc::invalid_argument), 1) << "0 means success to CAF";
}

TEST(ResultDeathTest, ReadingTheAbsentSideAborts) {
  EXPECT_DEATH((void)half(3).value(), "invalid_argument: odd");
  EXPECT_DEATH((void)half(4).error(), "error\\(\\) of a Result that holds a value");
}

}  // namespace
}  // namespace troupe::base
