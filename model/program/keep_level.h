#pragma once

#include <cstdint>

namespace troupe::model {

/// What a unit's program keeps between its forward and its backward besides what is bound to it: the unit's input,
/// conditioning and parameters. Either gives the same bits.
enum class KeepLevel : std::uint8_t {
  /// every forward value that the backward reads
  all,
  /// none: the backward runs the operations again that lead to them
  inputs,
};

}  // namespace troupe::model
