#include "data/language/language.h"

#include <gtest/gtest.h>

#include <utility>

#include "data/language/python_literal.h"
#include "data/language/unicode.h"

namespace troupe::data {
namespace {

TEST(LanguageTest, LiteralsPrintAsPythonPrintsThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"3", "3"},
      {"-0", "0"},
      {"+7", "7"},
      {"1_000", "1000"},
      {"0x1F", "31"},
      {"3.50", "3.5"},
      {"1e16", "1e+16"},
      {"1e15", "1000000000000000.0"},
      {"0.0001", "0.0001"},
      {"1e-05", "1e-05"},
      {".5", "0.5"},
      {"5.", "5.0"},
      {"-0.0", "-0.0"},
      {"1e999", "inf"},
      {"True", "True"},
      {"'a' 'b'", "ab"},
      {"r'\\n'", "\\n"},
      {"'\\x41\\u00e9'", "A\u00e9"},
      {"'''x\ny'''", "x\ny"},
      {"(1,)", "(1,)"},
      {"(5)", "5"},
      {"{}", "{}"},
      {"{1}", "{1}"},
      {"['it\\'s']", "[\"it's\"]"},
      {"{'a': [1, (2,)]}", "{'a': [1, (2,)]}"},
      {"{1: 2, 1: 3}", "{1: 3}"},
      {" 4 # four", "4"},
      {"[1,\n 2]", "[1, 2]"},
      {"123456789012345678901234567890", "123456789012345678901234567890"},
      {"...", "Ellipsis"},
      {"[..., 1]", "[Ellipsis, 1]"},
      {"b'a' b\"\\x41'\\xff\\n\\u0041\"", "b\"aA'\\xff\\n\\\\u0041\""},
      {"(bR'\\n', 2)", "(b'\\\\n', 2)"},
      {"2j", "2j"},
      {"007j", "7j"},
      {"-2j", "(-0-2j)"},
      {"1+2j", "(1+2j)"},
      {"-1.5 - 1e3J", "(-1.5-1000j)"},
      {"0-2j", "-2j"},
      {"-0.0-2j", "(-0-2j)"},
      {"[1 + 2j]", "[(1+2j)]"},
  };
  for (const auto& [text, want] : cases) {
    const auto literal = parse_python_literal(text);
    ASSERT_TRUE(literal) << text;
    EXPECT_EQ(literal->str(), want) << text;
  }
}

TEST(LanguageTest, OrdinarySentencesAreNotLiterals) {
  for (const char* text : {"pick up the cup",
                           "",
                           "[",
                           "[1",
                           "'open",
                           "(1",
                           "{1: }",
                           "007",
                           "1 2",
                           "--3",
                           "None of them",
                           "Truely",
                           "1.2.3",
                           "[1 2]",
                           "{'a' 1}",
                           "3 cups",
                           "'a' cup",
                           "-",
                           "0xZZ",
                           "1e",
                           "(,)",
                           "....",
                           "b'caf\u00e9'",
                           "'a' b'b'",
                           "1+2",
                           "2j+1",
                           "1+-2j",
                           "{[1]: 2}",
                           "{(1, [2])}"}) {
    EXPECT_FALSE(parse_python_literal(text)) << text;
  }
}

TEST(LanguageTest, DeepNestingIsRefusedNotFollowed) {
  EXPECT_FALSE(parse_python_literal(std::string(100'000, '[')));
  EXPECT_TRUE(parse_python_literal(std::string(20, '[') + std::string(20, ']')));
}

TEST(LanguageTest, AListGivesItsFirstElementLowerCased) {
  EXPECT_EQ(read_instruction("[\"Pick Up\", \"Take\"]")->text, "pick up");
  EXPECT_EQ(read_instruction("'A', 'B'")->text, "a");
  EXPECT_EQ(read_instruction("[[1, 'A']]")->text, "[1, 'a']");
}

TEST(LanguageTest, TextsWithoutAFirstElementAreErrors) {
  for (const char* raw : {"[]", "()", "{1, 2}", "\xff"}) {
    const auto got = read_instruction(raw);
    ASSERT_FALSE(got) << raw;
    EXPECT_EQ(got.error().code(), Errc::invalid_argument);
  }
}

TEST(LanguageTest, MarkersAreCutOutAndRemembered) {
  const auto got = read_instruction("<LAPA>Fold <COTRAIN>it");
  EXPECT_EQ(got->text, "fold it");
  EXPECT_TRUE(got->lapa);
  EXPECT_TRUE(got->cotrain);
  EXPECT_FALSE(got->dream);
}

TEST(LanguageTest, PromptsWrapTheInstruction) {
  EXPECT_EQ(*make_prompt("none", "go", 1), "go");
  EXPECT_EQ(make_prompt("single_view_human", "", 1)->size(), 39u);
  EXPECT_FALSE(make_prompt("grand", "go", 1));
  EXPECT_EQ(*prompt_from_task("gr1_unified", "['Lift  &AMP; go', 2]", 1),
            "A single view video shows that a human lift & go");
  EXPECT_FALSE(prompt_from_task("agibot", "go", 1));
  EXPECT_FALSE(prompt_from_task("none", "[]", 1));
}

TEST(UnicodeTest, LowerCaseFollowsUnicode) {
  EXPECT_EQ(*to_lower("ÀÉ ΣΑΣ ПРИВЕТ Straße İ"), "àé σας привет straße i̇");
  EXPECT_FALSE(to_lower("\xc3"));
}

TEST(UnicodeTest, CleaningResolvesEntitiesAndStraightensQuotes) {
  EXPECT_EQ(*clean_prompt("a &#39;b&#x27; &quot;c&quot; &eacute; R&D &amp c"), "a 'b' \"c\" é R&D & c");
  EXPECT_EQ(*clean_prompt("ｆｕｌｌ　width \u201Cq\u201D \u00A0 x\x01y"), "full width \"q\" xy");
  EXPECT_EQ(*clean_prompt("e\u0301"), "é");
  EXPECT_EQ(*clean_prompt("\x1b[31mred\x1b[0m"), "red");
}

TEST(UnicodeTest, GuessworkIsRefusedByName) {
  for (const char* text : {"caf\u00C3\u00A9", "it\u00E2\u20AC\u2122s"}) {
    const auto got = clean_prompt(text);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().code(), Errc::invalid_argument);
  }
  EXPECT_TRUE(clean_prompt("Ünïcödé naïve façade – 5 €"));
}

}  // namespace
}  // namespace troupe::data
