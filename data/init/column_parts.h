#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/namespaces.h"

namespace troupe::data {

/// Neighbouring dimensions [start, end) of a column that move one part of the robot.
struct ColumnPart {
  /// "left_arm", "gripper"; no two parts of a column share one.
  std::string name;
  std::int64_t start = 0, end = 0;
};

/// Splits a column where the names of its dimensions change their side or part:
///     shoulder_pan.pos, ..., gripper.pos                 arm, gripper
///     kLeftShoulderPitch, ..., kRightHandThumbRotation   left_arm, right_arm, left_hand, right_hand
/// A name that says neither belongs to the part before it. Empty when no name says a part. Pure.
std::vector<ColumnPart> split_by_names(const std::vector<std::string>& names);

/// Whether the key is something that grasps: such values are opened and closed, not moved by a difference.
bool grasps(std::string_view key);

}  // namespace troupe::data
