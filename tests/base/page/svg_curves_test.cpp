#include "base/page/svg_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <regex>

namespace troupe::base {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string attribute(const std::string& html, const std::string& name) {
  std::smatch found;
  return std::regex_search(html, found, std::regex(name + "=\"([^\"]*)\"")) ? found[1].str() : "";
}

TEST(SvgCurvesTest, ACurveHasItsPointsAxesAndLastValue) {
  const std::string svg =
      svg_curves({.title = "a < b", .x_title = "steps", .series = {{.name = "loss", .x = {0, 5, 10}, .y = {4, 2, 1}}}});
  EXPECT_EQ(attribute(svg, "data-points"), "0 4;5 2;10 1");
  EXPECT_EQ(attribute(svg, "data-x"), "0 10");
  EXPECT_EQ(attribute(svg, "data-y"), "0.85 4.15");
  for (const char* part : {"a &lt; b", ">steps<", "loss <output>1</output>", "class=\"line\" d=\"M106.0 "})
    EXPECT_THAT(svg, HasSubstr(part));
  EXPECT_THAT(svg, Not(HasSubstr("class=\"band\"")));
}

TEST(SvgCurvesTest, ABandIsAClosedShapeInsideTheScale) {
  const std::string svg =
      svg_curves({.series = {{.name = "s", .x = {0, 1}, .y = {1, 1}, .low = {0, -1}, .high = {2, 3}}}});
  EXPECT_THAT(svg, ::testing::ContainsRegex("class=\"band\" d=\"M[0-9. L]*Z\""));
  EXPECT_EQ(attribute(svg, "data-y"), "-1.2 3.2");
  EXPECT_EQ(attribute(svg, "data-points"), "0 1 0 2;1 1 -1 3");
}

TEST(SvgCurvesTest, ValuesThatAreNotFiniteAreGapsAndCounted) {
  const std::string svg = svg_curves({.series = {{.name = "s", .x = {0, 1, 2, 3}, .y = {1, 2, kNan, 3}}}});
  EXPECT_THAT(svg, HasSubstr("s (1 not finite) <output>3</output>"));
  EXPECT_THAT(svg, ::testing::ContainsRegex("class=\"line\" d=\"M[0-9. ]*L[0-9. ]*M[0-9. ]*m-2 0h4\""));
  const std::string none = svg_curves({.title = "t", .series = {{.name = "s", .x = {0}, .y = {kNan}}}});
  EXPECT_EQ(none, "<p class=\"note\">t: no value yet.</p>\n");
}

TEST(SvgCurvesTest, ManyPointsBecomeMeansWithTheirExtremesAsABand) {
  SvgSeries many{.name = "s"};
  for (int i = 0; i < 1000; ++i) {
    many.x.push_back(i);
    many.y.push_back(i % 2 == 0 ? 0 : 10);
  }
  many.y[4] = kNan;
  const std::string svg = svg_curves({.series = {many}, .max_points = 10});
  const std::string points = attribute(svg, "data-points");
  EXPECT_EQ(std::count(points.begin(), points.end(), ';'), 9);
  EXPECT_THAT(points, HasSubstr(";150 5 0 10;"));
  EXPECT_THAT(points, ::testing::StartsWith("50 5.05051 0 10;"));
}

TEST(SvgCurvesTest, AFlatCurveAndALonePointHaveAScale) {
  EXPECT_EQ(attribute(svg_curves({.series = {{.name = "s", .x = {3}, .y = {2}}}}), "data-y"), "1.8 2.2");
  EXPECT_THAT(svg_curves({.series = {{.name = "s", .x = {3}, .y = {2}}}}), HasSubstr("class=\"marks\""));
  EXPECT_EQ(attribute(svg_curves({.series = {{.name = "s", .x = {0, 1, 2}, .y = {0, 0, 0}}}}), "data-y"), "-1 1");
  EXPECT_EQ(attribute(svg_curves({.series = {{.name = "s", .x = {0, 1}, .y = {100, 100.001}}}}), "data-y"),
            "99.9754997 100.0255");
}

TEST(SvgCurvesTest, AValueBetweenGapsIsADash) {
  const std::string svg = svg_curves({.series = {{.name = "s", .x = {0, 1, 2, 3, 4}, .y = {kNan, 5, kNan, 1, 2}}}});
  EXPECT_THAT(svg, ::testing::ContainsRegex("class=\"line\" d=\"M[0-9.]* [0-9.]*m-2 0h4M[0-9. ]*L[0-9. ]*\""));
}

TEST(SvgCurvesTest, StepsHaveWholeTicksAndCurvesWithoutValuesAreLeftOut) {
  const std::string svg = svg_curves({.series = {{.name = "none"}, {.name = "s", .x = {1, 3}, .y = {5, 5}}}});
  EXPECT_THAT(svg, HasSubstr(">2</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">1.5</text>")));
  EXPECT_THAT(svg, Not(HasSubstr("none")));
  EXPECT_THAT(svg, HasSubstr("<g class=\"series c1\""));
}

}  // namespace
}  // namespace troupe::base
