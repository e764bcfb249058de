// The cleaning of prompts beyond the golden rows: lines, nesting, order of the repairs, what is refused.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "data/language/unicode.h"

namespace troupe::data {
namespace {

void expect_cleaned(std::initializer_list<std::pair<const char*, const char*>> cases) {
  for (const auto& [text, want] : cases) {
    const auto got = clean_prompt(text);
    ASSERT_TRUE(got) << text << ": " << got.error().message();
    EXPECT_EQ(*got, want) << text;
  }
}

TEST(CleanPromptTest, ReferencesResolveUntilStableUnlessTheLineHasMarkup) {
  expect_cleaned({{"&amp;amp;amp;amp;amp;", "&"},
                  {"&amp;amp;amp;amp;amp; <", "&amp;amp;amp; <"},
                  {"&amp;amp;amp;amp;\na<b", "& a<b"},
                  {"a<b\n&amp;amp;amp;amp;", "a<b &amp;amp;"},
                  {"&lt;a&gt; &amp;amp;amp;amp;", "<a> &"},
                  {"&ampampampamp;", "&ampamp;"}});
}

TEST(CleanPromptTest, RepairsMeetWhatOtherRepairsUncover) {
  expect_cleaned({{"\uFF06lt\uFF1B", "<"},  // a full-width reference
                  {"&amp\u037E", "&"},      // NFC makes the Greek question mark a semicolon
                  {"\x1b\uFF3B"
                   "31mred",
                   "red"},                      // a full-width bracket of an escape
                  {"&#27;[31mred", "[31mred"},  // the reference to ESC is dropped first
                  {"&amp;ldquo;<", "\u201C<"},  // resolved too late for the quotes
                  {"\u00C5 \u212B A\u030A", "\u00C5 \u00C5 \u00C5"}});
}

TEST(CleanPromptTest, ControlsTerminalEscapesAndWhiteSpace) {
  expect_cleaned({{"\x1b[31mred\x1b[0m \x1b[1;2K", "red"},
                  {"\x1b[31", "[31"},
                  {" a\r\n\tb\u00A0\u3000c\u2028 ", "a b c"},
                  {"\u00A0", ""},
                  {"x\u0085y\u0091z\u0092", "x\u2026y'z'"},
                  {"a \u0081", "a \u0081"}});
}

TEST(CleanPromptTest, MisDecodedTextIsRefusedByName) {
  for (const char* text :
       {"caf\u00C3\u00A9", "it\u00E2\u20AC\u2122s", "l\u2019humanit\u00C3\u00A9", "voil\u00C3 le travail",
        "W\u00C3\u00BCrfel", "&Atilde;&copy;", "\u00D0\u0178\u00D1\u20AC\u00D0\u00B8", "caf\u00C3\u00A9 \u4E2D",
        "\u0420\u045F\u0421\u0402\u0420\u0451",   // as Windows-1251
        "caf\u221A\u00A9", "caf\u251C\u2310"}) {  // Mac Roman, page 437
    const auto got = clean_prompt(text);
    ASSERT_FALSE(got) << text << " became " << *got;
    EXPECT_EQ(got.error().code(), Errc::invalid_argument);
  }
}

TEST(CleanPromptTest, WordsOfManyLanguagesAreNotTakenForMisDecoded) {
  for (const char* text : {"Ünïcödé naïve façade – 5 €",
                           "à la “carte”…",
                           "»Spaß« „groß“",
                           "NÃO É AÇÃO",
                           "CAFÉ®",
                           "«É»",
                           "возьми «красный» блок — СССР",
                           "Παίρνω το κόκκινο «μπλοκ»",
                           "zażółć „Łódź”",
                           "İstanbul’da",
                           "l’école d’époque",
                           "«école»",
                           "3×½",
                           "viel spaß…",
                           "olé”…",
                           "Graz–Österreich",
                           "їй",
                           "«שלום»",
                           "拿起“红色”方块",
                           "テスト…",
                           "🤖 👨‍👩‍👧",
                           "20°C ±2 µm ½ №5 ™®©"}) {
    const auto got = clean_prompt(text);
    EXPECT_TRUE(got) << text << ": " << got.error().message();
  }
}

TEST(CleanPromptTest, BytesThatAreNoUtf8AndEndlessNestingAreRefused) {
  EXPECT_FALSE(clean_prompt("\xc3"));
  EXPECT_FALSE(clean_prompt("ok\n\xed\xa0\x80"));
  std::string nested = "&";
  for (int i = 0; i < 100; ++i) nested += "amp;";
  EXPECT_NE(clean_prompt(nested).error().message().find("64 levels"), std::string::npos);
}

}  // namespace
}  // namespace troupe::data
