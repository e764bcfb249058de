#pragma once

#include <string>
#include <vector>

#include "base/namespaces.h"

namespace troupe::base {

/// Round values inside [low, high]: steps of 1, 2 or 5 times a power of ten, about `target` of them and at least two.
/// `least_step`: 1 where only whole numbers mean something, which may leave one tick.
std::vector<double> linear_ticks(double low, double high, int target, double least_step = 0);
/// Powers of ten inside [low, high], at most seven; their doubles and fivefolds too where there is room for them.
std::vector<double> log_ticks(double low, double high);
/// One text for each of `ticks`, with the digits that tell neighbours apart: "0.45", "1,500", "20k", "10.05M", "2e-5".
/// Evenly spaced ticks share one unit. The script of html_page() has the same rule.
std::vector<std::string> tick_texts(const std::vector<double>& ticks);
/// The narrowest range that an axis of values about `size` has: the ticks of a narrower one would need more than four
/// digits.
double least_span(double size);

}  // namespace troupe::base
