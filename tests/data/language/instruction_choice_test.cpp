#include "data/language/instruction_choice.h"

#include <gtest/gtest.h>

#include <map>

#include "data/language/language.h"

namespace troupe::data {
namespace {

using Texts = std::vector<std::string>;

TEST(InstructionChoiceTest, EveryTextIsDrawnEquallyOften) {
  const Texts texts = {"a", "b", "c"};
  std::map<std::string, int> drawn;
  for (std::uint64_t q = 0; q < 6000; ++q) ++drawn[draw_instruction(LanguageConfig{}, texts, 42, q)];
  for (const std::string& text : texts) EXPECT_NEAR(drawn[text], 2000, 4 * 37) << text;  // four deviations
}

TEST(InstructionChoiceTest, TheDrawDependsOnSeedAndPositionAlone) {
  const Texts texts = {"a", "b", "c"};
  int same_seed = 0, other_seed = 0;
  for (std::uint64_t q = 0; q < 200; ++q) {
    const std::string& first = draw_instruction(LanguageConfig{}, texts, 42, q);
    same_seed += first == draw_instruction(LanguageConfig{}, texts, 42, q) ? 1 : 0;
    other_seed += first == draw_instruction(LanguageConfig{}, texts, 43, q) ? 1 : 0;
  }
  EXPECT_EQ(same_seed, 200);
  EXPECT_LT(other_seed, 120);
}

TEST(InstructionChoiceTest, PlaceholdersAreLeftOutWhileThereIsAText) {
  const Texts texts = {"", "Not Provided", "lift", "[ ]"};
  for (std::uint64_t q = 0; q < 100; ++q) EXPECT_EQ(draw_instruction(LanguageConfig{}, texts, 1, q), "lift");
  EXPECT_EQ(draw_instruction(LanguageConfig{}, Texts{"not provided", ""}, 1, 5), "not provided");
  LanguageConfig all;
  all.skip_placeholder = false;
  std::map<std::string, int> drawn;
  for (std::uint64_t q = 0; q < 400; ++q) ++drawn[draw_instruction(all, texts, 1, q)];
  EXPECT_EQ(drawn.size(), 4u);
}

TEST(InstructionChoiceTest, PlaceholdersAreBlankOrSaySo) {
  for (const char* text : {"", "  \t\n", "not provided", " NOT PROVIDED ", "[]", "()", "[ ]"})
    EXPECT_TRUE(is_placeholder(text)) << text;
  for (const char* text : {"pick", "provided", "[1]", "not  provided", "('x',)", "]["})
    EXPECT_FALSE(is_placeholder(text)) << text;
}

TEST(InstructionChoiceTest, DropoutShowsTheDefaultAtItsRate) {
  LanguageConfig language;
  language.dropout = 0.25;
  const Texts texts = {"lift"};
  int dropped = 0;
  for (std::uint64_t q = 0; q < 4000; ++q)
    dropped += draw_instruction(language, texts, 42, q) == language.default_instruction ? 1 : 0;
  EXPECT_NEAR(dropped, 1000, 4 * 28);
  language.dropout = 1;
  EXPECT_EQ(draw_instruction(language, texts, 42, 0), "Perform the default behavior.");
}

TEST(InstructionChoiceTest, EvaluationTakesTheFirstTextAndDropsNothing) {
  LanguageConfig language;
  language.dropout = 1;
  EXPECT_EQ(first_instruction(language, Texts{"first", "second"}), "first");
  language.always_default = true;
  EXPECT_EQ(first_instruction(language, Texts{"first"}), language.default_instruction);
  EXPECT_EQ(draw_instruction(language, Texts{"first"}, 1, 1), language.default_instruction);
}

TEST(InstructionChoiceTest, FormalizeComesAfterTheMarkersAndBeforeTheLiteral) {
  EXPECT_EQ(read_instruction("<LAPA>Pick-up, the 'RED' cup!", true)->text, "pickup the red cup");
  EXPECT_TRUE(read_instruction("<LAPA>Pick up", true)->lapa);
  EXPECT_EQ(read_instruction("['A b', 'c']", true)->text, "a b c") << "the brackets are gone before they are read";
  EXPECT_EQ(read_instruction("['A b', 'c']", false)->text, "a b");
}

}  // namespace
}  // namespace troupe::data
