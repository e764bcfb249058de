#include "model/policy/action_bounds.h"

#include <fmt/format.h>

#include <cmath>

namespace troupe::model {

Result<void> check_action_bounds(const PolicyShape& shape, const std::string& who) {
  const auto bad = [&who](const std::string& rest) -> Result<void> {
    return Error{Errc::invalid_argument, who + " needs " + rest};
  };
  if (shape.choices > 0)
    return bad(fmt::format("continuous actions; the environment has {} discrete ones", shape.choices));
  const auto width = static_cast<std::size_t>(shape.action_dim);
  const auto &low = shape.action_low, &high = shape.action_high;
  if (low.size() != width || high.size() != width) {
    return bad(fmt::format("bounds of all {} action dimensions; the environment states {} and {}", width, low.size(),
                           high.size()));
  }
  for (std::size_t i = 0; i < width; ++i) {
    if (std::isfinite(low[i]) && std::isfinite(high[i]) && low[i] < high[i]) continue;
    return bad(fmt::format("finite bounds low < high; action dimension {} has [{}, {}]", i, low[i], high[i]));
  }
  return {};
}

}  // namespace troupe::model
