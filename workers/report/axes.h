#pragma once

#include <string>

#include "base/page/ticks.h"
#include "workers/report/chart.h"

namespace troupe::workers {

/// Maps data to a rectangle of the image: x, which counts steps, from left to right, y from bottom to top, logarithmic
/// with log_y (y_low > 0).
struct Axes {
  ChartRect area{};
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  bool log_y = false;

  /// Widens empty ranges, the y range by 5% at each end, and one that is narrower than least_span() to that.
  void settle();
  ChartPoint at(double x, double y) const;
  /// The widest of the y ticks' labels.
  double label_width(const Chart& chart, double text_size, int y_ticks) const;
  /// Grid, ticks, tick labels, axis titles. Text size in pixels. At most as many ticks as asked for, and fewer where
  /// their labels would touch.
  void draw(Chart& chart, const std::string& x_title, const std::string& y_title, double text_size, int x_ticks,
            int y_ticks) const;
};

}  // namespace troupe::workers
