// HTML character references: all names, numbers, names without semicolon, the narrower reading of the repair.
#include "data/language/html_entities.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "data/language/html_names.h"

namespace troupe::data {
namespace {

/// What `unescape` makes of texts.
void expect_unescaped(std::string (*unescape)(std::string_view),
                      std::initializer_list<std::pair<const char*, const char*>> cases) {
  for (const auto& [text, want] : cases) EXPECT_EQ(unescape(text), want) << text;
}

TEST(HtmlEntitiesTest, TheTableHoldsHtml5sNames) {
  const auto count = [](char mark) { return std::count(kHtmlNames.begin(), kHtmlNames.end(), mark); };
  EXPECT_EQ(count('=') + count('!'), 2125);
  EXPECT_EQ(count('!'), 106);
  expect_unescaped(unescape_html, {{"&AElig;", "\u00C6"},
                                   {"&zwnj;", "\u200C"},
                                   {"&Tab;|", "\t|"},
                                   {"&acE;", "\u223E\u0333"},
                                   {"&Afr;", "\U0001D504"},
                                   {"&CounterClockwiseContourIntegral;", "\u2233"}});
}

TEST(HtmlEntitiesTest, NumbersAreReadAsBrowsersReadThem) {
  expect_unescaped(unescape_html, {{"&#65;&#x41;&#X41&#65x", "AAAAx"},
                                   {"&#128;&#150;&#129;", "\u20AC\u2013\u0081"},
                                   {"&#0;&#xD800;&#x110000;&#99999999999999999999;", "\uFFFD\uFFFD\uFFFD\uFFFD"},
                                   {"[&#1;&#11;&#127;&#xFDD0;&#x1FFFF;]", "[]"},
                                   {"&#13;&#10;", "\r\n"},
                                   {"&# &#x &#xg; &#;", "&# &#x &#xg; &#;"},
                                   {"&#-5; &#x-5;", "&#-5; &#x-5;"}});
}

TEST(HtmlEntitiesTest, OldNamesMayStandWithoutTheirSemicolon) {
  expect_unescaped(unescape_html, {{"&amp &lt&gt", "& <>"},
                                   {"&copy 2020 &copyright;", "\u00A9 2020 \u00A9right;"},
                                   {"&notanentity; &notin;", "\u00ACanentity; \u2209"},
                                   {"AT&T & co; &; && &a &hellip", "AT&T & co; &; && &a &hellip"},
                                   {"&amp;lt;", "&lt;"}});
}

TEST(HtmlEntitiesTest, TheRepairResolvesWholeReferencesAndCapitalsOnly) {
  expect_unescaped(unescape_whole_html, {{"&copy 2020 &notanentity;", "&copy 2020 &notanentity;"},
                                         {"&copy; &#65; &#65 &#x41;", "\u00A9 A &#65 A"},
                                         {"&HELLIP; &EACUTE; &AMP; &LT;", "\u2026 \u00C9 & <"},
                                         {"&COPYSR; &LTIMES; &Hellip;", "&COPYSR; &LTIMES; &Hellip;"},
                                         {"&#59; &#65x; &#1;", "&#59; &#65x; "},
                                         {"&CounterClockwiseContourIntegral;", "&CounterClockwiseContourIntegral;"}});
}

TEST(HtmlEntitiesTest, TextWithoutReferencesComesBackUnchanged) {
  for (const char* text : {"", "&", "a & b", "\xc3\xa9&", "\xff&\xff"}) {
    EXPECT_EQ(unescape_html(text), text);
    EXPECT_EQ(unescape_whole_html(text), text);
  }
}

}  // namespace
}  // namespace troupe::data
