#pragma once

#include <string>

#include "base/namespaces.h"

namespace troupe::base {

/// Maps data to the viewBox of a chart: x from left to right, y from bottom to top. The script of html_page() computes
/// the same from the attributes.
struct SvgFrame {
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  /// x counts something: no tick lies between two whole numbers.
  bool has_whole_x = false;

  /// Widens empty ranges, the y range by 5 % at each end, and one that is narrower than least_span() to that.
  void settle();
  double x(double value) const;
  double y(double value) const;
  /// Attributes of the <svg>: viewBox, and for the script the area and the ranges.
  std::string attributes() const;
  /// Grid, ticks, their texts and the title of the x axis.
  std::string axes(const std::string& x_title) const;
};

}  // namespace troupe::base
