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

/// Values of a log axis at these multiples of the powers of ten.
std::vector<double> decades(double low, double high, const std::vector<double>& multiples, int stride) {
  std::vector<double> ticks;
  for (int decade = static_cast<int>(std::floor(std::log10(low)));
       decade <= static_cast<int>(std::floor(std::log10(high))); ++decade) {
    for (const double m : multiples) {
      const double value = m * std::pow(10.0, decade);
      if (decade % stride == 0 && value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push_back(value);
    }
  }
  return ticks;
}

/// "2e-5" for "2.0e-05" and the like.
std::string scientific(double value, double step) {
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
  const int decimals = std::clamp(exponent - static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 6);
  const std::string text = fmt::format("{:.{}e}", value, decimals);
  const auto e = text.find('e');
  return fmt::format("{}e{}", text.substr(0, e), std::stoi(text.substr(e + 1)));
}

/// `largest`: of the ticks that share the unit.
std::string tick_text(double value, double largest, double step) {
  if (value == 0) return "0";
  if (largest >= 1e9 || largest < 1e-3) return scientific(value, step);
  const bool is_million = largest >= 1e6, is_thousand = !is_million && largest >= 1e4 && step >= 10;
  const double unit = is_million ? 1e6 : is_thousand ? 1e3 : 1;
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step / unit) - 1e-9)), 0, 6);
  if (unit == 1 && decimals == 0) return format_grouped(static_cast<std::int64_t>(std::nearbyint(value)));
  return fmt::format("{:.{}f}{}", value / unit, decimals, is_million ? "M" : is_thousand ? "k" : "");
}

}  // namespace

std::vector<double> linear_ticks(double low, double high, int target, double least_step) {
  if (!(high > low)) return {low};
  std::vector<double> ticks;
  for (; ticks.size() < 2; target *= 2) {
    const double step = std::max(least_step, round_step(high - low, target));
    ticks.clear();
    // counted in whole steps, so that the ticks carry no summed rounding
    const auto last = static_cast<long long>(std::floor(high / step + 1e-9));
    for (auto i = static_cast<long long>(std::ceil(low / step - 1e-9)); i <= last; ++i)
      ticks.push_back(static_cast<double>(i) * step);
    if (step <= least_step) break;
  }
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  constexpr std::size_t kMost = 7;
  auto ticks = decades(low, high, {1, 2, 5}, 1);
  for (const int stride : {1, 2, 5, 10, 20, 50, 100, 200}) {
    if (ticks.size() > kMost) ticks = decades(low, high, {1}, stride);
  }
  return ticks.size() < 2 ? linear_ticks(low, high, 4) : ticks;
}

std::vector<std::string> tick_texts(const std::vector<double>& ticks) {
  if (ticks.empty()) return {};
  // a lone tick is a whole number, or the one that can be drawn
  double step = std::min(1.0, std::abs(ticks.front()));
  bool is_even = true;
  if (ticks.size() > 1) {
    step = ticks[1] - ticks[0];
    is_even = std::abs(ticks.back() - ticks[ticks.size() - 2] - step) <= 1e-6 * step;
  }
  const double largest = std::max(std::abs(ticks.front()), std::abs(ticks.back()));
  std::vector<std::string> texts;
  for (const double value : ticks)
    texts.push_back(is_even ? tick_text(value, largest, step) : tick_text(value, std::abs(value), std::abs(value)));
  return texts;
}

double least_span(double size) { return 5e-4 * size; }

}  // namespace troupe::base
