#pragma once

#include "base/result.h"
#include "data/init/robot_guess.h"

namespace troupe::data {

/// The state's and the action's part of guess_robot(). Errors: failed_precondition (the dataset has no action).
Result<void> guess_keys(const DatasetFacts& facts, RobotGuess& guess);

}  // namespace troupe::data
