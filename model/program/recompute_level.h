#pragma once

#include <array>
#include <cstdint>

#include "base/enum_names.h"

namespace troupe::model {

/// Which of a unit's forward operations its backward runs again. The unit keeps the results of its other operations,
/// and its own result, from its forward to its backward. The backward gets the unit's input, conditioning and
/// parameters from its caller. Every level gives the same bits.
enum class RecomputeLevel : std::uint8_t {
  /// nothing: every forward value that the backward reads is kept
  none,
  /// all but products and attention: norms, activations, rotations, residual sums
  cheap,
  /// all but attention
  attention,
  /// everything that the backward's values come from: nothing is kept
  full,
};
/// Values of `activation_checkpoint.mode`.
constexpr auto enum_names(RecomputeLevel) { return std::array{"none", "cheap", "attention", "full"}; }
inline constexpr std::size_t kRecomputeLevels = 4;

/// What an operation costs to run again.
enum class OperationCost : std::uint8_t { cheap, product, attention };

}  // namespace troupe::model
