#include "base/enum_names.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace troupe::base {
namespace {

enum class Fruit { apple, pear };
constexpr auto enum_names(Fruit) { return std::array{"apple", "pear"}; }

TEST(EnumNamesTest, NameAndValueAreEachOthersInverse) {
  for (const Fruit fruit : {Fruit::apple, Fruit::pear}) EXPECT_EQ(enum_value<Fruit>(enum_name(fruit)), fruit);
  EXPECT_EQ(enum_name(Fruit::pear), "pear");
}

TEST(EnumNamesTest, AnotherTextHasNoValue) {
  EXPECT_FALSE(enum_value<Fruit>("plum"));
  EXPECT_FALSE(enum_value<Fruit>("Pear"));
  EXPECT_FALSE(enum_value<Fruit>(""));
  EXPECT_FALSE(enum_value<Errc>(""));
}

TEST(EnumNamesTest, ANumberThatIsNoValueIsUnknown) {
  EXPECT_EQ(enum_name(static_cast<Fruit>(2)), "unknown");
  EXPECT_EQ(enum_name(static_cast<Errc>(0)), "unknown");
}

}  // namespace
}  // namespace troupe::base
