// The shipped templates: names, number of instructions, refusals. Their bytes are checked against the golden prompts.
#include "data/language/prompt_templates.h"

#include <gtest/gtest.h>

#include <set>

namespace troupe::data {
namespace {

TEST(PromptTemplatesTest, EveryTemplateWrapsTheInstructionOnceOrTwice) {
  std::set<std::string_view> names;
  for (const PromptTemplate& entry : prompt_templates()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    const auto got = wrap_instruction(entry.name, "<go>", 3);
    ASSERT_TRUE(got) << entry.name;
    const std::string once = std::string(entry.prefix) + "<go>";
    EXPECT_EQ(*got, entry.layout.empty() ? once : once + std::string(entry.layout) + "<go>");
    // prefix and layout meet the instruction with a blank
    EXPECT_TRUE(entry.prefix.empty() || entry.prefix.back() == ' ') << entry.name;
    EXPECT_TRUE(entry.layout.empty() || entry.layout.front() == ' ') << entry.name;
  }
  EXPECT_EQ(names.size(), 10U);
}

TEST(PromptTemplatesTest, AgibotNeedsSeveralViews) {
  EXPECT_TRUE(wrap_instruction("agibot", "go", 2));
  EXPECT_EQ(wrap_instruction("agibot", "go", 1).error().code(), Errc::invalid_argument);
  EXPECT_TRUE(wrap_instruction("yam", "go", 1));
}

TEST(PromptTemplatesTest, AnUnknownTemplateIsNamedWithTheKnownOnes) {
  const auto got = wrap_instruction("grand", "go", 3);
  EXPECT_NE(got.error().message().find("'grand'"), std::string::npos);
  EXPECT_NE(got.error().message().find("franka_pnp"), std::string::npos);
}

}  // namespace
}  // namespace troupe::data
