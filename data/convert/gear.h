#pragma once

// Internal to data/convert: GEAR's metadata beside LeRobot's (data.md 2.2, 2.7).
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/write_files.h"

namespace troupe {

/// Writes meta/modality.json and meta/embodiment.json unless the source has them, meta/stats.json with exact
/// statistics of
/// every state, action and timestamp column, and the statistics of relative actions (every action key without
/// "gripper" in
/// its name that has a state key of its name and width; 24 steps). `sum`: statistics of the other features.
Result<void> write_gear_metadata(const ConvertContext& context, const JsonDoc& sum, std::vector<std::string>& notes);

}  // namespace troupe
