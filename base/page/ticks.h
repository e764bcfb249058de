#pragma once

#include <string>
#include <vector>

#include "base/namespaces.h"

namespace troupe::base {

/// Round values inside [low, high]: steps of 1, 2 or 5 times a power of ten, about `target` of them.
std::vector<double> linear_ticks(double low, double high, int target);
/// Powers of ten inside [low, high]; their doubles and fivefolds too where fewer than four would be left.
std::vector<double> log_ticks(double low, double high);
/// "0.25", "1,500", "2e-05": as many digits as neighbours `step` apart need.
std::string tick_text(double value, double step);

}  // namespace troupe::base
