#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/namespaces.h"

namespace troupe::base {

/// One curve of a chart.
struct SvgSeries {
  /// Text of the legend.
  std::string name{};
  /// As many of both, x ascending. A y that is not finite is a gap. Without any the curve is left out; the others keep
  /// their colours.
  std::vector<double> x{}, y{};
  /// Bounds of a band around the curve, one per x; empty: no band.
  std::vector<double> low{}, high{};
  /// Each value is a disc besides the line; for few values.
  bool has_marks = false;
};

/// Curves over one axis.
struct SvgCurves {
  /// Texts, not HTML.
  std::string title{}, x_title{};
  std::vector<SvgSeries> series{};
  /// Parts that a curve of more points is divided into: each is drawn as the mean of its points, at their middle x, and
  /// their least and greatest become a band (a band that is given is averaged).
  std::int64_t max_points = 500;
};

/// A <figure> with the curves as inline SVG, a grid, and a legend with each one's last value. It can be read as it is;
/// with the script of html_page() a pointer shows values, a click on the legend hides a curve, a button makes the
/// scale logarithmic, and where the figure is inside an element of class "pair" with a video whose seconds are the x
/// axis, both go together. Without a finite value: a paragraph that says so.
std::string svg_curves(const SvgCurves& curves);

}  // namespace troupe::base
