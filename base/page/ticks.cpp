#include "base/page/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/grouped_digits.h"

namespace troupe::base {

namespace {

double round_step(double span, int target) {
  const double raw = span / std::max(1, target), power = std::pow(10.0, std::floor(std::log10(raw))),
               share = raw / power;
  return power * (share <= 1.0 ? 1 : share <= 2.0 ? 2 : share <= 5.0 ? 5 : 10);
}

}  // namespace

std::vector<double> linear_ticks(double low, double high, int target) {
  if (!(high > low)) return {low};
  const double step = round_step(high - low, target);
  std::vector<double> ticks;
  // counted in whole steps, so that the ticks carry no summed rounding
  const auto last = static_cast<long long>(std::floor(high / step + 1e-9));
  for (auto i = static_cast<long long>(std::ceil(low / step - 1e-9)); i <= last; ++i)
    ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  const auto collect = [&](const std::vector<double>& multiples) {
    std::vector<double> ticks;
    for (int decade = static_cast<int>(std::floor(std::log10(low)));
         decade <= static_cast<int>(std::ceil(std::log10(high))); ++decade) {
      for (const double m : multiples) {
        const double value = m * std::pow(10.0, decade);
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push_back(value);
      }
    }
    return ticks;
  };
  auto ticks = collect({1});
  if (ticks.size() < 4) ticks = collect({1, 2, 5});
  if (ticks.size() < 2) ticks = linear_ticks(low, high, 4);
  return ticks;
}

std::string tick_text(double value, double step) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size < 1e-4 || size >= 1e7) return fmt::format("{:.1e}", value);
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
  if (decimals > 0) return fmt::format("{:.{}f}", value, decimals);
  return format_grouped(static_cast<std::int64_t>(std::nearbyint(value)));
}

}  // namespace troupe::base
