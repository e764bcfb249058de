#pragma once

#include <array>
#include <cstdint>

#include "base/enum_names.h"

namespace troupe::workers {

/// Which of a checkpoint's sets of weights.
enum class WeightSet : std::uint8_t {
  /// what is trained
  model,
  /// its moving average (ema.decay)
  ema,
};
constexpr auto enum_names(WeightSet) { return std::array{"model", "ema"}; }

}  // namespace troupe::workers
