#pragma once

#include <string>
#include <vector>

#include "workers/report/chart.h"

namespace troupe::workers {

/// Round values inside [low, high]: steps of 1, 2 or 5 times a power of ten, about `target` of them.
std::vector<double> linear_ticks(double low, double high, int target);
/// Powers of ten inside [low, high]; their doubles and fivefolds too where fewer than four would be left.
std::vector<double> log_ticks(double low, double high);
/// "0.25", "1,500", "2e-05": as many digits as neighbours `step` apart need.
std::string tick_text(double value, double step);

/// Maps data to a rectangle of the image: x from left to right, y from bottom to top, logarithmic with log_y (y_low
/// > 0).
struct Axes {
  ChartRect area{};
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  bool log_y = false;

  /// Widens empty ranges, and the y range by 5% at each end.
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
