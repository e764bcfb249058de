#include "base/page/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::base {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HtmlTest, TextIsEscaped) {
  EXPECT_EQ(escape_html("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(escape_html("a\x01"
                        "b\xFF"
                        "c\u00e9"),
            "a b\xEF\xBF\xBD"
            "c\u00e9");
}

TEST(HtmlTest, LinesStayLines) {
  EXPECT_EQ(html_lines("a <\n\n  b\n"),
            "<pre class=\"lines\"><span>a &lt;</span><span></span><span>  b</span></pre>\n");
  EXPECT_EQ(html_lines("a"), "<pre class=\"lines\"><span>a</span></pre>\n");
}

TEST(HtmlTest, Base64IsRfc4648) {
  const std::pair<const char*, const char*> kVectors[] = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : kVectors) EXPECT_EQ(base64(bytes), text);
  EXPECT_EQ(base64("foob\xff"), "Zm9vYv8=");
  EXPECT_EQ(data_uri("image/png", "foo"), "data:image/png;base64,Zm9v");
}

TEST(HtmlTest, ATableHasItsHeadAndCells) {
  EXPECT_EQ(html_table({{"a"}}, {}), "");
  const std::string table = html_table({{"<name>"}, {"n", true}}, {{"<b>x</b>", "1"}});
  EXPECT_THAT(table, HasSubstr("<th>&lt;name&gt;</th><th class=\"n\">n</th>"));
  EXPECT_THAT(table, HasSubstr("<td><b>x</b></td><td class=\"n\">1</td>"));
  EXPECT_THAT(html_table({{""}, {""}}, {{"x", "y"}}), Not(HasSubstr("<th>")));
  EXPECT_THAT(html_table({{"<text>"}}, {{"x"}}, /*stacks=*/true),
              HasSubstr("<th>&lt;text&gt;</th></tr>\n<tr><td data-name=\"&lt;text&gt;\">x</td>"));
}

TEST(HtmlTest, APageForbidsRequestsAndItsScriptIsShort) {
  const std::string page = html_page("<t>", "<p>body</p>");
  EXPECT_THAT(page, HasSubstr("<title>&lt;t&gt;</title>"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("<p>body</p>"));
  EXPECT_LT(std::count(kPageScript.begin(), kPageScript.end(), '\n'), 300);
  for (const char* outside : {"fetch(", "XMLHttpRequest", "import ", "WebSocket", "https:"})
    EXPECT_THAT(std::string(kPageScript), Not(HasSubstr(outside)));
}

}  // namespace
}  // namespace troupe::base
