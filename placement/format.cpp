#include "placement/format.h"

#include <fmt/format.h>

#include <array>

#include "configs/suggest.h"

namespace troupe::placement {

std::string format_bytes(std::int64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024.0;
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_count(std::int64_t count) {
  if (count < 1'000'000) return format_grouped(count);
  int exponent = 0;
  auto value = static_cast<double>(count);
  while (value >= 1000.0) {
    value /= 1000.0;
    exponent += 3;
  }
  return fmt::format("{:.2f}e{}", value, exponent);
}

std::string format_cpus(double cpus) { return fmt::format("{:g}", cpus); }

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  return nearest.empty() ? nearest : fmt::format(" Did you mean '{}'?", nearest);
}

std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace troupe::placement
