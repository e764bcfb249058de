#include "env/reward/reward_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "configs/suggest.h"

namespace troupe::env {

Result<void> check_reward_options(const RewardOptions& options, std::initializer_list<std::string_view> names) {
  for (const auto& [name, value] : options) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (names.size() == 0) return invalid_argument(fmt::format("it has no options; remove '{}'", name));
    const std::string near = nearest_name(name, std::vector<std::string>(names.begin(), names.end()));
    return invalid_argument(fmt::format("no option '{}'{}; it has {}", name,
                                        near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                                        fmt::join(names, ", ")));
  }
  return {};
}

Result<std::int64_t> reward_option(const RewardOptions& options, const std::string& name, std::string_view what) {
  const auto found = options.find(name);
  if (found == options.end()) return invalid_argument(fmt::format("'{}' is missing: {}", name, what));
  const std::string& text = found->second;
  std::int64_t value = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || value < 0)
    return invalid_argument(fmt::format("{} is '{}'; wanted a whole number, 0 or more: {}", name, text, what));
  return value;
}

}  // namespace troupe::env
